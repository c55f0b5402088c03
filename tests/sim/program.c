/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - the program of a simulated rank: it runs the script by the public
 * calls of libhvd (script.h) and compares every element with what must come
 * (outcome.h), and every status and text. All ranks must get the same text for
 * the same failure.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hvd.h"
#include "outcome.h"
#include "script.h"

enum { GUARD_BYTES = 16, GUARD = 0x5c };

/* What a rank uses for a request. */
struct use {
    void *input, *output;
    size_t input_bytes, output_bytes;
    int64_t counts[SCRIPT_RANKS];
    hvd_handle handle;
    int submitted; /* its status */
    int ncallbacks, callback_status;
};

struct memory {
    struct memory *next;
    void *data; /* owned; NULL: of a heap, which frees it */
};

static struct memory *memories;

/* The first text that a rank got for a request that failed, by request. */
static struct {
    uint64_t what;
    int rank;
    char text[512];
} texts[SCRIPT_OPS];

static struct use uses[SCRIPT_RANKS][SCRIPT_OPS];

/* ----------------------------------------------------------------- elements */

/* What is compared with a run of elements of the output. */
struct check {
    const struct context *c;
    uint64_t salt;
    int64_t at; /* elements of the output so far */
    bool failed;
};

/* Compares with the next n elements, at most a block of them. */
static void compare(struct check *check, const double *want, int n)
{
    const struct context *c = check->c;
    const struct script_op *op = c->op;
    double got[OUTCOME_BLOCK];

    outcome_get(op->dtype, uses[c->rank][c->number].output, check->at, n, got);
    check->at += n;
    for (int i = 0; i < n && !check->failed; i++) {
        if (got[i] == want[i] ||
            fabs(got[i] - want[i]) <= outcome_tolerance(op->dtype, want[i]))
            continue;
        check->failed = true;
        sim_fail("phase %d repeat %d op %d (%s) on rank %d: element %lld is "
                 "%g, not %g",
                 c->phase, c->repeat, c->number, hvd_kind_name(op->kind),
                 c->rank, (long long)check->at - n + i, got[i], want[i]);
    }
}

/* Compares with n elements of a rank's input. */
static void compare_input(struct check *check, int rank, int64_t first,
                          int64_t n)
{
    uint32_t root = outcome_root(check->salt, rank);

    for (int64_t done = 0; done < n; done += OUTCOME_BLOCK) {
        int elements[OUTCOME_BLOCK], count = outcome_block(n - done);
        double want[OUTCOME_BLOCK];

        outcome_elements(check->c->op, root, rank, first + done, count,
                         elements);
        for (int i = 0; i < count; i++)
            want[i] = elements[i];
        compare(check, want, count);
    }
}

static void compare_parts(struct check *check)
{
    const struct script_op *op = check->c->op;
    int n = script_members(op), own = script_place(op, check->c->rank);

    for (int k = 0; k < n; k++) {
        int from = script_member(op, k);
        int64_t part = op->count / n, before = part * own;

        if (op->has_rows) {
            part = op->splits[from][own];
            before = 0;
            for (int j = 0; j < own; j++)
                before += op->splits[from][j];
        }
        compare_input(check, from, before, part);
    }
}

static void compare_output(const struct context *c)
{
    const struct script_op *op = c->op;
    struct check check = {.c = c, .salt = outcome_salt(c)};
    int n = script_members(op), own = script_place(op, c->rank);
    int64_t count = outcome_count(op, c->rank), first = 0;
    const double *values;

    switch (op->kind) {
    case HVD_BROADCAST: compare_input(&check, op->root, 0, count); break;
    case HVD_ALLGATHER:
    case HVD_GATHER:
        for (int k = 0; k < n && count > 0; k++)
            compare_input(&check, script_member(op, k), 0,
                          outcome_rows(op, script_member(op, k)));
        break;
    case HVD_ALLTOALL: compare_parts(&check); break;
    default:
        for (int k = 0; op->kind == HVD_REDUCESCATTER && k < own; k++)
            first += op->count / n + (k < op->count % n);
        values = outcome_reduction(c, check.salt);
        for (int64_t i = 0; i < count; i += OUTCOME_BLOCK)
            compare(&check, &values[first + i], outcome_block(count - i));
    }
}

/* ------------------------------------------------------------------- memory */

static void *take_memory(size_t bytes)
{
    struct memory *memory = malloc(sizeof *memory);
    void *data = NULL;

    if (!memory)
        abort();
    *memory = (struct memory){.next = memories};
    if (script_has(WITH_HEAP) && sim.self->heap &&
        sim_once_in(&sim.self->random, 2))
        data = hvd_malloc(bytes);
    if (!data)
        data = memory->data = calloc(1, bytes);
    if (!data)
        abort();
    memories = memory;
    return data;
}

