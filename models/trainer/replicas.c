/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicas.c - owns the executable, the devices and the buffers of replicas. An
 * update fetches a mini-batch for each replica, one behind the other, and runs
 * all replicas once; the program itself averages the gradients. memory_tools
 * uses it.
 */
#include "trainer/replicas.h"

#include "output/clock.h"
#include "output/device_problem.h"
#include "output/profile.h"

static const struct backend_functions functions;

static int connect_streams(struct replicas *r)
{
    size_t count = (size_t)r->base.steps;
    int status = ipu_replicas_connect(r->devices, "loss", r->losses,
                                      count * sizeof *r->losses);

    for (int i = 0; i < r->feed.ntensors && status >= 0; i++)
        status = ipu_replicas_connect(r->devices, r->feed.tensors[i].name,
                                      r->buffers[i],
                                      count * feed_tensor_bytes(&r->feed, i));
    return device_status(status);
}

int replicas_init(struct replicas *r, const struct replicas_settings *settings)
{
    ipu_replicas_options options;

    *r = (struct replicas){.base.functions = &functions,
                           .base.steps = settings->replicas,
                           .executable = settings->executable,
                           .feed = settings->feed};
    r->losses = calloc((size_t)settings->replicas, sizeof *r->losses);
    if (!r->losses)
        return problem_set("no memory for a batch");
    if (feed_allocate(&r->feed, settings->replicas, r->buffers) < 0)
        return PROBLEM;
    ipu_replicas_options_init(&options, sizeof options);
    options.ipus = settings->replicas;
    if (ipu_replicas_new(r->executable, &options, &r->devices) < 0)
        return device_problem();
    return connect_streams(r);
}

static void replicas_fini(struct backend *backend)
{
    struct replicas *r = (struct replicas *)backend;

    ipu_replicas_free(r->devices);
    ipu_executable_free(r->executable);
    feed_free_buffers(r->buffers);
    free(r->losses);
}

/* Fetches a mini-batch for each replica, one behind the other. */
static int fetch_batches(struct replicas *r)
{
    int status = 0;

    for (int i = 0; i < r->base.steps && status >= 0; i++) {
        void *at[FEED_MOST_TENSORS];

        for (int k = 0; k < r->feed.ntensors; k++)
            at[k] = (char *)r->buffers[k] +
                    (size_t)i * feed_tensor_bytes(&r->feed, k);
        status = r->feed.next(r->feed.context, at);
    }
    return status;
}

static int update_replicas(struct backend *backend, double rate, double *loss)
{
    struct replicas *r = (struct replicas *)backend;
    double start = clock_seconds(), fetched, sum = 0;
    int status = fetch_batches(r);

    (void)rate;
    fetched = clock_seconds();
    if (status >= 0)
        status = device_status(ipu_replicas_run(r->devices));
    if (status < 0)
        return status;
    backend->times.data += fetched - start;
    backend->times.compute += clock_seconds() - fetched;
    for (int i = 0; i < backend->steps; i++)
        sum += (double)r->losses[i];
    *loss = sum / backend->steps;
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

static void describe_replicas(const struct backend *backend,
                              struct profile_program *program)
{
    program->executable = ((const struct replicas *)backend)->executable;
}

static const struct backend_functions functions = {
    .update = update_replicas,
    .write = write_replicas,
    .read = read_replicas,
    .describe = describe_replicas,
    .fini = replicas_fini,
};
