/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - the life of the world: this file has the one that stands, lets
 * start.c make it and recover.c replace it, and ends it.
 *
 * End: hvd_shutdown sends LEAVE and drives the engine until rank 0 has received
 * LEAVE from all ranks and sends CLOSE. A process that exits or finalises MPI
 * without hvd_shutdown sends LEAVE too, so that the others' requests fail
 * instead of waiting. But it waits for them only for a moment; then it exits
 * without MPI_Finalize, and mpirun ends the job.
 */
#include "core/world/world.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "core/agree/agree.h"
#include "core/request/compress.h"
#include "core/request/topk.h"
#include "core/run/complete.h"
#include "core/world/ending.h"
#include "core/world/init_cluster.h"
#include "core/world/launch.h"
#include "core/world/number.h"
#include "core/world/recover.h"
#include "transport/fault.h"
#include "transport/shm/shm.h"

/* The time for which a process that exits without hvd_shutdown waits for the
 * others. */
#define EXIT_LIMIT_NS INT64_C(2000000000)

static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
/* hvd__world_init stores a world that has started (release); current_world()
 * loads it (acquire) on any thread. */
static struct hvd__world *_Atomic the_world;
static atomic_bool was_shut_down;
static atomic_bool was_forked; /* this process's parent had a world */
/* The parent's world, which a forked child must not free. It is volatile
 * because only memory checkers read it. */
static struct hvd__world *volatile left_alone;

static struct hvd__world *current_world(void)
{
    return atomic_load_explicit(&the_world, memory_order_acquire);
}

static int no_world_after_fork(void)
{
    return hvd__fail(HVD_ERR_NOT_INITIALIZED,
                     "this process was forked from one that had called "
                     "hvd_init, and is no rank: only its parent is");
}

/* The text names no function, because the program may have called another one
 * than the caller. */
static int no_world(int status)
{
    return hvd__fail(status,
                     atomic_load(&was_shut_down)
                         ? "hvd_shutdown has been called; call hvd_init "
                           "to start again"
                         : "hvd_init has not been called");
}

int hvd__world_get(struct hvd__world **world)
{
    *world = current_world();
    if (*world)
        return HVD_OK;
    if (atomic_load(&was_forked))
        return no_world_after_fork();
    return no_world(atomic_load(&was_shut_down) ? HVD_ERR_SHUTDOWN
                                                : HVD_ERR_NOT_INITIALIZED);
}

/* Fails with the reason for which the world broke. */
static int fail_broken(const struct hvd__world *world)
{
    return hvd__fail_text(world->break_status,
                          world->break_message
                              ? world->break_message
                              : hvd_strerror(world->break_status));
}

/* -------------------------------------------------------------- who is who */

int hvd_is_initialized(void)
{
    return current_world() != NULL;
}

int hvd_check(void)
{
    struct hvd__world *world;
    int status;

    HVD_TRY(hvd__world_get(&world));
    if (atomic_load(&world->broken))
        return fail_broken(world);
    status = atomic_load(&world->abort_status);
    return status < 0 ? hvd__fail_text(status, world->abort_text) : HVD_OK;
}

/* Defines a function that returns a number of the world, or
 * HVD_ERR_NOT_INITIALIZED. */
#define WHO(function, number)                                                  \
    int function(void)                                                         \
    {                                                                          \
        const struct hvd__world *world = current_world();                      \
        if (world)                                                             \
            return world->number;                                              \
        if (atomic_load(&was_forked))                                          \
            return no_world_after_fork();                                      \
        return no_world(HVD_ERR_NOT_INITIALIZED);                              \
    }

WHO(hvd_rank, engine.transport->rank)
WHO(hvd_size, engine.transport->size)
WHO(hvd_local_rank, topology.local_rank)
WHO(hvd_local_size, topology.local_size)
WHO(hvd_cross_rank, topology.cross_rank)
WHO(hvd_cross_size, topology.cross_size)

int64_t hvd__world_straggler_ns(void)
{
    const struct hvd__world *world = current_world();

    return world ? world->engine.settings.straggler_ns : 0;
}

const char *hvd_version(void)
{
    return HVD_VERSION_STRING;
}

/* -------------------------------------------------------------- beginning */

