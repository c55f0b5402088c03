/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet.c - the meetings of all ranks while a world starts: the ranks exchange
 * their identity and host, their settings, and whether each has failed so far.
 * The first meeting decides about the watchdog, the memory that ranks of a host
 * share, and whether they may spin. world.c and traces.c call it, with the lock
 * of hvd_init.
 *
 * The watchdog's thread calls set_abort_status, is_member and list_requests. It
 * writes abort_text before it stores abort_status; a thread that loads a
 * negative abort_status may read the text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"
#include "core/world/cores.h"
#include "core/world/elastic.h"
#include "core/world/ending.h"
#include "core/world/grow.h"
#include "core/world/world.h"

/* Ranks exchange their reports at every meeting. */
struct report {
    int32_t status; /* negative: this rank cannot start */
    char message[HVD__MESSAGE_MAX];
};

/* Ranks exchange greetings at their first meeting. */
struct greeting {
    struct report report;
    char version[16];
    char host[128]; /* name, and an id that differs between hosts of one name */
    struct hvd__settings settings;
    struct hvd__cores cores; /* cores that it may use */
    int32_t last_id;         /* of process sets of its earlier worlds */
    uint64_t process;        /* drawn once: tells processes apart */
    int32_t is_new;          /* it has been in no world yet */
};

