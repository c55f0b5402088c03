/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicas.c - several engines of one program, which meet.
 *
 * The program is cut where replicas have to wait for each other: before each
 * collective op, and before the first step that writes a variable, after which
 * nothing can fail, so that a replica that fails ends the run while all of them
 * still have their variables. Between two cuts the replicas have nothing to do
 * with each other, and run on as many threads as there are, or one after the
 * other. At a collective op the tensors of a group are added up in the order of
 * the replicas, on one thread: so threads change no bit. Replicas wait for each
 * other at collective ops in the bodies of loops (meeting.c), on a thread for
 * each.
 *
 *     replica 0   ====|         |====|         |====
 *     replica 1   ====| sum, of |====| sum, of |====
 *     replica 2   ====| a group |====| a group |====
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/program.h"
#include "engine/engine.h"
#include "engine/thread_pool.h"
#include "replica/meeting.h"
#include "replica/replica.h"
#include "target/target.h"

/* A replica, and how far it has come. */
struct lane {
    ipu_engine *engine; /* owned */
    int status;
    char *message; /* owned, IPU__EXPLANATION_MAX */
};

struct ipu_replicas {
    const ipu_executable *executable; /* borrowed until free */
    int32_t count;
    struct lane *lanes; /* owned, [count] */
    int32_t ncuts;
    int32_t *cuts; /* owned: steps before which all wait; the last is the end */
    int32_t until; /* the step up to which they run now */
    /* owned; NULL: the caller's thread runs all replicas */
    struct ipu__thread_pool *pool;
    /* owned; NULL: no collective op is within a loop */
    struct ipu__meeting *meeting;
    int callback_status;
    bool running;
    ipu_replicas_info info;
};

/* ------------------------------------------------------------------- making */

static int find_system(const ipu_replicas_options *o, ipu_system *system)
{
    IPU_TRY(ipu__find_system(o->system, o->ipus, system));
    if (system->ipus < o->ipus)
        return ipu__fail(IPU_ERR_STATE, "replicas: %d IPUs: '%s' has %d",
                         (int)o->ipus, system->name, (int)system->ipus);
    return IPU_OK;
}

static bool meets(const struct ipu__step *step)
{
    return step->kind == IPU__COMPUTE && step->op->collective;
}

static bool writes_variable(const ipu_executable *e,
                            const struct ipu__step *step)
{
    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        struct ipu__step_op place;
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

        if (e->blocks[e->values[part->output].block].always)
            return true;
    }
    return false;
}

static int check_group(const struct ipu_replicas *r, const ipu_executable *e,
                       const struct ipu__step *step)
{
    if (step->attributes.size == 0 || r->count % step->attributes.size == 0)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "replicas: %s is over groups of %d: %d replicas are no "
                     "multiple of that",
                     e->values[step->output].name, (int)step->attributes.size,
                     (int)r->count);
}

static int check_loops(const struct ipu_replicas *r, const ipu_executable *e);

/* Returns 1 if replicas meet in a loop's body or condition, or within; else
 * 0. */
static int check_inner(const struct ipu_replicas *r,
                       const struct ipu__inner *inner)
{
    const ipu_executable *e = inner->program;
    int found = e ? check_loops(r, e) : 0;

    IPU_TRY(found);
    for (int32_t i = 0; e && i < e->nsteps; i++) {
        if (!meets(&e->steps[i]))
            continue;
        IPU_TRY(check_group(r, e, &e->steps[i]));
        found = 1;
    }
    return found;
}

/* Returns the same for any of the loops. */
static int check_loops(const struct ipu_replicas *r, const ipu_executable *e)
{
    int found = 0;

    for (int32_t i = 0; i < e->nloops; i++) {
        int body = check_inner(r, &e->loops[i].body);
        int condition = check_inner(r, &e->loops[i].condition);

        IPU_TRY(body);
        IPU_TRY(condition);
        found |= body | condition;
    }
    return found;
}

/* Groups are whole; and where all wait. */
static int find_cuts(struct ipu_replicas *r)
{
    const ipu_executable *e = r->executable;
    bool written = false;

    r->cuts = calloc((size_t)e->nsteps + 2, sizeof *r->cuts);
    if (!r->cuts)
        return ipu__fail_memory((size_t)e->nsteps * sizeof *r->cuts);
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *step = &e->steps[i];
        bool writes = writes_variable(e, step);

        if (meets(step))
            IPU_TRY(check_group(r, e, step));
        if (meets(step) || (writes && !written))
            r->cuts[r->ncuts++] = i;
        written |= writes;
    }
    r->cuts[r->ncuts++] = e->nsteps;
    return IPU_OK;
}