static void process_ends(void);

/* Runs in a forked child, which has no other threads and must not use the
 * parent's MPI. It drops the world without touching it. */
static void forget_world(void)
{
    struct hvd__world *world = current_world();

    hvd__heap_forked();
    if (!world)
        return;
    left_alone = world;
    atomic_store(&the_world, NULL);
    atomic_store(&was_forked, true);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_world);
}

int hvd__world_init(const struct hvd__origin *origin)
{
    static pthread_once_t watching = PTHREAD_ONCE_INIT;
    struct hvd__world *world = NULL;
    int status = HVD_OK;

    if (atomic_load(&was_forked))
        return no_world_after_fork();
    pthread_once(&watching, watch_forks);
    pthread_mutex_lock(&life);
    if (!current_world()) {
        /* The handler is also set while the world starts: an exit then must not
         * wait in MPI_Finalize for ranks that wait for this one. */
        hvd__mpi_before_end(process_ends);
        status = hvd__world_create(origin, &world);
        if (world)
            atomic_store_explicit(&the_world, world, memory_order_release);
    }
    pthread_mutex_unlock(&life);
    return status;
}

/* A note of the name "hvd" tells tools that a program file contains libhvd.a:
 * hvd-chaos looks for it, and readelf -n shows it. It takes 16 bytes of the
 * file, and nothing at run time. */
static const struct {
    ElfW(Nhdr) header;
    char name[4];
} program_note __attribute__((section(".note.hvd"), used, aligned(4))) = {
    {.n_namesz = 4, .n_descsz = 0, .n_type = 1}, "hvd"};

int hvd_init(void)
{
    /* A launcher's word counts more than TF_CONFIG, which jobs may inherit. */
    if (!current_world() && !hvd__launched() && !hvd__mpi_is_live()) {
        int status = hvd__world_init_environment();

        if (status != 0)
            return status < 0 ? status : HVD_OK;
    }
    return hvd__world_init(&(struct hvd__origin){0});
}

/* ------------------------------------------------------------------ the end */

static bool is_over(const void *context)
{
    const struct hvd__world *world = context;

    return atomic_load(&world->closed) || atomic_load(&world->broken);
}

/* Announces that this rank leaves all sets and moves the engine until all ranks
 * have left, or for limit_ns (0: no limit). Returns true if the world is over.
 */
static bool leave_world(struct hvd__world *world, int64_t limit_ns)
{
    struct hvd__set *set = NULL;

    while ((set = hvd__table_next_set(&world->engine.table, set))) {
        hvd__table_close(&world->engine.table, set, HVD_ERR_SHUTDOWN,
                         "hvd_shutdown has been called");
        atomic_store(&set->leaving, true);
    }
    return hvd__progress_until(world, is_over, world, limit_ns);
}

int hvd_shutdown(void)
{
    struct hvd__world *world;
    int status = HVD_OK;

    if (hvd__in_callback())
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a callback must not call hvd_shutdown");
    pthread_mutex_lock(&life);
    world = current_world();
    if (world) {
        leave_world(world, 0);
        hvd__watch_leave(world->watch);
        atomic_store(&the_world, NULL);
        atomic_store(&was_shut_down, true);
        if (atomic_load(&world->broken))
            status = fail_broken(world);
        else if (world->elastic && world->elastic->lobby)
            hvd__lobby_end(world->elastic->lobby);
        hvd__elastic_leave(world->elastic, status == HVD_OK);
        hvd__world_end_of(world, status);
        hvd__world_destroy(world);
    }
    pthread_mutex_unlock(&life);
    return status;
}

/* ---------------------------------------------------------------- going on */

static int check_elastic(const struct hvd__world *world)
{
    if (hvd__in_callback())
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a callback must not call hvd_recover");
    if (world->elastic)
        return HVD_OK;
    return hvd__fail(HVD_ERR_UNSUPPORTED,
                     "this world cannot be recovered from: it needs "
                     "HVD_ELASTIC=1 on rank 0, two ranks or more, and shared "
                     "memory of those of each host");
}

