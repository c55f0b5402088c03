/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirrored.c - replicas of a model on several devices of this process, and on
 * those of all ranks. Every replica holds the variables.
 *
 *     replica 0: backward pass ==|mean of|== host call  --.
 *     replica 1: backward pass ==|  all  |== host call  --+-- the first to
 * come: replica 2: backward pass ==|gradients|= host call --'   ready(v)
 *                                        receive:  the first waits for the
 *                                        averages over the ranks, each copies
 *
 * All replicas come to their host calls with the same bits, so it does not
 * matter which of them speaks for the rank. A replica has made all of its host
 * calls before it waits, so that one of them never waits for another. If there
 * is one rank only, nothing leaves the devices.
 *
 * If normalisations are synchronised, their means and variances travel between
 * the ranks on the devices' network (device_collective.h), in the middle of the
 * run.
 *
 * Statistics stay on each replica; this rank's are their means, which are made
 * when somebody reads them.
 *
 * The first replica has its variables in memory of the host. If the exchange
 * updates, that is the only copy beside those that a step needs on the devices:
 * each replica gets the new values, and has no state of an optimiser.
 */
#include "trainer/model_backend.h"

#include "output/clock.h"
#include "output/device_problem.h"
#include "trainer/device_collective.h"
#include "trainer/program.h"
#include "trainer/replicas.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The context of the host calls of one gradient. */
struct arrival {
    struct mirrored *owner;
    int32_t variable;
    bool given; /* in this run; the owner's lock guards it */
};

struct mirrored {
    struct replicas replicas;           /* its base has the exchange */
    struct backend_functions functions; /* those of replicas, but for four */
    struct model_feed source;
    const struct model *model; /* borrowed, as the values */
    float *const *values;
    float *const *own;  /* [statistics], borrowed */
    float **statistics; /* owned, [replicas][statistics], each owned; NULL: they
                           are on the devices */
    struct arrival *arrivals; /* owned, [trained], as the next */
    void **contexts;
    struct device_collective *network; /* owned; NULL: there is none */
    pthread_mutex_t lock; /* guards what follows, and calls of the exchange */
    bool averaged;        /* this run has its averages */
    int failed;           /* status of the exchange that ended this run */
    char text[512]; /* why, which the thread of another replica has kept */
};

static struct mirrored *of_backend(struct backend *backend)
{
    return (struct mirrored *)backend;
}

/* ------------------------------------------------------------- in the run */

/* Ends this run, with the exchange's text. */
static void fail(struct mirrored *m, int status)
{
    m->failed = status;
    snprintf(m->text, sizeof m->text, "%s", problem_text());
}

static int gradient_ready(void *context, const char *name, void *data,
                          int64_t count)
{
    struct arrival *arrival = context;
    struct mirrored *m = arrival->owner;
    struct exchange *x = m->replicas.base.exchange;

    (void)name;
    pthread_mutex_lock(&m->lock);
    if (!arrival->given && m->failed == 0) {
        arrival->given = true;
        memcpy(x->functions->gradient(x, arrival->variable), data,
               (size_t)count * sizeof(float));
        int status = x->functions->ready(x, arrival->variable);
        if (status < 0)
            fail(m, status);
    }
    int failed = m->failed;
    pthread_mutex_unlock(&m->lock);
    return failed;
}

static int average_wanted(void *context, const char *name, void *data,
                          int64_t count)
{
    const struct arrival *arrival = context;
    struct mirrored *m = arrival->owner;
    struct exchange *x = m->replicas.base.exchange;

    (void)name;
    pthread_mutex_lock(&m->lock);
    if (!m->averaged && m->failed == 0) {
        int status = x->functions->wait(x);

        m->averaged = status >= 0;
        if (status < 0)
            fail(m, status);
    }
    int failed = m->failed;
    pthread_mutex_unlock(&m->lock);
    if (failed == 0 && data != exchange_result(x, arrival->variable))
        memcpy(data, exchange_result(x, arrival->variable),
               (size_t)count * sizeof(float));
    return failed;
}