static int make_lanes(struct ipu_replicas *r)
{
    IPU_TRY(ipu__new_array(&r->lanes, (size_t)r->count, sizeof *r->lanes));
    for (int32_t i = 0; i < r->count; i++) {
        r->lanes[i].message = calloc(1, IPU__EXPLANATION_MAX);
        if (!r->lanes[i].message)
            return ipu__fail_memory(IPU__EXPLANATION_MAX);
        IPU_TRY(ipu__engine_new_replica(r->executable, i, r->count,
                                        &r->lanes[i].engine));
        if (ipu_engine_write(r->lanes[i].engine, IPU__REPLICA_INDEX, &i,
                             sizeof i) == IPU_ERR_SHAPE)
            return IPU_ERR_SHAPE;
    }
    return IPU_OK;
}

/* Makes the threads; replicas that meet within loops need one each. */
static int make_threads(struct ipu_replicas *r, int32_t threads)
{
    int within = check_loops(r, r->executable);

    IPU_TRY(within);
    IPU_TRY(
        ipu__thread_pool_new(within ? r->count : threads, r->count, &r->pool));
    if (!within)
        return IPU_OK;
    if (ipu__thread_pool_threads(r->pool) < r->count)
        return ipu__fail(IPU_ERR_MEMORY,
                         "replicas: of %d threads, which sums in loops need, "
                         "there can be only %d",
                         (int)r->count, (int)ipu__thread_pool_threads(r->pool));
    IPU_TRY(ipu__meeting_new(r->count, &r->meeting));
    for (int32_t i = 0; i < r->count; i++)
        ipu__engine_meet(r->lanes[i].engine, ipu__meeting_come, r->meeting);
    return IPU_OK;
}

static int build_replicas(struct ipu_replicas *r, const ipu_replicas_options *o)
{
    ipu_system system;

    r->count = ipu_replica_count(o->ipus, o->shards);
    IPU_TRY(r->count);
    IPU_TRY(find_system(o, &system));
    IPU_TRY(find_cuts(r));
    IPU_TRY(make_lanes(r));
    IPU_TRY(
        ipu__replicas_account(r->executable, &system, r->count, o, &r->info));
    return make_threads(r, o->threads);
}

int ipu_replicas_new(const ipu_executable *executable,
                     const ipu_replicas_options *options,
                     ipu_replicas **replicas)
{
    struct ipu_replicas *r;
    int status;

    if (!executable || !options || !replicas)
        return ipu__fail(IPU_ERR_ARGUMENT, "replicas: %s",
                         !executable ? "the executable is NULL"
                         : !options  ? "the options are NULL"
                                     : "the place for them is NULL");
    IPU_TRY(ipu__check_replicas_options(options));
    IPU_TRY(ipu__new(&r, sizeof *r));
    r->executable = executable;
    status = build_replicas(r, options);
    if (status < 0) {
        ipu_replicas_free(r);
        return status;
    }
    *replicas = r;
    return IPU_OK;
}

void ipu_replicas_free(ipu_replicas *r)
{
    if (!r)
        return;
    ipu__thread_pool_free(r->pool);
    ipu__meeting_free(r->meeting);
    for (int32_t i = 0; r->lanes && i < r->count; i++) {
        ipu_engine_free(r->lanes[i].engine);
        free(r->lanes[i].message);
    }
    free(r->lanes);
    free(r->cuts);
    free(r);
}

/* ----------------------------------------------------------------- the host */

static int check_replicas(const ipu_replicas *r)
{
    return r ? IPU_OK : ipu__fail(IPU_ERR_ARGUMENT, "the replicas are NULL");
}

int32_t ipu_replicas_count(const ipu_replicas *r)
{
    IPU_TRY(check_replicas(r));
    return r->count;
}