static int check_room(const hvd_recovery *recovery, size_t size)
{
    return recovery && size < sizeof recovery->size
               ? hvd__fail(HVD_ERR_ARGUMENT, "hvd_recovery has %zu bytes", size)
               : HVD_OK;
}

static void tell(const hvd_recovery *from, hvd_recovery *recovery, size_t size)
{
    hvd_recovery told = *from;

    told.size = (uint32_t)(size < sizeof told ? size : sizeof told);
    if (recovery)
        memcpy(recovery, &told, told.size);
}

int hvd__world_replace(const int64_t *tickets, hvd_recovery *recovery,
                       size_t size)
{
    struct hvd__world *world, *made = NULL;
    int status;

    HVD_TRY(check_room(recovery, size));
    pthread_mutex_lock(&life);
    status = hvd__world_get(&world);
    if (status == HVD_OK)
        status = check_elastic(world);
    if (status == HVD_OK) {
        if (tickets)
            leave_world(world, 0);
        atomic_store(&the_world, NULL);
        status = hvd__world_recover(world, tickets, &made);
        if (made)
            tell(&made->recovery, recovery, size);
        atomic_store_explicit(&the_world, made, memory_order_release);
        atomic_store(&was_shut_down, !made);
        if (!made) {
            hvd__ending_set(true, hvd_last_error());
            hvd__ending_resume();
        }
    }
    pthread_mutex_unlock(&life);
    return status;
}

int hvd_recover(hvd_recovery *recovery, size_t size)
{
    return hvd__world_replace(NULL, recovery, size);
}

int hvd_last_recovery(hvd_recovery *recovery, size_t size)
{
    struct hvd__world *world;

    HVD_TRY(check_room(recovery, size));
    HVD_TRY(hvd__world_get(&world));
    tell(&world->recovery, recovery, size);
    return HVD_OK;
}

/* Writes up to max of those that a broken world has lost. Returns how many
 * there are. */
static int list_lost(const struct hvd__world *world, hvd_lost_rank *lost,
                     int32_t max)
{
    int n = 0;

    for (int rank = 0; rank < world->engine.transport->size; rank++) {
        hvd_lost_reason reason = hvd__watch_reason(world->watch, rank);

        if (reason != 0 && n++ < max)
            lost[n - 1] = (hvd_lost_rank){rank, reason};
    }
    return n;
}

int hvd_lost_ranks(hvd_lost_rank *lost, int32_t max)
{
    const struct hvd__elastic *elastic;
    struct hvd__world *world;

    if (max < 0 || (max > 0 && !lost))
        return hvd__fail(HVD_ERR_ARGUMENT, "lost has room for %d ranks%s",
                         (int)max, lost ? "" : ", and is NULL");
    HVD_TRY(hvd__world_get(&world));
    elastic = world->elastic;
    if (atomic_load(&world->broken) || atomic_load(&world->abort_status) < 0)
        return list_lost(world, lost, max);
    for (int i = 0; elastic && i < elastic->nlost && i < max; i++)
        lost[i] = elastic->lost[i];
    return elastic ? elastic->nlost : 0;
}

/* ------------------------------------------------------------------ exits */

/* Handles an exit of the process, or MPI_Finalize, while the library is still
 * running. */
static void process_ends(void)
{
    struct hvd__world *world;
    bool over;

    if (pthread_mutex_trylock(&life) != 0) {
        /* Another thread is starting or stopping the world and uses MPI. */
        hvd__mpi_before_end(process_ends);
        return;
    }
    world = current_world();
    if (!world) {
        pthread_mutex_unlock(&life);
        return;
    }
    over = !hvd__in_callback() && leave_world(world, EXIT_LIMIT_NS) &&
           !atomic_load(&world->broken);
    if (over) {
        hvd__watch_leave(world->watch);
        atomic_store(&the_world, NULL);
        hvd__elastic_leave(world->elastic, true);
        hvd__world_end_of(world, HVD_OK);
        hvd__world_destroy(world);
    } else {
        /* Other threads may be inside the library, so only its own threads are
         * stopped. Setting the handler again keeps MPI from being finalised. */
        hvd__progress_stop(world);
        hvd__trace_writer_stop(&world->engine.writer);
        hvd__mpi_before_end(process_ends);
    }
    pthread_mutex_unlock(&life);
}
