/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicas.c - owns the executable, the devices and the buffers of replicas. An
 * update fetches a mini-batch for each replica, one behind the other, and runs
 * all replicas once; the program itself averages the gradients. memory_tools
 * uses it, and mirrored.c.
 */
#include "trainer/replicas.h"

#include "output/clock.h"
#include "output/device_problem.h"
#include "output/profile.h"

/* Connects what a guarded, scaled or cycled update has. */
static int connect_settings(struct replicas *r,
                            const struct replicas_settings *s)
{
    const size_t bytes = (size_t)r->count * sizeof *r->nonfinite;
    int status = 0;

    if (s->guarded)
        status =
            ipu_replicas_connect(r->devices, "nonfinite", r->nonfinite, bytes);
    if (s->guarded && status >= 0)
        status = ipu_replicas_connect(r->devices, "nonfinite_here",
                                      r->nonfinite + r->count, bytes);
    if (s->scaled && status >= 0)
        status = ipu_replicas_connect_shared(
            r->devices, "scale", &r->base.scale, sizeof r->base.scale);
    if (s->cycled && status >= 0)
        status = ipu_replicas_connect_shared(
            r->devices, "momentum", &r->base.momentum, sizeof r->base.momentum);
    return device_status(status);
}

/* Finds the first replica whose gradients are not finite. */
static struct trainer_nonfinite find_nonfinite(const struct replicas *r)
{
    struct trainer_nonfinite found = {r->nonfinite[0], -1, 0};

    for (int i = 0; i < r->count && found.here < 0; i++) {
        found.here = r->nonfinite[r->count + i];
        found.replica = i;
    }
    return found;
}

static int connect_streams(struct replicas *r, bool has_rate)
{
    size_t count = (size_t)r->count;
    int status = ipu_replicas_connect(r->devices, "loss", r->losses,
                                      count * sizeof *r->losses);

    for (int i = 0; i < r->feed.ntensors && status >= 0; i++)
        status = ipu_replicas_connect(r->devices, r->feed.tensors[i].name,
                                      r->buffers[i],
                                      count * feed_tensor_bytes(&r->feed, i));
    if (has_rate && status >= 0)
        status = ipu_replicas_connect_shared(r->devices, "rate", &r->rate,
                                             sizeof r->rate);
    return device_status(status);
}

int replicas_init(struct replicas *r, const struct replicas_settings *settings)
{
    ipu_replicas_options options;

    *r = (struct replicas){.base.functions = &replicas_functions,
                           .base.steps = 1,
                           .count = settings->replicas,
                           .executable = settings->executable,
                           .feed = settings->feed};
    r->losses = calloc((size_t)settings->replicas, sizeof *r->losses);
    r->nonfinite =
        malloc(2 * (size_t)settings->replicas * sizeof *r->nonfinite);
    if (!r->losses || !r->nonfinite)
        return problem_set("no memory for a batch");
    if (feed_allocate(&r->feed, settings->replicas, r->buffers) < 0)
        return PROBLEM;
    ipu_replicas_options_init(&options, sizeof options);
    options.ipus = settings->replicas;
    if (settings->sums.algorithm >= 0)
        options.cross_replica_algorithm = settings->sums.algorithm;
    options.packs = settings->sums.packs;
    if (ipu_replicas_new(r->executable, &options, &r->devices) < 0)
        return device_problem();
    if (connect_streams(r, settings->has_rate) < 0)
        return PROBLEM;
    return connect_settings(r, settings);
}

static void replicas_fini(struct backend *backend)
{
    struct replicas *r = (struct replicas *)backend;

    ipu_replicas_free(r->devices);
    ipu_executable_free(r->executable);
    feed_free_buffers(r->buffers);
    free(r->losses);
    free(r->nonfinite);
}

/* Fetches a mini-batch for each replica, one behind the other. */
static int fetch_batches(struct replicas *r)
{
    int status = 0;

    for (int i = 0; i < r->count && status >= 0; i++) {
        void *at[FEED_MOST_TENSORS];

        for (int k = 0; k < r->feed.ntensors; k++)
            at[k] = (char *)r->buffers[k] +
                    (size_t)i * feed_tensor_bytes(&r->feed, k);
        status = feed_fill(&r->feed, at);
    }
    return status;
}

static int update_replicas(struct backend *backend, double rate, double *loss)
{
    struct replicas *r = (struct replicas *)backend;
    double start = clock_seconds(), fetched, sum = 0;
    int status = fetch_batches(r);

    r->rate = (float)rate;
    for (int i = 0; i < 2 * r->count; i++)
        r->nonfinite[i] = -1;
    fetched = clock_seconds();
    if (status >= 0)
        status = device_status(ipu_replicas_run(r->devices));
    if (status < 0)
        return status;
    backend->times.data += fetched - start;
    backend->times.compute += clock_seconds() - fetched;
    for (int i = 0; i < r->count; i++)
        sum += (double)r->losses[i];
    *loss = sum / r->count;
    backend->nonfinite = find_nonfinite(r);
    return 0;
}

static int write_replicas(struct backend *backend, const char *variable,
                          const float *values, size_t bytes)
{
    struct replicas *r = (struct replicas *)backend;

    return device_status(
        ipu_replicas_write(r->devices, variable, values, bytes));
}

static int read_replicas(const struct backend *backend, const char *variable,
                         float *values, size_t bytes)
{
    const struct replicas *r = (const struct replicas *)backend;

    return device_status(
        ipu_replicas_read(r->devices, 0, variable, values, bytes));
}

static int replicas_get_sums(const struct backend *backend,
                             struct sums_stats *stats)
{
    const struct replicas *r = (const struct replicas *)backend;
    ipu_replicas_info info = {.size = sizeof info};

    if (ipu_replicas_stats(r->devices, &info) < 0)
        return device_problem();
    *stats = (struct sums_stats){.cycles = info.total_cycles,
                                 .exchange_cycles = info.exchange_cycles,
                                 .exchanges = info.exchanges,
                                 .sent_bytes = info.sent_bytes};
    return 0;
}

static void describe_replicas(const struct backend *backend,
                              struct profile_program *program)
{
    program->executable = ((const struct replicas *)backend)->executable;
}

const struct backend_functions replicas_functions = {
    .update = update_replicas,
    .write = write_replicas,
    .read = read_replicas,
    .get_sums = replicas_get_sums,
    .describe = describe_replicas,
    .fini = replicas_fini,
};