static int update_mirrored(struct backend *backend, double rate, double *loss)
{
    struct mirrored *m = of_backend(backend);
    struct exchange *x = backend->exchange;
    double waited = exchange_get_stats(x).wait;

    for (int i = 0; i < m->model->trained; i++)
        m->arrivals[i].given = false;
    m->averaged = false;
    m->failed = 0;
    x->problem = 0;
    x->rate = rate;
    if (m->network)
        device_collective_begin(m->network);
    int status = replicas_functions.update(backend, rate, loss);
    waited = exchange_get_stats(x).wait - waited;
    if (m->network)
        waited += device_collective_waited(m->network);
    backend->times.wait += waited;
    backend->times.compute -= waited;
    if (status < 0 && x->problem) {
        problem_set("%s", m->text);
        return x->problem;
    }
    return status < 0 && m->network && device_collective_problem(m->network)
               ? device_collective_problem(m->network)
               : status;
}

/* ----------------------------------------------------------------- starting */

/* Gives all replicas the values, and the first one a place on the host for
 * those that are trained. */
static int place_values(struct mirrored *m)
{
    ipu_replicas *devices = m->replicas.devices;
    int status = 0;

    for (int i = 0; i < m->model->nvariables && status >= 0; i++) {
        const struct model_variable *v = &m->model->variables[i];
        size_t bytes = (size_t)v->count * sizeof(float);

        status = ipu_replicas_write(devices, v->name, m->values[i], bytes);
        if (status >= 0 && i < m->model->trained)
            status =
                ipu_replicas_place(devices, 0, v->name, m->values[i], bytes);
    }
    return device_status(status);
}

/* Gives the statistics of each replica a place on the host, from which a
 * skipped update can take them back. */
static int place_statistics(struct mirrored *m)
{
    const struct model *model = m->model;
    const int count = model_statistics(model);
    int status = 0;

    for (int i = 0; m->statistics && i < m->replicas.count * count; i++) {
        const struct model_variable *v =
            &model->variables[model->trained + i % count];
        const size_t bytes = (size_t)v->count * sizeof(float);

        m->statistics[i] = model_memory(bytes);
        if (!m->statistics[i])
            return problem_set("no memory for the network's statistics");
        memcpy(m->statistics[i], m->values[model->trained + i % count], bytes);
        if (status >= 0)
            status = ipu_replicas_place(m->replicas.devices, i / count, v->name,
                                        m->statistics[i], bytes);
    }
    return device_status(status);
}

static int start_mirrored(struct backend *backend)
{
    struct exchange *x = backend->exchange;
    int status = x->functions->start(x);

    if (status < 0)
        return status;
    status = place_values(of_backend(backend));
    if (status == 0)
        status = place_statistics(of_backend(backend));
    return x->functions->agree(x, status);
}

/* Makes own the mean of a statistic over the replicas. part has room for it. */
static int average_statistic(struct mirrored *m, const struct model_variable *v,
                             float *own, float *part)
{
    const int count = m->replicas.count;
    int status = 0;

    memset(own, 0, (size_t)v->count * sizeof *own);
    for (int r = 0; r < count && status >= 0; r++) {
        status = ipu_replicas_read(m->replicas.devices, r, v->name, part,
                                   (size_t)v->count * sizeof *part);
        for (int64_t k = 0; k < v->count && status >= 0; k++)
            own[k] += part[k] / (float)count;
    }
    return device_status(status);
}

static int collect_mirrored(struct backend *backend)
{
    struct mirrored *m = of_backend(backend);
    int status = 0;

    for (int i = m->model->trained; i < m->model->nvariables && !status; i++) {
        const struct model_variable *v = &m->model->variables[i];
        float *part = model_memory((size_t)v->count * sizeof *part);

        status =
            part ? average_statistic(m, v, m->own[i - m->model->trained], part)
                 : problem_set("no memory for the network's statistics");
        free(part);
    }
    return status;
}

static int check_mirrored(struct backend *backend)
{
    int status =
        ipu_replicas_check_equal(of_backend(backend)->replicas.devices);

    return device_status(status);
}

