/* SPDX-License-Identifier: Apache-2.0 */
/*
 * story.c - draws what happens in a world from a seed, and knows what its ranks
 * must be told then: nothing without a cause; the loss of a rank, on every rank
 * that is still there, in the same words, within a heartbeat time and a second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "simulated.h"

enum happening {
    QUIET,
    BUSY,         /* some hosts wake up late */
    KILL,         /* a process dies */
    KILL_TWO,     /* two processes of two hosts die at almost the same time */
    KILL_HOST,    /* a machine dies */
    STOP,         /* a process is stopped */
    STOP_BRIEFLY, /* and goes on in time */
    FREEZE,       /* all processes of a host are stopped */
    FREEZE_BRIEFLY,
    CUT, /* some hosts are cut off from the others */
    CUT_BRIEFLY,
    CUT_AT_ONCE, /* at the moment at which the world has started */
    SLOW_START,  /* some hosts link up with the others late */
    SUSPEND,     /* everything stops for long, and goes on */
    LEAVE,       /* all ranks leave, one after another */
    BLOCKED,     /* no letter ever passes */
    STALL,       /* some ranks do not submit what the others wait for */
    HAPPENINGS
};

static const char *const names[HAPPENINGS] = {
    "quiet",          "busy",    "kill",         "kill two",
    "kill a host",    "stop",    "stop briefly", "freeze",
    "freeze briefly", "cut",     "cut briefly",  "cut at once",
    "slow start",     "suspend", "leave",        "blocked",
    "stall"};

struct story {
    struct sim_random random;
    enum happening what;
    int64_t at_ns, heartbeat_ns;
    int rank, other;  /* whom it happens to; other: of KILL_TWO, or -1 */
    int nrequests;    /* of STALL */
    bool lacks[1024]; /* the ranks that have not submitted them */
};

static struct story story;

static int64_t between(int64_t least, int64_t most)
{
    return least + (int64_t)((double)(most - least) *
                             sim_below(&story.random, 1 << 20) / (1 << 20));
}

static int draw_hosts(void)
{
    switch (sim_below(&story.random, 8)) {
    case 0: return 2;
    case 1: return 1 + sim_below(&story.random, 3);
    case 2:
    case 3: return 9 + sim_below(&story.random, 4); /* around all to all */
    case 4: return 13 + sim_below(&story.random, 50);
    case 5:
        return sim_once_in(&story.random, 4)
                   ? 60 + sim_below(&story.random, 140)
                   : 17;
    default: return 2 + sim_below(&story.random, 8);
    }
}

/* Draws the names of a host, of which the others reach one at least. */
static void draw_names(struct sim_host *host)
{
    host->naddresses = 1;
    host->reaches[0] = true;
    if (!sim_once_in(&story.random, 4))
        return;
    host->naddresses = 1 + sim_below(&story.random, SIM_NAMES);
    for (int i = 0; i < host->naddresses; i++)
        host->reaches[i] = sim_once_in(&story.random, 2);
    host->reaches[sim_below(&story.random, host->naddresses)] = true;
}

/* Returns how much later than the others a host may link up with them. Later
 * than 5 s they warn that it cannot be watched. */
static int64_t most_late(int64_t heartbeat)
{
    return 3 * heartbeat < 4 * SIM_SECOND ? 3 * heartbeat : 4 * SIM_SECOND;
}

static void open_world(void)
{
    int ranks_of_host[256], nhosts = draw_hosts(), n = 0;
    int most = nhosts > 30 ? 2 : 5;
    int64_t heartbeat = SIM_SECOND * (1 + sim_below(&story.random, 10));

    sim.hosts = calloc((size_t)nhosts, sizeof *sim.hosts);
    for (int h = 0; h < nhosts; h++) {
        ranks_of_host[h] = sim_once_in(&story.random, 3)
                               ? 1
                               : 1 + sim_below(&story.random, most);
        n += ranks_of_host[h];
        draw_names(&sim.hosts[h]);
    }
    if (n == 1)
        ranks_of_host[0] = 2;
    sim.options = (struct hvd__watch_options){
        .heartbeat_ns = heartbeat, .stall_check_ns = 60 * SIM_SECOND};
    sim.latency_ns = 10000 + 1000 * sim_below(&story.random, 500);
    sim.jitter_ns = 1000 * sim_below(&story.random, 1000);
    sim.loss = sim_once_in(&story.random, 2) ? sim_below(&story.random, 50) : 0;
    if (story.what == CUT_AT_ONCE) /* a first heartbeat may be the only one */
        sim.loss = 0;
    for (int h = 0; h < nhosts && story.what == BLOCKED; h++)
        sim.hosts[h].side = h;
    for (int h = 0; h < nhosts && story.what == SLOW_START; h++)
        if (sim_once_in(&story.random, 3))
            sim.hosts[h].late_ns = between(0, most_late(heartbeat));
    story.heartbeat_ns = heartbeat;
    sim_open(ranks_of_host, nhosts);
}