void script_forget(void)
{
    while (memories) {
        struct memory *memory = memories;

        memories = memory->next;
        free(memory->data);
        free(memory);
    }
    memset(texts, 0, sizeof texts);
}

static struct use *use_of(const struct context *c)
{
    return &uses[c->rank][c->number];
}

static void allocate(const struct context *c)
{
    const struct script_op *op = c->op;
    struct use *use = use_of(c);
    size_t element_bytes = (size_t)hvd_dtype_size(op->dtype);
    /* A rank that differs has elements of up to 8 bytes. */
    size_t room = op->fault == DIFFERS ? 8 : element_bytes;
    int64_t in = outcome_rows(op, c->rank), out = outcome_count(op, c->rank);
    bool is_one = op->in_place || op->kind == HVD_BROADCAST;

    *use = (struct use){0};
    use->input_bytes = (size_t)in * element_bytes;
    use->output_bytes = (size_t)out * element_bytes;
    use->output =
        take_memory((size_t)(out > in ? out : in) * room + GUARD_BYTES);
    use->input =
        is_one ? use->output : take_memory((size_t)in * room + GUARD_BYTES);
}

/* Fills the input; the output has what must be overwritten. */
static void fill(const struct context *c)
{
    const struct script_op *op = c->op;
    struct use *use = use_of(c);
    int64_t n = outcome_rows(op, c->rank);
    uint32_t root = outcome_root(outcome_salt(c), c->rank);

    memset(use->output, GUARD, use->output_bytes + GUARD_BYTES);
    if (op->kind == HVD_BROADCAST && c->rank != op->root)
        return;
    for (int64_t i = 0; i < n; i += OUTCOME_BLOCK) {
        int elements[OUTCOME_BLOCK], count = outcome_block(n - i);

        outcome_elements(op, root, c->rank, i, count, elements);
        outcome_put(op->dtype, use->input, i, count, elements);
    }
}

static void check_data(const struct context *c)
{
    const struct script_op *op = c->op;
    const struct use *use = use_of(c);
    const unsigned char *guard =
        (const unsigned char *)use->output + use->output_bytes;
    compare_output(c);
    for (int i = 0; i < GUARD_BYTES; i++)
        if (guard[i] != GUARD) {
            sim_fail("phase %d op %d on rank %d: written behind the output",
                     c->phase, c->number, c->rank);
            return;
        }
    for (int k = 0; op->has_rows && k < script_members(op); k++) {
        int from = script_member(op, k);
        int64_t want = op->kind == HVD_ALLTOALL
                           ? op->splits[from][script_place(op, c->rank)]
                           : op->rows[from];

        if (op->kind == HVD_GATHER && c->rank != op->root)
            break;
        if (use->counts[k] != want)
            sim_fail("phase %d op %d on rank %d: %lld rows of rank %d, not "
                     "%lld",
                     c->phase, c->number, c->rank, (long long)use->counts[k],
                     from, (long long)want);
    }
}

/* ----------------------------------------------------------------- statuses */

/* Returns whether the rank that leaves early is a member and has not submitted
 * the request. */
static bool leaver_lacks(const struct context *c)
{
    const struct script_phase *phase = &script.phases[c->phase];

    if (script.leaver < 0 || !script_has_rank(c->op->set, script.leaver) ||
        c->phase < script.leaves_in)
        return false;
    if (c->phase > script.leaves_in)
        return true;
    for (int i = 0; i < script.leaves_after; i++)
        if (phase->orders[script.leaver][i] == c->op->unit)
            return false;
    return true;
}

static int expected_status(const struct context *c)
{
    if (c->op->fault == DIFFERS)
        return HVD_ERR_MISMATCH;
    if (c->op->fault == REFUSED)
        return c->rank == c->op->faulty ? HVD_ERR_ARGUMENT : HVD_ERR_PEER;
    return HVD_OK;
}

/* All ranks must get the same text, which names the request. */
static void check_text(const struct context *c, const char *text, bool named)
{
    uint64_t what = outcome_salt(c);
    char name[32];

    snprintf(name, sizeof name, "'t%d'", c->op->unit);
    if (texts[c->number].what != what) {
        texts[c->number].what = what;
        texts[c->number].rank = c->rank;
        snprintf(texts[c->number].text, sizeof texts[c->number].text, "%s",
                 text);
    }
    if (strncmp(texts[c->number].text, text,
                sizeof texts[c->number].text - 1) != 0)
        sim_fail("phase %d op %d: rank %d is told '%s', rank %d '%s'", c->phase,
                 c->number, texts[c->number].rank, texts[c->number].text,
                 c->rank, text);
    if (named && !strstr(text, name))
        sim_fail("phase %d op %d on rank %d: no name %s in '%s'", c->phase,
                 c->number, c->rank, name, text);
}

