/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - starts and ends the world.
 *
 * Start: each rank reads its environment, opens the transport and allocates
 * everything that the engine needs. It keeps its first failure instead of
 * returning it. Then all ranks exchange greetings: their identity, their host,
 * and whether they have failed. So either every rank starts, or every rank
 * returns the same error, that of the lowest rank that failed. All ranks use
 * rank 0's value of settings that must be the same everywhere (the fusion
 * threshold).
 *
 * End: hvd_shutdown sends LEAVE and drives the engine until rank 0 has received
 * LEAVE from all ranks and sends CLOSE. A process that exits or finalises MPI
 * without hvd_shutdown sends LEAVE too, so that the others' requests fail
 * instead of waiting. But it waits for them only for a moment; then it exits
 * without MPI_Finalize, and mpirun ends the job.
 */
#include "core/world/world.h"

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

const char *hvd_version(void)
{
    return HVD_VERSION_STRING;
}

/* -------------------------------------------------------------- beginning */

/* Returns the error with which a wait for other ranks ends while the world
 * starts. */
static int find_end(void *context)
{
    const struct hvd__world *world = context;
    int abort_status = atomic_load(&world->abort_status);

    return abort_status < 0 ? hvd__fail_text(abort_status, world->abort_text)
                            : hvd__guard_verdict(world->guard);
}

struct hvd__asked hvd__world_asked(struct hvd__world *world)
{
    return (struct hvd__asked){find_end, world};
}

static int open_comm(struct hvd__world *world, const void *comm, bool threads)
{
    const struct hvd__asked asked = hvd__world_asked(world);
    int *members, n;

    HVD_TRY(hvd__mpi_members(comm, &members, &n));
    hvd__guard_choose(world->guard, members, n);
    free(members);
    hvd__guard_enter(world->guard, HVD__STAGE_COMM);
    return hvd__mpi_open(comm, threads, &asked, &world->engine.transport);
}

static int open_group(struct hvd__world *world,
                      const struct hvd__origin *origin, bool threads)
{
    const void *comm;
    int status;

    hvd__guard_choose(world->guard, origin->ranks, origin->nranks);
    hvd__guard_enter(world->guard, HVD__STAGE_GROUP);
    HVD_TRY(hvd__group_make(origin, &comm));
    status = open_comm(world, comm, threads);
    hvd__group_free(comm);
    return status;
}

/* Opens the transport of ranks that have no MPI. There is nothing for a guard
 * to do: no call blocks, and the transport itself says whom it misses. */
static int open_tcp(struct hvd__world *world,
                    const struct hvd__tcp_options *given)
{
    const struct hvd__settings *settings = &world->engine.settings;
    const struct hvd__asked asked = hvd__world_asked(world);
    struct hvd__tcp_options options = *given;

    options.limit_ns = settings->start_ns;
    options.report_ns = settings->stall_check_ns;
    options.grace_ns = settings->heartbeat_ns + HVD__FAULT_GRACE_NS;
    HVD_TRY(hvd__watch_exit());
    return hvd__tcp_open(&options, &asked, &world->engine.transport);
}

static int open_transport(struct hvd__world *world,
                          const struct hvd__origin *origin, const char **note)
{
    const struct hvd__guard_options options =
        hvd__ending_options(&world->engine.settings);
    bool is_live = hvd__mpi_is_live(), threads;

    *note = NULL;
    if (origin->tcp)
        return open_tcp(world, origin->tcp);
    if (!origin->comm && !origin->ranks && !hvd__launched() && !is_live)
        return hvd__self_open(&world->engine.transport);
    hvd__ending_expect(&world->engine.settings);
    world->guard =
        hvd__guard_start(&options, is_live ? HVD__STAGE_COMM : HVD__STAGE_MPI);
    if (!world->guard)
        hvd__log(HVD__LOG_WARNING, "hvd_init is not watched: %s",
                 hvd_last_error());
    HVD_TRY(hvd__mpi_start(&threads, note));
    if (origin->ranks)
        return open_group(world, origin, threads);
    HVD_TRY(open_comm(world, origin->comm, threads));
    if (!origin->comm && world->engine.transport->size == 1)
        return hvd__launch_check_alone(hvd__mpi_library());
    return HVD_OK;
}

/* Makes set 0, which holds all ranks. */
static int make_world_set(struct hvd__world *world)
{
    struct hvd__transport *t = world->engine.transport;
    int *ranks = malloc((size_t)t->size * sizeof *ranks);
    struct hvd__set *set;
    int status;

    if (!ranks)
        return hvd__fail_memory((size_t)t->size * sizeof *ranks);
    for (int rank = 0; rank < t->size; rank++)
        ranks[rank] = rank;
    set = hvd__set_new(t, 0, ranks, t->size, 0);
    if (!set)
        return hvd__fail_memory(sizeof *set);
    status = hvd__set_prepare(world, set);
    if (status == HVD_OK)
        status = hvd__agree_tune(set, &world->engine.settings);
    if (status == HVD_OK)
        status = hvd__table_add_set(&world->engine.table, set);
    if (status < 0) {
        hvd__set_retire(set);
        hvd__set_free(set);
    } else {
        hvd__world_move_set(world, set);
    }
    return status;
}

/* Allocates everything, once rank 0's settings are known. */
static int prepare_world(struct hvd__world *world)
{
    struct hvd__transport *t = world->engine.transport;

    HVD_TRY(make_world_set(world));
    /* Every request completes at once in a world of one rank. */
    return t->threads && t->size > 1 ? hvd__progress_start(world) : HVD_OK;
}