static void each_of_host(int host, void (*act)(struct sim_rank *))
{
    for (int i = 0; i < sim.hosts[host].nranks; i++)
        act(&sim.ranks[sim.hosts[host].first + i]);
}

static void each_rank(void (*act)(struct sim_rank *))
{
    for (int h = 0; h < sim.nhosts; h++)
        each_of_host(h, act);
}

/* Cuts off a group of hosts, which need not be neighbours. */
static void cut(void)
{
    int victim = sim.ranks[story.rank].host;
    bool alone = sim_once_in(&story.random, 2);

    for (int h = 0; h < sim.nhosts; h++)
        sim.hosts[h].side =
            h == victim || (!alone && h != (victim + 1) % sim.nhosts &&
                            sim_once_in(&story.random, 2));
}

static void join(void)
{
    for (int h = 0; h < sim.nhosts; h++)
        sim.hosts[h].side = 0;
}

/* Lets something happen for a time in which it must do no harm. */
static int64_t briefly(void)
{
    return between(story.heartbeat_ns / 10, story.heartbeat_ns * 4 / 10);
}

/* All ranks but some submit the same requests, within a second. */
static void stall(void)
{
    int nlack = sim_once_in(&story.random, 3)
                    ? 1 + sim_below(&story.random, sim.nranks)
                    : 1 + sim_below(&story.random, 4);

    if (nlack >= sim.nranks)
        nlack = sim.nranks - 1;
    story.nrequests = 1 + sim_below(&story.random, SIM_REQUESTS);
    for (; nlack > 0; nlack--)
        story.lacks[sim_below(&story.random, sim.nranks)] = true;
    for (int r = 0; r < sim.nranks; r++) {
        struct sim_rank *rank = &sim.ranks[r];

        while (!story.lacks[r] && rank->nrequests < story.nrequests)
            rank->since_ns[rank->nrequests++] =
                sim.now_ns - 1 - sim_below(&story.random, 1 << 30);
    }
    sim_run_until(sim.now_ns + sim.options.stall_check_ns * 13 / 10);
}

static void happen(void)
{
    struct sim_rank *victim = &sim.ranks[story.rank];

    sim_say("%s: rank %d, host %d", names[story.what], story.rank,
            victim->host);
    switch (story.what) {
    case KILL: sim_kill(victim); break;
    case KILL_TWO:
        sim_kill(victim);
        sim_run_until(sim.now_ns + between(0, 5 * SIM_MS));
        story.other = sim_below(&story.random, sim.nranks);
        if (sim.ranks[story.other].state == SIM_RUNS)
            sim_kill(&sim.ranks[story.other]);
        break;
    case KILL_HOST:
        sim.hosts[victim->host].is_dead = true;
        each_of_host(victim->host, sim_kill);
        break;
    case STOP: sim_stop(victim); break;
    case FREEZE: each_of_host(victim->host, sim_stop); break;
    case CUT:
    case CUT_AT_ONCE: cut(); break;
    case STOP_BRIEFLY:
        sim_stop(victim);
        sim_run_until(sim.now_ns + briefly());
        sim_continue(victim);
        break;
    case FREEZE_BRIEFLY:
        each_of_host(victim->host, sim_stop);
        sim_run_until(sim.now_ns + briefly());
        each_of_host(victim->host, sim_continue);
        break;
    case CUT_BRIEFLY:
        cut();
        sim_run_until(sim.now_ns + briefly());
        join();
        break;
    case SUSPEND:
        each_rank(sim_stop);
        sim_run_until(sim.now_ns + between(0, 5 * story.heartbeat_ns));
        each_rank(sim_continue);
        break;
    case LEAVE:
        for (int left = sim.nranks; left > 0;) {
            struct sim_rank *next =
                &sim.ranks[sim_below(&story.random, sim.nranks)];

            while (next->is_leaving)
                next = &sim.ranks[(next->rank + 1) % sim.nranks];
            sim_leave(next);
            left--;
            sim_run_until(sim.now_ns +
                          between(0, 2 * story.heartbeat_ns / sim.nranks));
        }
        break;
    case STALL: stall(); break;
    default: break;
    }
}

/* ------------------------------------------------------------- what is told */

