/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explore.c - one run of the explorer: a script (script.h) under a scheduler
 * that draws at each step which rank goes on, and whether by its program or by
 * its background thread.
 *
 * When nothing happens on any rank for a while, time jumps to the next arrival
 * or to the end of a stall. If there is none, and every rank has looked again
 * without result, the ranks wait for each other for ever: the run has failed.
 * So has one that takes too many steps.
 */
#include "explore.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "script.h"

#define MOST_STEPS INT64_C(20000000)
#define HEARTBEAT_NS INT64_C(2000000)

static struct sim_random choice;
static int64_t nsteps;
static int active[SCRIPT_RANKS], nactive;

static void list_active(void)
{
    nactive = 0;
    for (int i = 0; i < sim.nranks; i++)
        if (sim.ranks[i].state == SIM_RUNS)
            active[nactive++] = i;
}

/* Kills the victim when its time has come. The watchdogs of the others notice
 * later, each at another time. */
static void kill_victim(void)
{
    struct sim_rank *victim = &sim.ranks[script.victim];

    if (nsteps != script.dies_after || victim->state != SIM_RUNS)
        return;
    sim_kill(victim);
    for (int i = 0; i < sim.nranks; i++)
        sim.ranks[i].abort_at = sim.now_ns + HEARTBEAT_NS +
                                sim_below(&choice, (int)HEARTBEAT_NS / 4);
    list_active();
}

/* Does what the watchdog's thread does when it has noticed a death. */
static void notice_death(struct sim_rank *rank)
{
    struct hvd__world *world = rank->world;

    if (rank->abort_at == 0 || sim.now_ns < rank->abort_at)
        return;
    rank->abort_at = 0;
    snprintf(world->abort_text, sizeof world->abort_text,
             "rank %d is lost, says the simulator", script.victim);
    atomic_store(&world->abort_status, HVD_ERR_LOST);
}

static bool step_rank(struct sim_rank *rank)
{
    bool moved;

    nsteps++;
    notice_death(rank);
    sim_note((uint64_t)rank->rank);
    if (rank->world->progress.has_thread && sim_once_in(&choice, 2))
        moved = sim_run_background(rank);
    else
        moved = sim_run_program(rank);
    if (rank->state != SIM_RUNS)
        list_active();
    return moved;
}

/* Returns the time at which something will happen by itself. */
static int64_t next_event(void)
{
    int64_t next = sim_network_next(sim.network);

    for (int i = 0; i < nactive; i++) {
        const struct sim_rank *rank = &sim.ranks[active[i]];
        int64_t timer = sim_next_timer(rank);

        if (timer < next)
            next = timer;
        if (rank->stalled_until > sim.now_ns && rank->stalled_until < next)
            next = rank->stalled_until;
        if (rank->abort_at > 0 && rank->abort_at < next)
            next = rank->abort_at;
    }
    return next;
}

/* Steps every rank a number of times, without interruption. Returns whether
 * anything happened. */
static bool sweep(void)
{
    int interleaves = sim.interleaves;
    bool moved = false;

    sim.interleaves = 0;
    for (int i = 0; i < 40; i++)
        for (int k = 0; k < nactive && !moved; k++)
            moved = step_rank(&sim.ranks[active[k]]);
    sim.interleaves = interleaves;
    return moved;
}

/* Returns the number of yields of the core inside blocking calls. They go on a
 * limited number of times. */
static int64_t count_yields(void)
{
    int64_t n = 0;

    for (int i = 0; i < nactive; i++)
        n += sim.ranks[active[i]].nyields;
    return n;
}

/* Nothing has happened for a while. */
static void go_on(void)
{
    int64_t next = next_event(), before = count_yields();

    if (next < INT64_MAX) {
        if (next > sim.now_ns)
            sim.now_ns = next;
        return;
    }
    if (!sweep() && !sim.failed && count_yields() == before && nactive > 0 &&
        next_event() == INT64_MAX)
        sim_fail("rank %d and %d others wait for ever", active[0], nactive - 1);
}

static void stall_sometimes(struct sim_rank *rank)
{
    if (script_has(WITH_STALLS) && sim_once_in(&choice, 200))
        rank->stalled_until =
            sim.now_ns + sim_below(&choice, (int)script.costs.alpha_ns * 20);
}

static void run_all(void)
{
    int idle = 0, favourite = sim_below(&choice, sim.nranks);
    bool is_unfair = sim_once_in(&choice, 3);

    list_active();
    while (nactive > 0 && !sim.failed) {
        struct sim_rank *rank = &sim.ranks[active[sim_below(&choice, nactive)]];
        bool moved;

        if (is_unfair && sim_once_in(&choice, 2) &&
            sim.ranks[favourite].state == SIM_RUNS)
            rank = &sim.ranks[favourite];
        sim.now_ns += sim_below(&choice, 200);
        moved = sim_network_deliver(sim.network);
        if (script.victim >= 0)
            kill_victim();
        if (rank->state == SIM_RUNS && rank->stalled_until <= sim.now_ns) {
            stall_sometimes(rank);
            moved |= step_rank(rank);
        }
        idle = moved ? 0 : idle + 1;
        if (idle > 2 * nactive) {
            go_on();
            idle = 0;
        }
        if (nsteps > MOST_STEPS)
            sim_fail("%lld steps, and no end", (long long)nsteps);
    }
}

/* All members of a set have run the same batches. */
static void check_batches(void)
{
    for (int set = 0; set <= script.nsets; set++) {
        const struct sim_rank *first = NULL;

        for (int i = 0; i < sim.nranks; i++) {
            const struct sim_rank *rank = &sim.ranks[i];

            if (set > 0 && !script.sets[set - 1].has[i])
                continue;
            if (first && (first->nbatches[set] != rank->nbatches[set] ||
                          (!first->skipped[set] && !rank->skipped[set] &&
                           first->batches[set] != rank->batches[set])))
                sim_fail("rank %d has run other batches of set %d than rank "
                         "%d: %d and %d",
                         rank->rank, set, first->rank, rank->nbatches[set],
                         first->nbatches[set]);
            if (!first || !rank->skipped[set])
                first = rank;
        }
    }
}

static void check_end(void)
{
    for (int i = 0; i < sim.nranks; i++)
        if (!atomic_load(&sim.ranks[i].world->closed))
            sim_fail("rank %d has ended before its world was closed", i);
    check_batches();
    sim_network_check_empty(sim.network);
}

bool explore_seed(uint64_t seed, unsigned mask, bool verbose)
{
    sim.seed = seed;
    sim.verbose = verbose;
    sim.program = script_run;
    script_draw(seed, mask);
    if (verbose)
        script_print();
    choice = sim_stream(seed, 5);
    sim.between = sim_stream(seed, 6);
    sim.interleaves =
        script_has(WITH_BETWEEN) ? 2 << sim_below(&sim.between, 7) : 0;
    nsteps = 0;
    sim_begin(seed, script.nranks, script.host_of, script.shares,
              &script.costs);
    run_all();
    if (!sim.failed && script.victim < 0)
        check_end();
    sim_note((uint64_t)sim.now_ns);
    /* What has failed cannot be ended in order, and is the last run. */
    if (sim.failed)
        return false;
    sim_end();
    script_forget();
    return true;
}