static void check_status(const struct context *c, int status, const char *text)
{
    const struct script_unit *unit =
        &script.phases[c->phase].units[c->op->unit];
    int want = expected_status(c);
    bool lacks = leaver_lacks(c);

    sim_note((uint64_t)status + outcome_salt(c));
    if (status < 0)
        sim_say("phase %d op %d: %s: %s", c->phase, c->number,
                hvd_strerror(status), text);
    if (script.victim >= 0 &&
        (status == HVD_ERR_LOST ||
         (c->op->set >= 0 && status == HVD_ERR_PROCESS_SET)))
        return;
    if (lacks && status == HVD_ERR_SHUTDOWN)
        return;
    if ((lacks && want == HVD_OK) || status != want) {
        sim_fail("phase %d repeat %d op %d (%s) on rank %d: %s (%s), not %s",
                 c->phase, c->repeat, c->number, hvd_kind_name(c->op->kind),
                 c->rank, hvd_strerror(status), status < 0 ? text : "",
                 hvd_strerror(lacks ? HVD_ERR_SHUTDOWN : want));
        return;
    }
    if (status == HVD_OK)
        check_data(c);
    else if (!lacks && status != HVD_ERR_ARGUMENT && script.victim < 0)
        check_text(c, text, unit->is_named && !unit->is_group);
}

/* ------------------------------------------------------------------ requests
 */

static void count_callback(void *context, int status)
{
    struct use *use = context;

    use->ncallbacks++;
    use->callback_status = status;
}

/* Returns the type that this rank gives, which may be a wrong one. */
static hvd_dtype dtype_of(const struct context *c)
{
    const struct script_op *op = c->op;

    if (!op->fault || op->faulty != c->rank)
        return op->dtype;
    if (op->fault == REFUSED)
        return 99;
    return op->dtype == HVD_FLOAT64 ? HVD_INT32 : HVD_FLOAT64;
}

static void make_request(const struct context *c, hvd_request *request,
                         int64_t *shape, const char *name)
{
    const struct script_op *op = c->op;
    struct use *use = use_of(c);
    const struct script_unit *unit = &script.phases[c->phase].units[op->unit];
    bool reduces = op->kind == HVD_ALLREDUCE || op->kind == HVD_REDUCE ||
                   op->kind == HVD_REDUCESCATTER;

    fill(c);
    hvd_request_init(request, sizeof *request);
    *shape = outcome_rows(op, c->rank);
    request->kind = op->kind;
    request->dtype = op->dtype;
    request->op = reduces ? op->op : HVD_AVERAGE;
    request->root = op->root;
    request->ndim = 1;
    request->shape = shape;
    request->name = name;
    request->input = use->input;
    request->output = use->output;
    if (reduces) {
        request->prescale = op->prescale;
        request->postscale = op->postscale;
    }
    request->process_set = op->set < 0 ? 0 : script.sets[op->set].id;
    request->priority = unit->priorities[c->rank];
    if (op->has_callback) {
        request->callback = count_callback;
        request->callback_context = use;
    }
    if (op->has_rows) {
        request->capacity = outcome_count(op, c->rank);
        request->capacity += !request->capacity;
        request->counts = use->counts;
        if (op->kind == HVD_ALLTOALL)
            request->splits = op->splits[c->rank];
    }
    if (op->kind == HVD_BARRIER) {
        hvd_request_init(request, sizeof *request);
        request->kind = HVD_BARRIER;
        request->name = name;
        request->process_set = op->set < 0 ? 0 : script.sets[op->set].id;
        request->priority = unit->priorities[c->rank];
    } else if (op->fault && op->faulty == c->rank) {
        request->dtype = dtype_of(c);
        request->prescale = request->postscale = 1;
    }
}

void script_pause(void)
{
    struct sim_random *random = &sim.self->random;

    if (sim_once_in(random, 4)) {
        sim.self->moved = true;
        for (int i = sim_below(random, 8); i >= 0; i--)
            sim_yield();
    }
}