int ipu_replicas_connect(ipu_replicas *r, const char *name, void *data,
                         size_t bytes)
{
    size_t part;

    IPU_TRY(check_replicas(r));
    part = bytes / (size_t)r->count;
    if (data && bytes % (size_t)r->count)
        return ipu__fail(IPU_ERR_SHAPE,
                         "replicas: %zu bytes for stream '%s' cannot be shared "
                         "out among %d replicas",
                         bytes, name ? name : "", (int)r->count);
    for (int32_t i = 0; i < r->count; i++)
        IPU_TRY(ipu_engine_connect(
            r->lanes[i].engine, name,
            data ? (unsigned char *)data + (size_t)i * part : NULL, part));
    return IPU_OK;
}

int ipu_replicas_connect_shared(ipu_replicas *r, const char *name, void *data,
                                size_t bytes)
{
    const ipu_executable *e;

    IPU_TRY(check_replicas(r));
    e = r->executable;
    for (int32_t i = 0; name && data && i < e->nstreams; i++)
        if (strcmp(e->streams[i].name, name) == 0 &&
            e->streams[i].kind != IPU__STREAM_IN)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "replicas: '%s' is no input: all of them would "
                             "write to the same memory",
                             name);
    for (int32_t i = 0; i < r->count; i++)
        IPU_TRY(ipu_engine_connect(r->lanes[i].engine, name, data, bytes));
    return IPU_OK;
}

int ipu_replicas_write(ipu_replicas *r, const char *name, const void *data,
                       size_t bytes)
{
    IPU_TRY(check_replicas(r));
    for (int32_t i = 0; i < r->count; i++)
        IPU_TRY(ipu_engine_write(r->lanes[i].engine, name, data, bytes));
    return IPU_OK;
}

static int check_replica(const ipu_replicas *r, int32_t replica)
{
    IPU_TRY(check_replicas(r));
    if (replica >= 0 && replica < r->count)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "replicas: there is no replica %d: there are 0 to %d",
                     (int)replica, (int)r->count - 1);
}

int ipu_replicas_read(ipu_replicas *r, int32_t replica, const char *name,
                      void *data, size_t bytes)
{
    IPU_TRY(check_replica(r, replica));
    return ipu_engine_read(r->lanes[replica].engine, name, data, bytes);
}

int ipu_replicas_place(ipu_replicas *r, int32_t replica, const char *name,
                       void *data, size_t bytes)
{
    IPU_TRY(check_replica(r, replica));
    return ipu_engine_place(r->lanes[replica].engine, name, data, bytes);
}

int ipu_replicas_network(ipu_replicas *r,
                         const ipu_network_functions *functions, void *context,
                         int32_t processes)
{
    IPU_TRY(check_replicas(r));
    for (int32_t i = 0; i < r->count; i++)
        IPU_TRY(ipu_engine_network(r->lanes[i].engine, functions, context,
                                   processes));
    return IPU_OK;
}

const ipu_executable *ipu__replicas_program(const ipu_replicas *r)
{
    return r->executable;
}

ipu_engine *ipu__replicas_engine(const ipu_replicas *r, int32_t replica)
{
    return r->lanes[replica].engine;
}

/* ------------------------------------------------------------------ running */

static void note_status(struct lane *lane, int status)
{
    lane->status = status;
    if (status < 0)
        snprintf(lane->message, IPU__EXPLANATION_MAX, "%s", ipu_last_error());
}

static void begin_replica(void *context, int32_t i)
{
    struct ipu_replicas *r = context;

    note_status(&r->lanes[i], ipu__engine_begin(r->lanes[i].engine));
}

static void advance_replica(void *context, int32_t i)
{
    struct ipu_replicas *r = context;

    note_status(&r->lanes[i],
                ipu__engine_advance(r->lanes[i].engine, r->until));
    if (r->meeting)
        ipu__meeting_leave(r->meeting);
}

/* Advances all replicas to the step where they wait. */
static void advance_all(struct ipu_replicas *r)
{
    if (r->meeting)
        ipu__meeting_open(r->meeting);
    ipu__thread_pool_run(r->pool, r->count, advance_replica, r);
}

static void end_replica(void *context, int32_t i)
{
    struct ipu_replicas *r = context;

    note_status(&r->lanes[i], ipu__engine_end(r->lanes[i].engine, IPU_OK));
}

/* Returns the status of all, once they have met: that of the first that failed
 * otherwise than by waiting for another that did. */