static void mirrored_fini(struct backend *backend)
{
    struct mirrored *m = of_backend(backend);

    /* First: the exchange may still be writing to the variables. */
    exchange_free(backend->exchange);
    replicas_functions.fini(backend);
    device_collective_free(m->network);
    for (int i = 0; m->statistics && i < backend->nstatistics; i++)
        free(m->statistics[i]);
    free(m->statistics);
    free(m->arrivals);
    free(m->contexts);
    pthread_mutex_destroy(&m->lock);
}

static int make_contexts(struct mirrored *m)
{
    size_t trained = (size_t)m->model->trained;

    m->arrivals = calloc(trained + 1, sizeof *m->arrivals);
    m->contexts = calloc(trained + 1, sizeof *m->contexts);
    if (!m->arrivals || !m->contexts)
        return problem_set("no memory for the network");
    for (int i = 0; i < m->model->trained; i++) {
        m->arrivals[i] = (struct arrival){.owner = m, .variable = i};
        m->contexts[i] = &m->arrivals[i];
    }
    return 0;
}

/* Has room for the places of the statistics, if updates may be skipped. */
static int make_statistics(struct mirrored *m, const struct trainer_options *o)
{
    const int count = o->replicas * model_statistics(m->model);

    if (count == 0 || !o->optimizer.guarded)
        return 0;
    m->statistics = calloc((size_t)count, sizeof *m->statistics);
    m->replicas.base.statistics = m->statistics;
    m->replicas.base.nstatistics = m->statistics ? count : 0;
    return m->statistics ? 0 : problem_set("no memory for the network");
}

static int make_replicas(struct mirrored *m, const struct model_backend *of,
                         struct exchange *exchange)
{
    const struct trainer_options *o = of->options;
    const struct program_exchange calls = {gradient_ready, average_wanted,
                                           m->contexts};
    const struct program_settings program = {
        .optimizer = &o->optimizer,
        .seed = of->seed,
        .replicas = o->replicas,
        .exchange = exchange->alone ? NULL : &calls,
        .assigns = exchange->updates,
        .network = m->network ? device_collective_model(m->network) : NULL,
        .synchronised = o->synchronised};
    struct replicas_settings settings = {
        .feed = model_feed_of(of->model, &m->source),
        .replicas = o->replicas,
        .sums = o->sums,
        .has_rate = true,
        .guarded = o->optimizer.guarded,
        .scaled = o->optimizer.scaled,
        .cycled = o->optimizer.cycled};
    int status = program_training(of->model, &program, o->proportion,
                                  o->progress, &settings.executable);

    if (status == 0)
        status = replicas_init(&m->replicas, &settings);
    if (status == 0 && program.network)
        status =
            device_collective_connect_replicas(m->network, m->replicas.devices);
    m->replicas.base.functions = &m->functions;
    m->replicas.base.exchange = exchange;
    m->replicas.base.source = &m->source;
    return status;
}

int mirrored_new(const struct model_backend *of, struct backend **backend)
{
    const struct trainer_options *o = of->options;
    struct mirrored *m = calloc(1, sizeof *m);
    struct exchange *exchange = NULL;
    int status;

    if (!m)
        return problem_set("no memory for the network");
    pthread_mutex_init(&m->lock, NULL);
    m->functions = replicas_functions;
    m->functions.start = start_mirrored;
    m->functions.update = update_mirrored;
    m->functions.collect = collect_mirrored;
    m->functions.check = check_mirrored;
    m->functions.fini = mirrored_fini;
    m->replicas.base.functions = &m->functions;
    m->source =
        (struct model_feed){.fill = o->fill, .context = o->fill_context};
    m->model = of->model;
    m->values = of->values;
    m->own = of->own;
    status = make_contexts(m);
    if (status == 0)
        status = model_exchange_new(of, &exchange);
    if (status == 0 && o->synchronised)
        status = device_collective_new(NULL, -1, &m->network);
    if (status == 0)
        status = make_replicas(m, of, exchange);
    if (status == 0)
        status = make_statistics(m, o);
    m->replicas.base.exchange = exchange;
    if (status == 0)
        *backend = &m->replicas.base;
    else
        backend_free(&m->replicas.base);
    return status;
}
