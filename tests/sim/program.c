/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - the program of a simulated rank: it runs the script by the public
 * calls of libhvd (script.h) and compares every element with what must come
 * (use.c), and every status and text (status.c).
 */
#include <stdlib.h>
#include <string.h>

#include "hvd.h"
#include "use.h"

static uint64_t join; /* the last one; 0: there was none */

/* ----------------------------------------------------------------- requests */

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

    use_fill(c);
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
            status_check(&c, status, hvd_last_error());
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
    status_check(c, status, hvd_last_error());
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

    use_fill(c);
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
    status_check(&c, status, hvd_last_error());
    script_pause();
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
    if (join != outcome_salt(&c)) {
        join = outcome_salt(&c);
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
            use_allocate(&c);
    }
    c.number = 0;
    c.op = &phase->ops[0];
    for (c.repeat = 0; c.repeat < phase->repeats; c.repeat++)
        switch (phase->kind) {
        case PHASE_REQUESTS: run_requests(c); break;
        case PHASE_BLOCKING: run_blocking(c); break;
        case PHASE_BURST: burst_run(c); break;
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

void script_forget(void)
{
    use_forget();
    status_forget();
    join = 0;
}
