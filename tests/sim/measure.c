/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c - measures a request on many ranks: the time from the moment at
 * which all ranks submit it until the last rank has its result, and the
 * messages and bytes that ranks send meanwhile. Or the sums of a backward pass:
 * every so often a small one and a large one, as a layer has a bias and
 * weights, and nobody waits for the last.
 *
 * Computation takes no time: all ranks go on until none can, and then time
 * jumps to the next arrival. So the time is the critical path of messages; in
 * units of alpha it is a number of message times, if nothing else costs
 * anything.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/run/execute.h"
#include "explore.h"

static struct measure_options now;

static void make_requests(int n)
{
    size_t elements = (size_t)(now.bytes / 4);
    size_t all = (size_t)sim.nranks;
    size_t spread =
        now.kind == HVD_ALLGATHER || now.kind == HVD_GATHER ? all : 1;
    float *in = calloc(elements + 1, sizeof *in);
    float *out = calloc(elements * spread + 1, sizeof *out);
    int64_t count = (int64_t)elements;
    int status = HVD_OK;

    if (!in || !out)
        abort();
    if (now.kind == HVD_ALLTOALL)
        count = count / sim.nranks * sim.nranks;
    for (size_t i = 0; i < elements; i++)
        in[i] = 1;
    for (int i = 0; i < n && status == HVD_OK; i++)
        switch (now.kind) {
        case HVD_ALLREDUCE:
            status = hvd_allreduce(in, out, count, HVD_FLOAT32, HVD_SUM);
            if (count > 0 && out[count - 1] != (float)sim.nranks)
                sim_fail("a sum of %g on %d ranks", (double)out[count - 1],
                         sim.nranks);
            break;
        case HVD_BROADCAST:
            status = hvd_broadcast(out, count, HVD_FLOAT32, 0);
            break;
        case HVD_ALLGATHER:
            status = hvd_allgather(in, out, count, HVD_FLOAT32);
            break;
        case HVD_GATHER:
            status = hvd_gather(in, out, count, HVD_FLOAT32, 0);
            break;
        case HVD_REDUCE:
            status = hvd_reduce(in, out, count, HVD_FLOAT32, HVD_SUM, 0);
            break;
        case HVD_REDUCESCATTER:
            status = hvd_reducescatter(in, out, count, HVD_FLOAT32, HVD_SUM);
            break;
        case HVD_ALLTOALL:
            status = hvd_alltoall(in, out, count, HVD_FLOAT32);
            break;
        default: status = hvd_barrier();
        }
    if (status < 0)
        sim_fail("rank %d: %s", sim.self->rank, hvd_last_error());
    free(in);
    free(out);
}

/* Submits the sums of n layers. Before each layer but the first the rank is at
 * a mark, where it does what a rank that computes does. */
static void make_layers(int nlayers)
{
    int n = 2 * nlayers;
    float *data = calloc((size_t)now.bytes / 4 + 1, sizeof *data);
    hvd_handle *handles = calloc((size_t)n, sizeof *handles);
    char name[32];
    int status = HVD_OK;

    if (!data || !handles)
        abort();
    for (int i = 0; i < n && status == HVD_OK; i++) {
        int64_t count = i % 2 ? now.bytes / 4 : 1;

        snprintf(name, sizeof name, "tensor %d", i);
        status = hvd_allreduce_async(name, data, data, count, HVD_FLOAT32,
                                     HVD_SUM, &handles[i]);
        if (i % 2 == 1 && i + 1 < n)
            sim_mark();
    }
    for (int i = 0; i < n && status == HVD_OK; i++)
        status = hvd_wait(handles[i]);
    if (status < 0)
        sim_fail("rank %d: %s", sim.self->rank, hvd_last_error());
    free(data);
    free(handles);
}

static void run_program(struct sim_rank *rank)
{
    (void)rank;
    make_requests(2); /* open ordered mode and touch what is needed */
    sim_mark();
    if (now.every_ns > 0)
        make_layers(now.nrequests);
    else
        make_requests(now.nrequests);
    sim_mark();
    sim_shutdown();
}

static int count_in(enum sim_state state)
{
    int n = 0;

    for (int i = 0; i < sim.nranks; i++)
        n += sim.ranks[i].state == state;
    return n;
}

/* Ranks look for messages only at some of their steps. */
enum { SWEEPS = 20 };

/* Runs until no rank is running and nothing is under way, or until a time. */
static void run_until(int64_t end_ns)
{
    int idle = 0;

    while (!sim.failed) {
        bool moved = sim_network_deliver(sim.network);
        int64_t next;

        for (int i = 0; i < sim.nranks; i++) {
            struct sim_rank *rank = &sim.ranks[i];

            if (rank->state == SIM_RUNS)
                moved |= sim_run_program(rank);
            else if (rank->state == SIM_AT_MARK)
                moved |= sim_run_background(rank);
        }
        idle = moved ? 0 : idle + 1;
        next = sim_network_next(sim.network);
        for (int i = 0; i < sim.nranks && idle > 0; i++)
            if (sim.ranks[i].state == SIM_RUNS &&
                sim_next_timer(&sim.ranks[i]) < next)
                next = sim_next_timer(&sim.ranks[i]);
        if (idle == 0 || (idle < SWEEPS && next == INT64_MAX))
            continue;
        if (end_ns < INT64_MAX && next >= end_ns) {
            sim.now_ns = end_ns;
            return;
        }
        if (next < INT64_MAX)
            sim.now_ns = next;
        else if (count_in(SIM_RUNS) == 0)
            return;
        else if (idle > 5000)
            sim_fail("ranks wait for ever");
    }
}

static void run_until_quiet(void)
{
    run_until(INT64_MAX);
}

