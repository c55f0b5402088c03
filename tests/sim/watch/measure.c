/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c - counts the letters of a quiet world and those of a stall, and
 * times how long a death takes to reach every rank. Letters take 50 to 150 us,
 * threads wake up within 2 ms, and the heartbeat time is 10 s.
 */
#include <stdio.h>
#include <stdlib.h>

#include "simulated.h"

enum { SECONDS = 10 };

static void begin(int nhosts, int ranks)
{
    int *ranks_of_host = calloc((size_t)nhosts, sizeof *ranks_of_host);

    sim = (struct sim_world){.network = sim_stream(1, 2),
                             .threads = sim_stream(1, 3)};
    for (int h = 0; h < nhosts; h++)
        ranks_of_host[h] = ranks;
    sim.hosts = calloc((size_t)nhosts, sizeof *sim.hosts);
    sim.options = (struct hvd__watch_options){
        .heartbeat_ns = 10 * SIM_SECOND, .stall_check_ns = 60 * SIM_SECOND};
    sim.latency_ns = 50000;
    sim.jitter_ns = 100000;
    sim_open(ranks_of_host, nhosts);
    free(ranks_of_host);
    sim_run_until(sim.now_ns + 3 * SIM_SECOND);
}

/* Returns how long it takes until the last rank has been told, in seconds; -1:
 * not all have been told. */
static double time_to_tell(int64_t at_ns)
{
    int64_t last = at_ns;

    sim_run_until(at_ns + sim.options.heartbeat_ns + 2 * SIM_SECOND);
    for (int r = 0; r < sim.nranks; r++) {
        const struct sim_rank *rank = &sim.ranks[r];

        if (rank->is_stopped || (rank->state == SIM_DEAD && !rank->told_ns))
            continue;
        if (rank->told_ns == 0)
            return -1;
        if (rank->told_ns > last)
            last = rank->told_ns;
    }
    return (double)(last - at_ns) * 1e-9;
}

static double time_kill(int nhosts, int ranks)
{
    double time;
    int64_t at;

    begin(nhosts, ranks);
    at = sim.now_ns;
    sim_kill(&sim.ranks[sim.nranks / 2]);
    time = time_to_tell(at);
    sim_close();
    return time;
}

static double time_freeze(int nhosts, int ranks)
{
    const struct sim_host *host;
    double time;
    int64_t at;

    begin(nhosts, ranks);
    host = &sim.hosts[nhosts / 2];
    at = sim.now_ns;
    for (int i = 0; i < host->nranks; i++)
        sim_stop(&sim.ranks[host->first + i]);
    time = time_to_tell(at);
    sim_close();
    return time;
}

/* Returns how many letters the host that sends most sends beside heartbeats
 * while all ranks but one wait for that one, until this is reported; -1: it was
 * not, or not once. */
static int64_t count_for_stall(int nhosts, int ranks, int64_t heartbeats)
{
    int64_t most = 0;

    begin(nhosts, ranks);
    for (int r = 0; r < sim.nranks; r++)
        if (r != sim.nranks / 2) {
            sim.ranks[r].nrequests = 1;
            sim.ranks[r].since_ns[0] = sim.now_ns;
        }
    sim_run_until(sim.now_ns + 55 * SIM_SECOND);
    for (int h = 0; h < sim.nhosts; h++)
        sim.hosts[h].letters = 0;
    sim_run_until(sim.now_ns + SECONDS * SIM_SECOND);
    for (int h = 0; h < sim.nhosts; h++)
        if (sim.hosts[h].letters > most)
            most = sim.hosts[h].letters;
    if (sim.warnings != 1)
        most = heartbeats - 1;
    sim_close();
    return most - heartbeats;
}

int sim_measure(const int *hosts, int n, int ranks, bool csv)
{
    const char *head = csv ? "hosts,ranks,letters,bytes,kill,freeze,stall\n"
                           : "hosts  ranks  letters/s  bytes/s  "
                             "kill: s  freeze: s  stall: letters\n";
    const char *row = csv ? "%d,%d,%.1f,%.0f,%.3f,%.3f,%lld\n"
                          : "%5d  %5d  %9.1f  %7.0f  %7.3f  %9.3f  %14lld\n";

    fputs(head, stdout);
    for (int i = 0; i < n; i++) {
        int64_t letters = 0, bytes = 0, stall;
        double kill, freeze;

        begin(hosts[i], ranks);
        for (int h = 0; h < sim.nhosts; h++)
            sim.hosts[h].letters = sim.hosts[h].bytes = 0;
        sim_run_until(sim.now_ns + SECONDS * SIM_SECOND);
        for (int h = 0; h < sim.nhosts; h++) {
            if (sim.hosts[h].letters > letters)
                letters = sim.hosts[h].letters;
            if (sim.hosts[h].bytes > bytes)
                bytes = sim.hosts[h].bytes;
        }
        sim_close();
        kill = time_kill(hosts[i], ranks);
        freeze = time_freeze(hosts[i], ranks);
        stall = count_for_stall(hosts[i], ranks, letters);
        printf(row, hosts[i], hosts[i] * ranks, (double)letters / SECONDS,
               (double)bytes / SECONDS, kill, freeze, (long long)stall);
        fflush(stdout);
        if (sim.has_failed || kill < 0 || freeze < 0 || stall < 0 ||
            freeze > (double)sim.options.heartbeat_ns * 1e-9 + 1)
            return 1;
    }
    return 0;
}