/* Submits a request or a group. */
static void submit(struct context c, const struct script_unit *unit)
{
    hvd_request requests[SCRIPT_OPS];
    const hvd_request *list[SCRIPT_OPS];
    hvd_handle handles[SCRIPT_OPS] = {0};
    int64_t shapes[SCRIPT_OPS];
    char name[16];
    int status;

    snprintf(name, sizeof name, "t%d",
             (int)(unit - script.phases[c.phase].units));
    for (int i = 0; i < unit->n; i++) {
        c.number = unit->first + i;
        c.op = &script.phases[c.phase].ops[c.number];
        make_request(&c, &requests[i], &shapes[i],
                     unit->is_named && !unit->is_group ? name : NULL);
        use_of(&c)->ncallbacks = 0;
        list[i] = &requests[i];
    }
    if (unit->is_group)
        status = hvd_submit_group(unit->is_named ? name : NULL, list, unit->n,
                                  handles);
    else
        status = hvd_submit(list[0], handles);
    sim_note((uint64_t)status);
    sim_say("phase %d submits unit %s: %d", c.phase, name, status);
    for (int i = 0; i < unit->n; i++) {
        c.number = unit->first + i;
        c.op = &script.phases[c.phase].ops[c.number];
        use_of(&c)->handle = status < 0 ? 0 : handles[i];
        use_of(&c)->submitted = status;
        if (status < 0)
            check_status(&c, status, hvd_last_error());
    }
}

static void wait_for(const struct context *c)
{
    struct use *use = use_of(c);
    int status;

    if (use->submitted < 0)
        return;
    if (sim_once_in(&sim.self->random, 3))
        hvd_poll(use->handle);
    status = hvd_wait(use->handle);
    sim_say("phase %d op %d is done: %d", c->phase, c->number, status);
    check_status(c, status, hvd_last_error());
    if (c->op->has_callback && c->op->kind != HVD_BARRIER &&
        (use->ncallbacks != 1 || use->callback_status != status))
        sim_fail("phase %d op %d on rank %d: %d callbacks, the last with %d",
                 c->phase, c->number, c->rank, use->ncallbacks,
                 use->callback_status);
}

/* Waits for all requests of a phase, in any order. */
static void wait_for_all(struct context c)
{
    const struct script_phase *phase = &script.phases[c.phase];
    int order[SCRIPT_OPS] = {0};

    for (int i = 0; i < phase->nops; i++) {
        int j = sim_below(&sim.self->random, i + 1);

        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < phase->nops; i++) {
        c.number = order[i];
        c.op = &phase->ops[c.number];
        if (!script_has_rank(c.op->set, c.rank))
            continue;
        wait_for(&c);
        script_pause();
    }
}

/* ------------------------------------------------------------------- phases */

static void run_requests(struct context c)
{
    const struct script_phase *phase = &script.phases[c.phase];
    int n = phase->nunits;
    bool leaves = c.rank == script.leaver && c.phase == script.leaves_in;

    if (leaves)
        n = script.leaves_after;
    for (int i = 0; i < n; i++) {
        const struct script_unit *unit =
            &phase->units[phase->orders[c.rank][i]];

        if (!script_has_rank(unit->set, c.rank))
            continue;
        submit(c, unit);
        script_pause();
    }
    if (!leaves)
        wait_for_all(c);
}

static int call_blocking(const struct context *c)
{
    const struct script_op *op = c->op;
    struct use *use = use_of(c);
    hvd_dtype dtype = dtype_of(c);

    fill(c);
    switch (op->kind) {
    case HVD_ALLREDUCE:
        return hvd_allreduce(use->input, use->output, op->count, dtype, op->op);
    case HVD_BROADCAST:
        return hvd_broadcast(use->output, op->count, dtype, op->root);
    case HVD_ALLGATHER:
        return hvd_allgather(use->input, use->output, op->count, dtype);
    case HVD_GATHER:
        return hvd_gather(use->input, use->output, op->count, dtype, op->root);
    case HVD_REDUCE:
        return hvd_reduce(use->input, use->output, op->count, dtype, op->op,
                          op->root);
    case HVD_REDUCESCATTER:
        return hvd_reducescatter(use->input, use->output, op->count, dtype,
                                 op->op);
    case HVD_ALLTOALL:
        return hvd_alltoall(use->input, use->output, op->count, dtype);
    default: return hvd_barrier();
    }
}

static void run_blocking(struct context c)
{
    struct script_op *op = &script.phases[c.phase].ops[0];
    int status;

    op->prescale = op->postscale = 1; /* these calls have none */
    c.op = op;
    status = call_blocking(&c);
    sim_say("phase %d blocking call: %d", c.phase, status);
    check_status(&c, status, hvd_last_error());
    script_pause();
}

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