static bool is_harmless(void)
{
    switch (story.what) {
    case QUIET:
    case BUSY:
    case STOP_BRIEFLY:
    case FREEZE_BRIEFLY:
    case CUT_BRIEFLY:
    case SLOW_START:
    case SUSPEND:
    case LEAVE:
    case BLOCKED:
    case STALL: return true;
    default: return false;
    }
}

/* Returns whether somebody who can see the victim is left. */
static bool has_witness(void)
{
    int host = sim.ranks[story.rank].host;

    if (story.what == STOP && sim.hosts[host].nranks > 1)
        return true;
    if (story.what == KILL && sim.hosts[host].nranks > 1)
        return true;
    return sim.nhosts > 1;
}

/* Returns whether a rank is there at the end and must have been told. */
static bool must_know(const struct sim_rank *rank)
{
    int host = sim.ranks[story.rank].host;

    if (rank->is_stopped || (rank->rank == story.rank && story.what != CUT &&
                             story.what != CUT_AT_ONCE))
        return false;
    if (story.what == KILL_HOST && rank->host == host)
        return false;
    return story.what != KILL_TWO || rank->rank != story.other;
}

/* Marks the hosts that a host can reach through neighbours of its side. */
static void mark(int from, int *group, int number)
{
    int *queue = calloc((size_t)sim.nhosts, sizeof *queue), n = 0;

    group[from] = number;
    queue[n++] = from;
    for (int i = 0; i < n; i++) {
        int near[HVD__NEAR];
        int nnear = hvd__places_near(sim.nhosts, queue[i], near);

        for (int k = 0; k < nnear; k++)
            if (group[near[k]] == 0 && !sim.hosts[near[k]].is_dead &&
                sim.hosts[near[k]].side == sim.hosts[from].side) {
                group[near[k]] = number;
                queue[n++] = near[k];
            }
    }
    free(queue);
}

static bool names_the_lost(const char *text)
{
    int rank, process, host, n = 0;

    if (strncmp(text, HVD__GIVEN_UP, strlen(HVD__GIVEN_UP)) == 0)
        text += strlen(HVD__GIVEN_UP);
    if (sscanf(text, "rank %d (process %d on node%d) %n", &rank, &process,
               &host, &n) != 3 ||
        rank < 0 || rank >= sim.nranks || process != 1000 + rank ||
        host != sim.ranks[rank].host)
        return false;
    text += n;
    switch (story.what) {
    case KILL:
        return rank == story.rank && (strncmp(text, "was killed", 10) == 0 ||
                                      strncmp(text, "is gone", 7) == 0 ||
                                      strncmp(text, "is silent", 9) == 0);
    case KILL_TWO: return rank == story.rank || rank == story.other;
    case STOP:
        return rank == story.rank &&
               strncmp(text,
                       sim.hosts[host].nranks > 1 ? "is stopped" : "is silent",
                       9) == 0;
    case KILL_HOST:
    case FREEZE:
        return host == sim.ranks[story.rank].host &&
               strncmp(text, "is silent, as is all of its host", 32) == 0;
    case CUT:
    case CUT_AT_ONCE:
        return strncmp(text, "is silent, as is all of its host", 32) == 0;
    default: return false;
    }
}

static void check_told(const int *group)
{
    const struct sim_rank **first =
        calloc((size_t)sim.nhosts + 1, sizeof(struct sim_rank *));

    for (int r = 0; r < sim.nranks; r++) {
        const struct sim_rank *rank = &sim.ranks[r], **same;

        if (!must_know(rank))
            continue;
        same = &first[group[rank->host]];
        if (rank->told_ns == 0) {
            sim_fail("rank %d was not told", r);
        } else if (rank->told_status != HVD_ERR_LOST ||
                   !names_the_lost(rank->told)) {
            sim_fail("rank %d was told: %s", r, rank->told);
        } else if (rank->told_ns >
                   story.at_ns + story.heartbeat_ns + SIM_SECOND) {
            sim_fail("rank %d was told %.3f s after it (heartbeat %.1f s)", r,
                     (double)(rank->told_ns - story.at_ns) * 1e-9,
                     (double)story.heartbeat_ns * 1e-9);
        } else if (*same && strcmp((*same)->told, rank->told) != 0) {
            sim_fail("rank %d was told: %s; but rank %d: %s", r, rank->told,
                     (*same)->rank, (*same)->told);
        }
        if (!*same)
            *same = rank;
    }
    free(first);
}

/* The lowest rank that waits has told of all requests in one line, with the
 * ranks that lack them. */