/* Returns the number of this process. The caller has the lock of hvd_init. */
static uint64_t process_number(void)
{
    static uint64_t number;

    if (number == 0 &&
        getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = (uint64_t)getpid() << 32 ^ (uint64_t)hvd__now_ns();
    return number;
}

static void name_host(char *host, size_t size)
{
    char boot[40] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (gethostname(host, size) != 0)
        snprintf(host, size, "unknown");
    host[size - sizeof boot - 1] = '\0';
    if (file) {
        if (!fgets(boot, sizeof boot, file))
            boot[0] = '\0';
        fclose(file);
    }
    boot[strcspn(boot, "\n")] = '\0';
    snprintf(host + strlen(host), size - strlen(host), " %s", boot);
}

static const char *host_of(const void *greetings, int rank)
{
    return ((const struct greeting *)greetings)[rank].host;
}

/* Passes on what a rank reports. */
static int judge_report(const struct report *report, int rank, int size)
{
    if (report->status < 0 && size > 1)
        return hvd__fail(report->status, "rank %d: %s", rank, report->message);
    if (report->status < 0)
        return hvd__fail_text(report->status, report->message);
    return HVD_OK;
}

/* Returns the first failure of all ranks, or an error if their versions differ.
 */
static int judge_greetings(const struct greeting *all, int size)
{
    for (int r = 0; r < size; r++)
        HVD_TRY(judge_report(&all[r].report, r, size));
    for (int r = 1; r < size; r++)
        if (strcmp(all[r].version, all[0].version) != 0)
            return hvd__fail(HVD_ERR_MISMATCH,
                             "rank %d runs hvd %s, rank 0 hvd %s: install the "
                             "same version on every host",
                             r, all[r].version, all[0].version);
    return HVD_OK;
}

static void fill_report(int status, struct report *mine)
{
    *mine = (struct report){.status = status};
    if (status < 0)
        snprintf(mine->message, sizeof mine->message, "%s", hvd_last_error());
}

static void fill_greeting(const struct hvd__world *world, int status,
                          struct greeting *mine)
{
    *mine = (struct greeting){.settings = world->engine.settings};
    mine->last_id = world->last_id;
    mine->process = process_number();
    mine->is_new = !world->elastic || world->elastic->is_new;
    fill_report(status, &mine->report);
    hvd__cores_read(&mine->cores);
    snprintf(mine->version, sizeof mine->version, "%s", HVD_VERSION_STRING);
    name_host(mine->host, sizeof mine->host);
}

/* Returns the error with which a wait for other ranks ends while the world
 * starts. */
static int find_end(void *context)
{
    const struct hvd__world *world = context;
    int abort_status = atomic_load(&world->abort_status);

    if (world->elastic)
        HVD_TRY(hvd__members_look(world->elastic->members));
    HVD_TRY(hvd__grow_find_end(world));
    return abort_status < 0 ? hvd__fail_text(abort_status, world->abort_text)
                            : hvd__guard_verdict(world->guard);
}

struct hvd__asked hvd__world_asked(struct hvd__world *world)
{
    return (struct hvd__asked){find_end, world};
}

/* ------------------------------------------------------- for the watchdog */

/* Runs on the watchdog's thread, which must not use the driver's fields: the
 * next driver sees the status. It is logged at once, because perhaps no thread
 * is driving. */
static void set_abort_status(void *context, int status, const char *text)
{
    struct hvd__world *world = context;

    snprintf(world->abort_text, sizeof world->abort_text, "%s", text);
    hvd__log(HVD__LOG_ERROR, "%s: %s", hvd_strerror(status), text);
    atomic_store(&world->abort_status, status);
}

static bool is_member(void *context, int32_t id, int rank)
{
    struct hvd__world *world = context;
    struct hvd__set *set = hvd__table_find_set(&world->engine.table, id);
    bool is = set && hvd__set_find(set, rank) >= 0;

    hvd__set_put(set);
    return is;
}

/* Younger requests are not listed: they are not needed, and listing takes time.
 */
#define OLD_ENOUGH_NS INT64_C(100000000)

static void list_submission(const struct hvd__submission *submission,
                            struct hvd__watch_request *request)
{
    struct hvd__text name = hvd__text_at(request->name, sizeof request->name);

    request->key = hvd__mix(submission->key + (uint64_t)submission->set->id);
    request->set = submission->set->id;
    request->decided = atomic_load(&submission->state.decided);
    request->since_ns = submission->state.submitted_ns;
    hvd__text_add_name(&name, submission->name);
    hvd__signature_print(&submission->requests[0].signature, request->what,
                         sizeof request->what);
}

static int list_requests(void *context, struct hvd__watch_request *oldest,
                         int max)
{
    struct hvd__world *world = context;
    int64_t limit = hvd__now_ns() - OLD_ENOUGH_NS;
    int n = 0;

    if (hvd__table_busy(&world->engine.table) == 0)
        return 0;
    hvd__mutex_lock(&world->engine.table.lock);
    for (int i = 0; i < world->engine.table.nsets; i++) {
        const struct hvd__submission *submission =
            world->engine.table.sets[i]->requests.in_flight.oldest;

        /* The in-flight table is in the order of submission. */
        for (; submission && n < max && submission->state.submitted_ns <= limit;
             submission = submission->later)
            list_submission(submission, &oldest[n++]);
    }
    hvd__mutex_unlock(&world->engine.table.lock);
    return n;
}

static int watch_ranks(struct hvd__world *world, const struct greeting *all)
{
    const struct hvd__settings *s = &world->engine.settings;
    const struct hvd__watch_options options = {
        .heartbeat_ns = s->heartbeat_ns,
        .stall_check_ns = s->stall_check_ns,
        .stall_shutdown_ns = s->stall_shutdown_ns,
        /* A process that may recover has time for what it is at. */
        .exit_grace_ns = world->elastic ? 0 : s->exit_grace_ns,
        .members = world->elastic ? world->elastic->members : NULL,
        .address = world->engine.transport->address,
    };
    const struct hvd__watch_subject subject = {
        .context = world,
        .requests = list_requests,
        .is_member = is_member,
        .end = set_abort_status,
    };

    return hvd__watch_open(&world->watch, world->engine.transport, host_of, all,
                           &options, &subject);
}

/* The greetings of the ranks of this host. */
struct neighbours {
    const struct greeting *all;
    const int *ranks;
};

static const struct hvd__cores *cores_of(const void *context, int i)
{
    const struct neighbours *neighbours = context;

    return &neighbours->all[neighbours->ranks[i]].cores;
}

/* Sets up the cores and memory that this rank shares with the ranks of its
 * host. */
static int share_host(struct hvd__world *world, const struct greeting *all)
{
    struct hvd__transport *t = world->engine.transport;
    int *locals = malloc((size_t)t->size * sizeof *locals), nlocals = 0;
    char why[192];
    int status;

    if (!locals)
        return hvd__fail_memory((size_t)t->size * sizeof *locals);
    world->host_of = calloc((size_t)t->size, sizeof *world->host_of);
    if (!world->host_of) {
        free(locals);
        return hvd__fail_memory((size_t)t->size * sizeof *world->host_of);
    }
    for (int rank = 0; rank < t->size; rank++) {
        while (strcmp(all[world->host_of[rank]].host, all[rank].host) != 0)
            world->host_of[rank]++;
        if (strcmp(all[rank].host, all[t->rank].host) == 0)
            locals[nlocals++] = rank;
    }
    world->progress.may_spin =
        hvd__cores_suffice(nlocals, world->topology.local_rank, cores_of,
                           &(struct neighbours){all, locals});
    status = hvd__heap_open(t, locals, nlocals, world->engine.settings.shm_size,
                            &world->heap, why, sizeof why);
    if (status == HVD_OK && why[0] && world->topology.local_rank == 0)
        hvd__log(HVD__LOG_WARNING,
                 "ranks of this host share no memory, and are slower: %s", why);
    free(locals);
    return status;
}

/* Evaluates the first meeting: the hosts of all ranks and the settings that
 * apply to all. The world does not move yet. */
static int note_processes(struct hvd__world *world, const struct greeting *all)
{
    const int size = world->engine.transport->size;

    world->processes = malloc((size_t)size * sizeof *world->processes);
    if (!world->processes)
        return hvd__fail_memory((size_t)size * sizeof *world->processes);
    for (int rank = 0; rank < size; rank++)
        world->processes[rank] = all[rank].process;
    return HVD_OK;
}

/* Returns how many ranks have joined. What one start has told some ranks of a
 * world, and another one has not told others, makes no difference here: these
 * are new, and so are all behind them. */
static int count_joined(const struct greeting *all, int size)
{
    int old = 0;

    while (old < size && !all[old].is_new)
        old++;
    return old > 0 ? size - old : 0;
}

static int get_to_know(struct hvd__world *world, const struct greeting *all)
{
    struct hvd__transport *t = world->engine.transport;
    enum hvd__log_level level = world->engine.settings.log_level;
    struct hvd__guard_options options;

    world->engine.settings = all[0].settings;
    world->engine.settings.log_level = level;
    world->topology = hvd__topology_of(t->rank, t->size, host_of, all);
    world->njoined = count_joined(all, t->size);
    world->has_met = true;
    /* Survivors may have added different numbers of sets before a loss. */
    for (int rank = 0; rank < t->size; rank++)
        if (all[rank].last_id > world->last_id)
            world->last_id = all[rank].last_id;
    world->old_id = world->last_id;
    options = hvd__ending_options(&world->engine.settings);
    hvd__guard_set(world->guard, &options);
    HVD_TRY(note_processes(world, all));
    if (t->size > 1 && strcmp(t->name, "mpi") == 0)
        hvd__ending_expect(&world->engine.settings);
    HVD_TRY(hvd__elastic_open(world, host_of, all));
    if (hvd__elastic_is_assembly(world))
        return HVD_OK;
    HVD_TRY(watch_ranks(world, all));
    HVD_TRY(hvd__elastic_check(world));
    if (world->watch)
        hvd__guard_hand_over(world->guard);
    hvd__guard_enter(world->guard, HVD__STAGE_SHARE);
    return share_host(world, all);
}

/* The first meeting. */
static int greet(struct hvd__world *world, int status)
{
    struct hvd__transport *t = world->engine.transport;
    struct greeting mine;
    struct greeting *all = calloc((size_t)t->size, sizeof *all);

    /* A rank without memory for 6 KiB per rank cannot share even an error. */
    if (!all)
        return hvd__fail_memory((size_t)t->size * sizeof *all);
    fill_greeting(world, status, &mine);
    status = t->exchange(t, &mine, all, sizeof mine);
    if (status == HVD_OK)
        status = judge_greetings(all, t->size);
    if (status == HVD_OK)
        status = get_to_know(world, all);
    free(all);
    return status;
}

int hvd__world_meet(struct hvd__world *world, int status)
{
    struct hvd__transport *t = world->engine.transport;
    struct report mine;
    struct report *all;

    if (!world->has_met)
        return greet(world, status);
    all = calloc((size_t)t->size, sizeof *all);
    if (!all)
        return hvd__fail_memory((size_t)t->size * sizeof *all);
    fill_report(status, &mine);
    status = t->exchange(t, &mine, all, sizeof mine);
    for (int r = 0; r < t->size && status == HVD_OK; r++)
        status = judge_report(&all[r], r, t->size);
    free(all);
    return status;
}
