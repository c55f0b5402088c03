/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - makes a world and frees it. world.c calls it, with the lock of
 * hvd_init.
 *
 * Each rank reads its environment, opens the transport and allocates
 * everything that the engine needs. It keeps its first failure instead of
 * returning it. Then all ranks exchange greetings: their identity, their host,
 * and whether they have failed. So either every rank starts, or every rank
 * returns the same error, that of the lowest rank that failed. All ranks use
 * rank 0's value of settings that must be the same everywhere (the fusion
 * threshold).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/left.h"
#include "base/log.h"
#include "base/status.h"
#include "core/agree/agree.h"
#include "core/request/compress.h"
#include "core/request/topk.h"
#include "core/run/complete.h"
#include "core/world/elastic.h"
#include "core/world/ending.h"
#include "core/world/grow.h"
#include "core/world/launch.h"
#include "core/world/number.h"
#include "core/world/recover.h"
#include "core/world/world.h"
#include "transport/fault.h"
#include "transport/shm/shm.h"

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
    if (status == HVD_OK) /* else MPI may crash in it (transport/mpi.c) */
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

/* The transport is made of the first world's, which needs nothing of MPI that
 * could block. */
static int open_survivors(struct hvd__world *world,
                          const struct hvd__origin *origin)
{
    const struct hvd__asked asked = hvd__world_asked(world);
    struct hvd__transport *root = origin->elastic->root;
    const struct hvd__shrink to = {
        .ranks = origin->ranks,
        .n = origin->nranks,
        .generation = hvd__members_round(origin->elastic->members),
        .asked = &asked,
        .limit_ns = world->engine.settings.start_ns,
        .report_ns = world->engine.settings.stall_check_ns,
    };

    world->elastic = origin->elastic;
    world->last_id = origin->elastic->last_id;
    HVD_TRY(root->shrink(root, &to, &world->engine.transport));
    return world->elastic->places ? hvd__grow_open(world, origin, &asked)
                                  : HVD_OK;
}

static int enter_cluster(struct hvd__world *world,
                         const struct hvd__origin *origin)
{
    const struct hvd__asked asked = hvd__world_asked(world);

    HVD_TRY(hvd__watch_exit());
    return hvd__grow_enter(world, origin, &asked);
}

