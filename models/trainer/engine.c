/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - owns the executable, the device and the buffers of one mini-batch.
 * An update fetches and runs as many mini-batches as the program needs for one.
 * memory_tools uses it as it is; single.c adds a model, placed variables and an
 * exchange.
 */
#include "trainer/engine.h"

#include "output/clock.h"
#include "output/device_problem.h"
#include "output/profile.h"

#include <string.h>

/* ------------------------------------------------------------------- making */

/* Connects what a guarded, scaled or cycled update has. */
static int connect_settings(struct engine *e, const struct engine_settings *s)
{
    struct backend *b = &e->base;
    int status = 0;

    if (s->guarded)
        status =
            ipu_engine_connect(e->device, "nonfinite", &b->nonfinite.average,
                               sizeof b->nonfinite.average);
    if (s->guarded && status >= 0)
        status =
            ipu_engine_connect(e->device, "nonfinite_here", &b->nonfinite.here,
                               sizeof b->nonfinite.here);
    if (s->scaled && status >= 0)
        status =
            ipu_engine_connect(e->device, "scale", &b->scale, sizeof b->scale);
    if (s->cycled && status >= 0)
        status = ipu_engine_connect(e->device, "momentum", &b->momentum,
                                    sizeof b->momentum);
    return device_status(status);
}

/* Has the device read tensor i of a mini-batch from there. */
static int connect_feed(struct engine *e, int i, void *data)
{
    e->connected[i] = data;
    return device_status(ipu_engine_connect(e->device, e->feed.tensors[i].name,
                                            data,
                                            feed_tensor_bytes(&e->feed, i)));
}

static int connect_streams(struct engine *e, bool has_rate)
{
    int status =
        ipu_engine_connect(e->device, "loss", &e->loss, sizeof e->loss);

    if (has_rate && status >= 0)
        status =
            ipu_engine_connect(e->device, "rate", &e->rate, sizeof e->rate);
    return device_status(status);
}

int engine_init(struct engine *e, const struct engine_settings *settings)
{
    *e = (struct engine){.base.functions = &engine_functions,
                         .base.steps = settings->steps,
                         .executable = settings->executable,
                         .feed = settings->feed};
    if (feed_allocate(&e->feed, 1, e->buffers) < 0)
        return PROBLEM;
    if (ipu_engine_new(e->executable, &e->device) < 0 ||
        (settings->record && ipu_engine_profile(e->device, 1) < 0))
        return device_problem();
    if (connect_streams(e, settings->has_rate) < 0)
        return PROBLEM;
    return connect_settings(e, settings);
}

static void engine_fini(struct backend *backend)
{
    struct engine *e = (struct engine *)backend;

    ipu_engine_free(e->device);
    ipu_executable_free(e->executable);
    feed_free_buffers(e->buffers);
}

/* -------------------------------------------------------------------- using */

int engine_fetch(struct engine *e)
{
    double start = clock_seconds();
    void *at[FEED_MOST_TENSORS];
    int status;

    memcpy(at, e->buffers, sizeof at);
    status = e->feed.next(e->feed.context, at);
    for (int i = 0; i < e->feed.ntensors && status >= 0; i++)
        if (at[i] != e->connected[i])
            status = connect_feed(e, i, at[i]);

    e->base.times.data += clock_seconds() - start;
    return status;
}

int engine_run(struct engine *e, double rate)
{
    e->rate = (float)rate;
    e->base.nonfinite = (struct trainer_nonfinite){-1, -1, 0};
    return ipu_engine_run(e->device);
}

static int update_engine(struct backend *backend, double rate, double *loss)
{
    struct engine *e = (struct engine *)backend;
    double sum = 0;

    for (int i = 0; i < backend->steps; i++) {
        int status = engine_fetch(e);
        double start = clock_seconds();

        if (status >= 0)
            status = device_status(engine_run(e, rate));
        if (status < 0)
            return status;
        backend->times.compute += clock_seconds() - start;
        sum += (double)e->loss;
    }
    *loss = sum / backend->steps;
    return 0;
}

static int write_engine(struct backend *backend, const char *variable,
                        const float *values, size_t bytes)
{
    struct engine *e = (struct engine *)backend;

    return device_status(ipu_engine_write(e->device, variable, values, bytes));
}

static int read_engine(const struct backend *backend, const char *variable,
                       float *values, size_t bytes)
{
    const struct engine *e = (const struct engine *)backend;

    return device_status(ipu_engine_read(e->device, variable, values, bytes));
}

static void describe_engine(const struct backend *backend,
                            struct profile_program *program)
{
    const struct engine *e = (const struct engine *)backend;

    program->executable = e->executable;
    program->engine = e->device;
}

const struct backend_functions engine_functions = {
    .update = update_engine,
    .write = write_engine,
    .read = read_engine,
    .describe = describe_engine,
    .fini = engine_fini,
};