static int find_failure(struct ipu_replicas *r)
{
    bool other = false;

    for (int32_t i = 0; i < r->count; i++)
        other |= r->lanes[i].status < 0 && r->lanes[i].status != IPU_ERR_STATE;
    for (int32_t i = 0; i < r->count; i++) {
        if (r->lanes[i].status >= 0 ||
            (other && r->lanes[i].status == IPU_ERR_STATE))
            continue;
        r->callback_status = ipu_engine_callback_status(r->lanes[i].engine);
        return ipu__fail(r->lanes[i].status, "replica %d: %s", (int)i,
                         r->lanes[i].message);
    }
    return IPU_OK;
}

/* Adds up the step's tensors, group by group, once the op has put those of each
 * replica where they are to be. */
static void add_up(struct ipu_replicas *r, const struct ipu__step *step)
{
    const struct ipu__value *value = &r->executable->values[step->output];
    int32_t size = step->attributes.size ? step->attributes.size : r->count;
    float scale = step->attributes.keep ? 1 / (float)size : 1;
    void *tensors[IPU_MAX_IPUS];

    for (int32_t first = 0; first < r->count; first += size) {
        for (int32_t i = 0; i < size; i++)
            tensors[i] =
                ipu__engine_value(r->lanes[first + i].engine, step->output);
        ipu__sum_replicas(value->shape.dtype, size, tensors,
                          ipu__shape_count(&value->shape), scale);
    }
    r->info.done++;
}

/* Checks that all replicas have run the step, or none: an update that depends
 * on data of one replica cannot be an update of all. */
static int check_due(const struct ipu_replicas *r, int32_t step)
{
    const ipu_executable *e = r->executable;
    bool due = ipu__engine_is_due(r->lanes[0].engine, step);

    for (int32_t i = 1; i < r->count; i++)
        if (ipu__engine_is_due(r->lanes[i].engine, step) != due)
            return ipu__fail(IPU_ERR_STATE,
                             "replicas: %s is a sum over replicas in an update "
                             "that is due in replica %d and not in replica %d: "
                             "make its condition of sums over replicas",
                             e->values[e->steps[step].output].name,
                             due ? 0 : (int)i, due ? (int)i : 0);
    return IPU_OK;
}

static int run_parts(struct ipu_replicas *r)
{
    const ipu_executable *e = r->executable;

    ipu__thread_pool_run(r->pool, r->count, begin_replica, r);
    IPU_TRY(find_failure(r));
    for (int32_t c = 0; c < r->ncuts; c++) {
        r->until = r->cuts[c];
        advance_all(r);
        IPU_TRY(find_failure(r));
        if (r->until == e->nsteps || !meets(&e->steps[r->until]))
            continue;
        r->until++;
        advance_all(r);
        IPU_TRY(find_failure(r));
        IPU_TRY(check_due(r, r->until - 1));
        /* The step has not run if its update region is not due. */
        if (ipu__engine_is_due(r->lanes[0].engine, r->until - 1))
            add_up(r, &e->steps[r->until - 1]);
    }
    ipu__thread_pool_run(r->pool, r->count, end_replica, r);
    return find_failure(r);
}

int ipu_replicas_run(ipu_replicas *r)
{
    int status;

    IPU_TRY(check_replicas(r));
    if (r->running)
        return ipu__fail(IPU_ERR_STATE,
                         "the replicas are running: a host call cannot run "
                         "them");
    r->running = true;
    r->callback_status = 0;
    /* All replicas have the same queues. */
    ipu__engine_begin_queues(r->lanes[0].engine);
    status = run_parts(r);
    for (int32_t i = 0; status < 0 && i < r->count; i++)
        ipu__engine_end(r->lanes[i].engine, status);
    ipu__engine_end_queues(r->lanes[0].engine, status);
    r->info.runs += status >= 0;
    r->running = false;
    return status;
}

int ipu_replicas_callback_status(const ipu_replicas *r)
{
    return r ? r->callback_status : 0;
}

int ipu_replicas_stats(const ipu_replicas *r, ipu_replicas_info *info)
{
    uint32_t size;

    IPU_TRY(check_replicas(r));
    if (!info)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "replicas: the place for their account is NULL");
    IPU_TRY(ipu__check_size("replicas info", info->size, sizeof *info));
    size = info->size;
    *info = r->info;
    info->size = size;
    if (r->meeting)
        info->done += ipu__meeting_count(r->meeting);
    return IPU_OK;
}