static int open_transport(struct hvd__world *world,
                          const struct hvd__origin *origin, const char **note)
{
    const struct hvd__guard_options options =
        hvd__ending_options(&world->engine.settings);
    bool is_live = hvd__mpi_is_live(), threads;

    *note = NULL;
    if (origin->elastic)
        return open_survivors(world, origin);
    if (origin->lobby)
        return enter_cluster(world, origin);
    if (origin->tcp)
        return open_tcp(world, origin->tcp);
    if (!origin->comm && !origin->ranks && !hvd__launched() && !is_live)
        return hvd__self_open(&world->engine.transport);
    if (!is_live)
        HVD_TRY(hvd__launch_check_pmix());
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
        status = hvd__agree_tune(set);
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

void hvd__world_destroy(struct hvd__world *world)
{
    int fd = atomic_load(&world->engine.completion_fd);
    struct hvd__transport *t = world->engine.transport;
    const struct hvd__transport *root =
        world->elastic ? world->elastic->root : NULL;

    hvd__watch_close(world->watch);
    hvd__progress_stop(world);
    hvd__trace_writer_stop(&world->engine.writer);
    if (t && root && strcmp(t->name, "ucx") == 0)
        t = hvd__ucx_drop(t);
    if (t && t != root)
        t->close(t);
    hvd__elastic_close(world->elastic);
    hvd__lobby_close(world->lobby);
    for (int i = 0; i < world->engine.table.nsets && !world->keeps_memory; i++)
        hvd__set_retire(world->engine.table.sets[i]);
    if (!world->keeps_memory)
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
    free(world->processes);
    hvd__submission_free(world->quick);
    if (world->keeps_memory)
        hvd__leave_behind(world);
    else
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

/* Says once what is strange about the job. */
static void warn(const struct hvd__world *world, const char *note)
{
    char stray[256];

    if (world->engine.transport->rank != 0)
        return;
    if (note)
        hvd__log(HVD__LOG_WARNING, "%s", note);
    if (hvd__settings_stray(stray, sizeof stray))
        hvd__log(HVD__LOG_WARNING, "%s", stray);
}

/* Returns 1 if the ranks are an assembly (elastic.h), of which a world is to be
 * made. */
static int start_world(struct hvd__world *world,
                       const struct hvd__origin *origin)
{
    struct hvd__transport *t;
    const char *note;
    char wrong[HVD__MESSAGE_MAX];
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
    if (hvd__elastic_is_assembly(world)) {
        warn(world, note);
        return 1;
    }
    hvd__guard_enter(world->guard, HVD__STAGE_TRANSPORT);
    HVD_TRY(hvd__world_choose_transport(world));
    t = world->engine.transport;
    HVD_TRY(hvd__world_find_costs(world));
    /* The background thread must move nothing before everything is ready. */
    hvd__progress_take(world);
    status = prepare_world(world);
    hvd__guard_enter(world->guard, HVD__STAGE_PREPARE);
    status = hvd__world_meet(world, status);
    if (status == HVD_OK)
        status = hvd__world_start_traces(world);
    HVD_TRY(hvd__grow_settle(world, status));
    HVD_TRY(hvd__elastic_begin(world));
    hvd__progress_give(world);
    warn(world, t->threads ? NULL : note);
    hvd__topk_set_ratio(world->engine.settings.topk_ratio);
    hvd__log(HVD__LOG_INFO,
             "hvd %s, rank %d of %d, local %d of %d, over %s; fusion "
             "threshold %zu bytes",
             HVD_VERSION_STRING, t->rank, t->size, world->topology.local_rank,
             world->topology.local_size, carrier_of(t),
             world->engine.settings.fusion_threshold);
    return HVD_OK;
}

void hvd__world_end_of(const struct hvd__world *world, int status)
{
    bool is_lost = status == HVD_ERR_LOST || status == HVD_ERR_STALLED;

    if (hvd__elastic_has_lost(world->elastic))
        hvd__ending_set(true, "ranks were lost earlier, and it waits for them");
    else if (is_lost ||
             (world->engine.transport && world->engine.transport->size > 1))
        hvd__ending_set(is_lost || atomic_load(&world->broken),
                        is_lost ? hvd_last_error() : "");
    hvd__ending_resume();
}

static atomic_llong nworlds; /* how many have started */

int64_t hvd__world_number(void)
{
    return atomic_load(&nworlds);
}

/* Makes the first world of those who are no spares. Frees the one in which all
 * have met. */
static int leave_assembly(struct hvd__world *world, struct hvd__world **created)
{
    struct hvd__elastic *elastic = world->elastic;

    world->elastic = NULL;
    world->engine.transport = NULL;
    hvd__world_destroy(world);
    return hvd__world_found(elastic, created);
}

int hvd__world_create(const struct hvd__origin *origin,
                      struct hvd__world **created)
{
    struct hvd__world *world = calloc(1, sizeof *world);
    int status;

    if (!world)
        return hvd__fail_memory(sizeof *world);
    atomic_init(&world->engine.completion_fd, -1);
    world->lobby = origin->lobby;
    world->recovery.old_rank = -1;
    hvd__trace_writer_init(&world->engine.writer);
    hvd__table_init(&world->engine.table);
    world->engine.table.metrics = &world->engine.metrics;
    status = hvd__progress_init(&world->progress);
    if (status == HVD_OK)
        status = start_world(world, origin);
    hvd__guard_stop(world->guard, status < 0 ? status : HVD_OK);
    world->guard = NULL;
    if (status > 0)
        return leave_assembly(world, created);
    if (status < 0) {
        hvd__grow_cancel(world);
        if (origin->elastic && origin->elastic == world->elastic) {
            if (world->engine.transport)
                hvd__elastic_hand_over(world);
            world->elastic = NULL; /* it stays the caller's */
        }
        if (!origin->elastic)
            hvd__world_end_of(world, status);
        if (world->engine.transport)
            world->engine.transport->is_broken = true;
        hvd__world_destroy(world);
        return status;
    }
    atomic_fetch_add(&nworlds, 1);
    world->admission = NULL;
    world->parent = NULL;
    *created = world;
    return HVD_OK;
}