/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - who moves a simulated world, behind the interface of
 * core/world/progress.h. The program is linked with this file in place of
 * core/world/progress.c.
 *
 * A rank's program is a fiber. Where a thread would wait, the fiber steps its
 * world and lets others run. The background thread is a step that the
 * scheduler makes when the role of the driver is free (ranks.c).
 */
#include "core/world/progress.h"

#include "base/clock.h"
#include "core/world/world.h"
#include "sim.h"

int hvd__progress_init(struct hvd__progress *progress)
{
    *progress = (struct hvd__progress){0};
    return HVD_OK;
}

void hvd__progress_fini(struct hvd__progress *progress)
{
    (void)progress;
}

int hvd__progress_start(struct hvd__world *world)
{
    world->progress.has_thread = true;
    return HVD_OK;
}

void hvd__progress_stop(struct hvd__world *world)
{
    world->progress.has_thread = false;
}

/* The transport of a simulated world knows no MPI that only some threads may
 * call. */
bool hvd__progress_is_own_thread(void)
{
    return false;
}

bool hvd__progress_take(struct hvd__world *world)
{
    bool nobody = false;

    return atomic_compare_exchange_strong(&world->progress.driving, &nobody,
                                          true);
}

void hvd__progress_give(struct hvd__world *world)
{
    atomic_store(&world->progress.driving, false);
}

static bool step(struct hvd__world *world)
{
    bool moved;

    if (!hvd__progress_take(world))
        return false;
    moved = hvd__world_step(world);
    hvd__progress_give(world);
    sim.self->moved |= moved;
    return moved;
}

void hvd__progress_once(struct hvd__world *world)
{
    while (step(world) && !world->progress.has_thread)
        continue;
}

void hvd__progress_wake(struct hvd__world *world)
{
    if (!world->progress.has_thread) {
        hvd__progress_once(world);
    } else if (hvd__progress_take(world)) {
        hvd__world_post(world);
        hvd__progress_give(world);
    }
}

/* Does the rest after a submission, as the real one. That one posts under the
 * lock of the request table, which keeps the role from other threads; here the
 * role itself does, for a post may let other fibers run. */
static void pass_on(struct hvd__world *world,
                    struct hvd__submission *submission)
{
    bool took = hvd__progress_take(world);
    bool posted =
        hvd__world_pass(world, submission, took && world->progress.has_thread);

    sim.self->moved = true;
    if (took)
        hvd__progress_give(world);
    if (!posted)
        hvd__progress_wake(world);
}

int hvd__progress_submit(struct hvd__world *world,
                         struct hvd__submission *submission,
                         hvd_handle *handles)
{
    int status = hvd__table_enter(&world->engine.table, submission, handles);

    if (status == HVD_OK)
        pass_on(world, submission);
    return status;
}

bool hvd__progress_resubmit(struct hvd__world *world, const hvd_request *given,
                            const char *name, hvd_handle *handle)
{
    bool timed = hvd__trace_writer_listens(&world->engine.writer);
    struct hvd__submission *submission =
        hvd__table_reenter(&world->engine.table, given, name, timed, handle);

    if (submission)
        pass_on(world, submission);
    return submission != NULL;
}

bool hvd__progress_until(struct hvd__world *world,
                         bool (*done)(const void *context), const void *context,
                         int64_t limit_ns)
{
    int64_t until = hvd__now_ns() + limit_ns;

    while (!done(context)) {
        step(world);
        if (done(context))
            break;
        if (limit_ns > 0 && hvd__now_ns() > until)
            return false;
        sim_yield();
    }
    sim.self->moved = true;
    return true;
}