static int64_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long long all = 0, resident = 0;

    if (!file)
        return 0;
    if (fscanf(file, "%lld %lld", &all, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

static void release_marks(void)
{
    for (int i = 0; i < sim.nranks; i++)
        if (sim.ranks[i].state == SIM_AT_MARK)
            sim.ranks[i].state = SIM_RUNS;
}

/* What was sent by the ranks that sent most, of speakers and of others. */
struct most {
    struct sim_counts speakers, others;
};

static void take_most(struct sim_counts *most, const struct sim_counts *counts)
{
    if (counts->messages > most->messages)
        most->messages = counts->messages;
    if (counts->bytes > most->bytes)
        most->bytes = counts->bytes;
    if (counts->local_messages > most->local_messages)
        most->local_messages = counts->local_messages;
    if (counts->local_bytes > most->local_bytes)
        most->local_bytes = counts->local_bytes;
}

static struct most find_most(void)
{
    struct most most = {{0}, {0}};

    for (int i = 0; i < sim.nranks; i++)
        take_most(i % now.nlocals == 0 ? &most.speakers : &most.others,
                  &sim.ranks[i].counts);
    return most;
}

void measure_head(bool is_csv, FILE *out)
{
    if (is_csv)
        fprintf(out, "kind,hosts,ranks,bytes,requests,us,message_times,"
                     "speaker_messages,speaker_bytes,other_messages,"
                     "other_bytes,local_messages,memory_bytes,batches\n");
    else
        fprintf(out,
                "%-13s %5s %6s %9s %10s %8s  %19s  %19s  %9s  %9s\n"
                "%-13s %5s %6s %9s %10s %8s  %9s %9s  %9s %9s  %9s  %9s  %7s\n",
                "", "", "", "", "", "message", "a speaker sends",
                "another sends", "in a host", "memory", "kind", "hosts",
                "ranks", "bytes", "us", "times", "messages", "bytes",
                "messages", "bytes", "messages", "a rank", "batches");
}

/* Returns how many batches the lanes of a rank have had so far. */
static int64_t count_batches(void)
{
    const struct hvd__set *set = sim.ranks[0].world->engine.live;

    return set->executor ? set->executor->nbatches : 0;
}

static void print_row(double ns, int64_t memory, int64_t batches, FILE *out)
{
    struct most most = find_most();
    int64_t local = most.speakers.local_messages > most.others.local_messages
                        ? most.speakers.local_messages
                        : most.others.local_messages;
    double n = now.nrequests, alpha = (double)now.costs.alpha_ns;

    if (now.is_csv)
        fprintf(
            out, "%s,%d,%d,%lld,%d,%.3f,%.2f,%.1f,%.1f,%.1f,%.1f,%.1f,",
            hvd_kind_name(now.kind), now.nhosts, sim.nranks,
            (long long)now.bytes, now.nrequests, ns / n / 1000,
            alpha > 0 ? ns / n / alpha : 0, (double)most.speakers.messages / n,
            (double)most.speakers.bytes / n, (double)most.others.messages / n,
            (double)most.others.bytes / n, (double)local / n);
    else
        fprintf(
            out,
            "%-13s %5d %6d %9lld %10.3f %8.2f  %9.1f %9.1f  %9.1f %9.1f  "
            "%9.1f  ",
            hvd_kind_name(now.kind), now.nhosts, sim.nranks,
            (long long)now.bytes, ns / n / 1000, alpha > 0 ? ns / n / alpha : 0,
            (double)most.speakers.messages / n, (double)most.speakers.bytes / n,
            (double)most.others.messages / n, (double)most.others.bytes / n,
            (double)local / n);
    fprintf(out, now.is_csv ? "%lld,%lld\n" : "%9lld  %7lld\n",
            (long long)memory, (long long)batches);
}

/* Lets the ranks come to all marks of make_layers but the last. */
static void run_layers(void)
{
    int64_t since = sim.now_ns;

    for (int i = 1; i < now.nrequests && now.every_ns > 0; i++) {
        run_until(since + i * now.every_ns);
        release_marks();
    }
}

bool measure(const struct measure_options *options, FILE *out)
{
    int nranks = options->nhosts * options->nlocals;
    int *host_of = calloc((size_t)nranks, sizeof *host_of);
    bool *shares = calloc((size_t)options->nhosts, sizeof *shares);
    int64_t before = resident_bytes(), since, after, batches;

    if (!host_of || !shares)
        abort();
    now = *options;
    for (int i = 0; i < nranks; i++)
        host_of[i] = i / options->nlocals;
    for (int i = 0; i < options->nhosts; i++)
        shares[i] = true;
    sim.settings = (struct hvd__settings){.fusion_threshold = 64 << 20,
                                          .shm_size = (size_t)1 << 40,
                                          .shm_small = 16384,
                                          .shm_block = 32768,
                                          .ordered = !options->by_name,
                                          .kernels = "auto",
                                          .topk_ratio = 0.01};
    sim.costs = hvd__default_costs;
    sim.has_threads = false;
    sim.program = run_program;
    sim_begin(1, nranks, host_of, shares, &options->costs);
    run_until_quiet();
    for (int i = 0; i < nranks; i++)
        memset(&sim.ranks[i].counts, 0, sizeof sim.ranks[i].counts);
    release_marks();
    since = sim.now_ns;
    batches = count_batches();
    run_layers();
    run_until_quiet();
    after = resident_bytes();
    if (!sim.failed)
        print_row((double)(sim.marked_ns - since), (after - before) / nranks,
                  count_batches() - batches, out);
    release_marks();
    run_until_quiet();
    if (sim.failed)
        fprintf(stderr, "hvd-sim: %s\n", sim.why);
    sim_end();
    free(host_of);
    free(shares);
    return !sim.failed;
}