static void check_shot(const struct context *c, const struct shot *shot,
                       int number)
{
    static int wanted[SCRIPT_SHOT];

    memset(wanted, 0, sizeof wanted);
    for (int rank = 0; rank < script.nranks; rank++)
        add_wanted(c, number, rank, wanted);
    for (int64_t i = 0; i < c->op->count; i++)
        if (shot->output[i] != (float)wanted[i]) {
            sim_fail("phase %d on rank %d: element %lld of request %d of a "
                     "burst is %g, not %d",
                     c->phase, c->rank, (long long)i, number,
                     (double)shot->output[i], wanted[i]);
            return;
        }
}

static bool may_fail(const struct context *c, int status)
{
    return (status == HVD_ERR_LOST && script.victim >= 0) ||
           (status == HVD_ERR_SHUTDOWN && leaver_lacks(c));
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
        else if (!may_fail(c, status))
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

static void run_burst(struct context c)
{
    const struct script_phase *phase = &script.phases[c.phase];
    size_t bytes = (size_t)phase->ops[0].count * sizeof(float) + 4;
    struct shot *shots = take_memory((size_t)phase->nburst * sizeof *shots);
    char *room = take_memory(2 * (size_t)phase->nburst * bytes);
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
        if (status < 0 && may_fail(&c, status))
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

static void run_join(struct context c)
{
    const struct script_phase *phase = &script.phases[c.phase];
    int last = -1, status;

    for (int i = 0; i < phase->njoined[c.rank]; i++) {
        submit(c, &phase->units[i]);
        script_pause();
    }
    for (c.number = 0; c.number < phase->njoined[c.rank]; c.number++) {
        c.op = &phase->ops[c.number];
        wait_for(&c);
    }
    status = hvd_join(&last);
    sim_say("joined: %d, last %d", status, last);
    if (status == HVD_ERR_LOST && script.victim >= 0)
        return;
    if (status < 0 || last < 0 || last >= script.nranks)
        sim_fail("rank %d joined: %s (%s), the last is rank %d", c.rank,
                 hvd_strerror(status), hvd_last_error(), last);
    if (texts[0].what != ~outcome_salt(&c)) {
        texts[0].what = ~outcome_salt(&c);
        script.joined_last = last;
    }
    if (last != script.joined_last)
        sim_fail("rank %d has heard that rank %d joined last, another rank "
                 "that rank %d did",
                 c.rank, last, script.joined_last);
}

static void change_sets(const struct context *c)
{
    const struct script_phase *phase = &script.phases[c->phase];
    const struct script_set *set = &script.sets[phase->set];
    int status, want;

    if (phase->kind == PHASE_ADD_SET) {
        status = hvd_add_process_set(set->ranks, set->n);
        want = set->id;
    } else {
        status = hvd_remove_process_set(set->id);
        want = HVD_OK;
    }
    sim_say("process set %d: %d", set->id, status);
    if (status != want && !(status == HVD_ERR_LOST && script.victim >= 0))
        sim_fail("phase %d on rank %d: process set %d gives %d (%s)", c->phase,
                 c->rank, set->id, status, hvd_last_error());
}

static void run_phase(struct context c)
{
    const struct script_phase *phase = &script.phases[c.phase];

    for (c.number = 0; c.number < phase->nops && phase->kind != PHASE_STRATEGY;
         c.number++) {
        c.op = &phase->ops[c.number];
        if (script_has_rank(c.op->set, c.rank))
            allocate(&c);
    }
    c.number = 0;
    c.op = &phase->ops[0];
    for (c.repeat = 0; c.repeat < phase->repeats; c.repeat++)
        switch (phase->kind) {
        case PHASE_REQUESTS: run_requests(c); break;
        case PHASE_BLOCKING: run_blocking(c); break;
        case PHASE_BURST: run_burst(c); break;
        case PHASE_JOIN: run_join(c); break;
        case PHASE_STRATEGY: script_run_strategy(c.phase); break;
        default: change_sets(&c); break;
        }
}

void script_run(struct sim_rank *rank)
{
    struct context c = {.rank = rank->rank};
    int status;

    for (c.phase = 0; c.phase < script.nphases; c.phase++) {
        run_phase(c);
        if (rank->rank == script.leaver && c.phase == script.leaves_in)
            break;
    }
    status = sim_shutdown();
    sim_note((uint64_t)status);
    sim_say("shut down: %d", status);
    if (status < 0 && !(status == HVD_ERR_LOST && script.victim >= 0))
        sim_fail("rank %d shut down: %s (%s)", rank->rank, hvd_strerror(status),
                 rank->world->break_message ? rank->world->break_message : "");
}