static void check_stall(void)
{
    char expected[HVD__PAGE_TEXT], *at = strstr(sim.warning, "s for rank ");
    int n = 0, lowest = 0, lacking = 0;

    while (story.lacks[lowest])
        lowest++;
    for (int r = 0; r < sim.nranks; r++) {
        if (story.lacks[r] && lacking++ < 48)
            n += snprintf(expected + n, sizeof expected - (size_t)n, "%s%d",
                          n ? "," : "s for rank ", r);
    }
    snprintf(expected + n, sizeof expected - (size_t)n,
             lacking > 48 ? ",..." : ";");
    n = (int)strlen(expected);
    if (sim.warnings != 1)
        sim_fail("%d warnings of a stall, the last: %s", sim.warnings,
                 sim.warning);
    else if (sim.warner != lowest)
        sim_fail("rank %d reports for rank %d: %s", sim.warner, lowest,
                 sim.warning);
    else if (!at || strncmp(at, expected, (size_t)n) != 0 ||
             !strstr(at, " is alive, last operation: nothing yet"))
        sim_fail("expected '%s' in: %s", expected, sim.warning);
}

static void check(void)
{
    int *group = calloc((size_t)sim.nhosts, sizeof *group), ngroups = 0;

    for (int r = 0; r < sim.nranks && is_harmless(); r++)
        if (sim.ranks[r].told_ns != 0)
            sim_fail("rank %d was told for no reason: %s", r,
                     sim.ranks[r].told);
    /* Where letters get lost, a host may be cut off before it was heard. */
    if (story.what == STALL)
        check_stall();
    else if (sim.warnings > 0 && story.what != BLOCKED &&
             (is_harmless() || sim.loss == 0))
        sim_fail("a warning for no reason: %s", sim.warning);
    if (story.what == BLOCKED && sim.nhosts > 1 &&
        (sim.warnings != sim.nhosts ||
         !strstr(sim.warning, "cannot be watched from here")))
        sim_fail("%d warnings that there is no contact, of %d hosts",
                 sim.warnings, sim.nhosts);
    for (int h = 0; h < sim.nhosts; h++)
        if (group[h] == 0)
            mark(h, group, ++ngroups);
    if (!is_harmless() && has_witness())
        check_told(group);
    free(group);
}

static void check_letters(void)
{
    int64_t ns = 10 * SIM_SECOND, begin = sim.now_ns;
    int64_t tick = sim.ranks[0].watch->tick_ns;

    for (int h = 0; h < sim.nhosts; h++)
        sim.hosts[h].letters = 0;
    sim_run_until(begin + ns);
    for (int h = 0; h < sim.nhosts; h++) {
        int most = HVD__NEAR < sim.nhosts - 1 ? HVD__NEAR : sim.nhosts - 1;

        /* Nothing is under way, so a heartbeat is one letter to each. */
        if (sim.hosts[h].letters > most * (ns / (2 * tick) + 2))
            sim_fail("host %d sent %lld letters in 10 s to %d neighbours", h,
                     (long long)sim.hosts[h].letters, most);
    }
}

bool sim_story(uint64_t seed, unsigned without, bool verbose)
{
    struct sim_world blank = {.seed = seed, .verbose = verbose};
    bool good;

    sim = blank;
    story = (struct story){.random = sim_stream(seed, 1), .other = -1};
    sim.network = sim_stream(seed, 2);
    sim.threads = sim_stream(seed, 3);
    do
        story.what = (enum happening)sim_below(&story.random, HAPPENINGS);
    while (without >> story.what & 1);
    open_world();
    story.rank = sim_below(&story.random, sim.nranks);
    sim_say("%d ranks on %d hosts, heartbeat %.0f s, loss %.1f %%", sim.nranks,
            sim.nhosts, (double)story.heartbeat_ns * 1e-9, sim.loss * 0.1);
    for (int h = 0; h < sim.nhosts && story.what == BUSY; h++)
        if (sim_once_in(&story.random, 3))
            sim.hosts[h].busy_ns = story.heartbeat_ns / 5;
    if (story.what != CUT_AT_ONCE)
        sim_run_until(sim.now_ns + between(SIM_SECOND, 3 * SIM_SECOND));
    if (story.what == QUIET)
        check_letters();
    story.at_ns = sim.now_ns;
    if (story.what == STALL) /* answers get lost, too, and are not repeated */
        sim.loss = 0;
    happen();
    sim_run_until(sim.now_ns + story.heartbeat_ns + 3 * SIM_SECOND +
                  (is_harmless() ? between(0, 2 * story.heartbeat_ns) : 0));
    if (story.what == BLOCKED)
        sim_run_until(story.at_ns + 8 * SIM_SECOND);
    check();
    good = !sim.has_failed;
    if (!good)
        printf("seed %llu (%s, %d ranks on %d hosts): %s\n",
               (unsigned long long)seed, names[story.what], sim.nranks,
               sim.nhosts, sim.failure);
    sim_close();
    return good;
}
