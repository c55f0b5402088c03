/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst.c - a phase of hundreds of requests that are submitted before the first
 * is waited for.
 */
#include <stdlib.h>
#include <string.h>

#include "hvd.h"
#include "use.h"

/* A request of a burst. */
struct shot {
    float *input, *output; /* [count] */
    hvd_handle handle;
};

/* Returns the kind of a request of a burst. A rank that waits in one of the few
 * others does not keep broadcasts from going on. */
static hvd_kind kind_of_shot(const struct context *c, int number)
{
    if (!script.phases[c->phase].is_mixed)
        return HVD_ALLREDUCE;
    if (number % 24 != 0)
        return HVD_BROADCAST;
    return number % 48 == 0 ? HVD_ALLTOALL : HVD_ALLREDUCE;
}

/* Adds to wanted[] what a request of a burst has from a rank. */
static void add_wanted(const struct context *c, int number, int rank,
                       int *wanted)
{
    uint32_t root = outcome_root(outcome_salt(c) + (uint64_t)number, rank);
    hvd_kind kind = kind_of_shot(c, number);
    int64_t count = c->op->count, part = count / script.nranks, first = 0;
    static int elements[SCRIPT_SHOT];

    if (kind == HVD_BROADCAST && rank != c->op->root)
        return;
    if (kind == HVD_ALLTOALL) {
        wanted += part * rank;
        first = part * c->rank;
        count = part;
    }
    outcome_elements(c->op, root, rank, first, (int)count, elements);
    for (int64_t i = 0; i < count; i++)
        wanted[i] += elements[i];
}

static void work_out(const struct context *c, int number, int *wanted)
{
    memset(wanted, 0, (size_t)c->op->count * sizeof *wanted);
    for (int rank = 0; rank < script.nranks; rank++)
        add_wanted(c, number, rank, wanted);
}

/* The results that the requests of a burst must have are worked out once for
 * all ranks. */
static struct {
    uint64_t burst;
    int *wanted; /* owned, [phase->nburst, op->count] */
    bool *known; /* owned, [phase->nburst] */
} results;

static void begin_results(const struct context *c, uint64_t burst)
{
    size_t n = (size_t)script.phases[c->phase].nburst;

    free(results.wanted);
    free(results.known);
    results.burst = burst;
    results.wanted = malloc(n * ((size_t)c->op->count + 1) * sizeof(int));
    results.known = calloc(n, sizeof *results.known);
    if (!results.wanted || !results.known)
        abort();
}

/* Returns what a request of a burst must have on this rank, [op->count], valid
 * until the next call. */
static const int *wanted_of(const struct context *c, int number)
{
    static int own[SCRIPT_SHOT];
    int *wanted;

    if (kind_of_shot(c, number) == HVD_ALLTOALL) {
        work_out(c, number, own);
        return own;
    }
    if (!results.wanted || results.burst != outcome_salt(c))
        begin_results(c, outcome_salt(c));
    wanted = results.wanted + number * c->op->count;
    if (!results.known[number])
        work_out(c, number, wanted);
    results.known[number] = true;
    return wanted;
}

static void check_shot(const struct context *c, const struct shot *shot,
                       int number)
{
    const int *wanted = wanted_of(c, number);

    for (int64_t i = 0; i < c->op->count; i++)
        if (shot->output[i] != (float)wanted[i]) {
            sim_fail("phase %d on rank %d: element %lld of request %d of a "
                     "burst is %g, not %d",
                     c->phase, c->rank, (long long)i, number,
                     (double)shot->output[i], wanted[i]);
            return;
        }
}

static void wait_for_burst(const struct context *c, const struct shot *shots,
                           int n)
{
    for (int i = 0; i < n; i++) {
        int status = shots[i].handle ? hvd_wait(shots[i].handle) : 1;

        if (status == 1) /* not submitted */
            continue;
        if (status == HVD_OK)
            check_shot(c, &shots[i], i);
        else if (!status_may_end(c, status))
            sim_fail("phase %d on rank %d: request %d of a burst: %s", c->phase,
                     c->rank, i, hvd_last_error());
    }
}

/* Submits the shots of a unit of a burst together. Returns how many they are,
 * or a status. */
static int shoot(const struct context *c, struct shot *shots, int unit)
{
    const struct script_phase *phase = &script.phases[c->phase];
    int64_t count = phase->ops[0].count;
    int first = unit * phase->group, n = 0, status;
    static int elements[SCRIPT_SHOT];
    hvd_request requests[SCRIPT_OPS];
    const hvd_request *list[SCRIPT_OPS];
    hvd_handle handles[SCRIPT_OPS];
    char name[16];

    snprintf(name, sizeof name, "b%d", unit);
    for (; n < phase->group && first + n < phase->nburst; n++) {
        struct shot *shot = &shots[first + n];
        uint32_t root =
            outcome_root(outcome_salt(c) + (uint64_t)(first + n), c->rank);
        hvd_request *request = &requests[n];

        outcome_elements(c->op, root, c->rank, 0, (int)count, elements);
        outcome_put(HVD_FLOAT32, shot->input, 0, (int)count, elements);
        hvd_request_init(request, sizeof *request);
        request->kind = kind_of_shot(c, first + n);
        request->dtype = HVD_FLOAT32;
        request->op = request->kind == HVD_ALLREDUCE ? HVD_SUM : HVD_AVERAGE;
        request->ndim = 1;
        request->shape = &phase->ops[0].count;
        request->input = shot->input;
        request->output = shot->output;
        if (request->kind == HVD_BROADCAST) {
            request->root = phase->ops[0].root;
            request->output = shot->input;
            shot->output = shot->input;
        }
        list[n] = request;
    }
    if (phase->group > 1) {
        status = hvd_submit_group(name, list, n, handles);
    } else {
        requests[0].name = phase->swaps < 0 ? NULL : name;
        status = hvd_submit(list[0], handles);
    }
    for (int i = 0; i < n && status >= 0; i++)
        shots[first + i].handle = handles[i];
    return status < 0 ? status : n;
}

void burst_run(struct context c)
{
    const struct script_phase *phase = &script.phases[c.phase];
    size_t bytes = (size_t)phase->ops[0].count * sizeof(float) + 4;
    struct shot *shots = use_memory((size_t)phase->nburst * sizeof *shots);
    char *room = use_memory(2 * (size_t)phase->nburst * bytes);
    int units = (phase->nburst + phase->group - 1) / phase->group, n = 0;

    for (int i = 0; i < phase->nburst; i++) {
        shots[i].input = (float *)(void *)(room + 2 * (size_t)i * bytes);
        shots[i].output = shots[i].input + bytes / sizeof(float);
        shots[i].handle = 0;
    }
    for (int i = 0; i < units; i++) {
        int unit = i, status;

        if (phase->swapper == c.rank && phase->swaps >= 0)
            unit += (i == phase->swaps) - (i == phase->swaps + 1);
        status = shoot(&c, shots, unit);
        if (status < 0 && status_may_end(&c, status))
            break;
        if (status < 0)
            sim_fail("phase %d on rank %d: a burst: %s", c.phase, c.rank,
                     hvd_last_error());
        n += status;
        if (sim_once_in(&sim.self->random, 50))
            sim_yield();
    }
    sim_say("phase %d submits a burst of %d", c.phase, n);
    wait_for_burst(&c, shots, phase->nburst);
}