static void destroy_world(struct hvd__world *world)
{
    int fd = atomic_load(&world->engine.completion_fd);

    hvd__watch_close(world->watch);
    hvd__progress_stop(world);
    hvd__trace_writer_stop(&world->engine.writer);
    if (world->engine.transport)
        world->engine.transport->close(world->engine.transport);
    for (int i = 0; i < world->engine.table.nsets; i++)
        hvd__set_retire(world->engine.table.sets[i]);
    hvd__table_fini(&world->engine.table);
    hvd__shm_forget();
    hvd__heap_close(world->heap);
    hvd__progress_fini(&world->progress);
    hvd__trace_writer_fini(&world->engine.writer);
    hvd__compress_forget();
    if (fd >= 0)
        close(fd);
    free(world->break_message);
    free(world->host_of);
    hvd__submission_free(world->quick);
    free(world);
}

/* Returns "UCX 1.13.1": what moves data between hosts that share no memory. */
static const char *carrier_of(const struct hvd__transport *transport)
{
    static char text[64]; /* guarded by the lock of hvd_init */

    if (transport->size == 1)
        return "nothing";
    if (strcmp(transport->name, "tcp") == 0)
        return "TCP";
    if (strcmp(transport->name, "ucx") != 0)
        return hvd__mpi_library();
    snprintf(text, sizeof text, "UCX %s", hvd__ucx_version());
    return text;
}

/* Returns this process's rank as far as it is known before ranks meet, else -1.
 */
static int rank_before(const struct hvd__origin *origin)
{
    if (origin->tcp)
        return origin->tcp->rank;
    return origin->comm || origin->ranks ? -1 : hvd__launch_rank();
}

static int start_world(struct hvd__world *world,
                       const struct hvd__origin *origin)
{
    struct hvd__transport *t;
    const char *note;
    char stray[256], wrong[HVD__MESSAGE_MAX];
    int status = hvd__settings_read(&world->engine.settings);

    /* A wrong setting is reported when all ranks meet. */
    if (status < 0)
        snprintf(wrong, sizeof wrong, "%s", hvd_last_error());
    hvd__log_set(world->engine.settings.log_level, rank_before(origin));
    HVD_TRY(open_transport(world, origin, &note));
    t = world->engine.transport;
    t->sent_bytes = &world->engine.metrics.sent_bytes;
    hvd__log_set(world->engine.settings.log_level, t->rank);
    hvd__guard_enter(world->guard, HVD__STAGE_MEET);
    if (status < 0)
        hvd__fail_text(status, wrong);
    HVD_TRY(hvd__world_meet(world, status));
    hvd__guard_enter(world->guard, HVD__STAGE_TRANSPORT);
    HVD_TRY(hvd__world_choose_transport(world));
    t = world->engine.transport;
    HVD_TRY(hvd__world_find_costs(world));
    /* The background thread must move nothing before everything is ready. */
    hvd__progress_take(world);
    status = prepare_world(world);
    hvd__guard_enter(world->guard, HVD__STAGE_PREPARE);
    HVD_TRY(hvd__world_meet(world, status));
    HVD_TRY(hvd__world_start_traces(world));
    hvd__progress_give(world);
    if (note && t->rank == 0)
        hvd__log(HVD__LOG_WARNING, "%s", note);
    if (t->rank == 0 && hvd__settings_stray(stray, sizeof stray))
        hvd__log(HVD__LOG_WARNING, "%s", stray);
    hvd__topk_set_ratio(world->engine.settings.topk_ratio);
    hvd__log(HVD__LOG_INFO,
             "hvd %s, rank %d of %d, local %d of %d, over %s; fusion "
             "threshold %zu bytes",
             HVD_VERSION_STRING, t->rank, t->size, world->topology.local_rank,
             world->topology.local_size, carrier_of(t),
             world->engine.settings.fusion_threshold);
    return HVD_OK;
}

/* Decides what happens when MPI ends after this world; a world of one rank
 * changes nothing. status is the reason why the world ended or failed to start.
 */
static void end_of(const struct hvd__world *world, int status)
{
    bool is_lost = status == HVD_ERR_LOST || status == HVD_ERR_STALLED;

    if (is_lost ||
        (world->engine.transport && world->engine.transport->size > 1))
        hvd__ending_set(is_lost || atomic_load(&world->broken), status);
    hvd__ending_resume();
}

static int create_world(const struct hvd__origin *origin,
                        struct hvd__world **created)
{
    struct hvd__world *world = calloc(1, sizeof *world);
    int status;

    if (!world)
        return hvd__fail_memory(sizeof *world);
    atomic_init(&world->engine.completion_fd, -1);
    hvd__trace_writer_init(&world->engine.writer);
    hvd__table_init(&world->engine.table);
    world->engine.table.metrics = &world->engine.metrics;
    status = hvd__progress_init(&world->progress);
    if (status == HVD_OK)
        status = start_world(world, origin);
    hvd__guard_stop(world->guard, status);
    world->guard = NULL;
    if (status < 0) {
        end_of(world, status);
        destroy_world(world);
        return status;
    }
    *created = world;
    return HVD_OK;
}

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
        status = create_world(origin, &world);
        if (world)
            atomic_store_explicit(&the_world, world, memory_order_release);
    }
    pthread_mutex_unlock(&life);
    return status;
}

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
        end_of(world, status);
        destroy_world(world);
    }
    pthread_mutex_unlock(&life);
    return status;
}

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
        end_of(world, HVD_OK);
        destroy_world(world);
    } else {
        /* Other threads may be inside the library, so only its own threads are
         * stopped. Setting the handler again keeps MPI from being finalised. */
        hvd__progress_stop(world);
        hvd__trace_writer_stop(&world->engine.writer);
        hvd__mpi_before_end(process_ends);
    }
    pthread_mutex_unlock(&life);
}
