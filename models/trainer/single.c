/* SPDX-License-Identifier: Apache-2.0 */
/*
 * single.c - an engine for a model: its variables are in memory of the host,
 * and its gradients are averaged over the ranks.
 *
 *          device, one run                     exchange
 *     backward pass computes gradient v
 *       in the exchange's memory
 *     host call "gradient/v"        ------>  ready(v)
 *     ... backward pass continues             averaged meanwhile, in place
 *     receive "average/..."         ------>  wait: for all averages
 *     optimiser, on averages and
 *       variables in place
 *
 * ipu_engine_place puts the gradients into the exchange's memory, so that
 * nothing is copied. With IPU_POISON the result of a receive has separate
 * memory, and average_wanted copies.
 *
 * The first receive waits for all averages: the optimiser may not change a
 * variable as long as something may fail. A negative status of the exchange
 * ends the device's run.
 *
 * With parameter servers, or an optimiser on the host, the receives are of new
 * values, and the program only assigns them.
 *
 * Under the strategy device-collective the program averages its gradients
 * itself, on the devices' network (device_collective.h): it has no host calls
 * either, and the exchange only broadcasts the first values. Synchronised
 * normalisation of several ranks uses that network under every strategy.
 *
 * A single rank averages nothing: its program has no host calls and no
 * receives, which would cost the chip more than all its other work, and the
 * exchange only broadcasts and compares. Then the time of the optimiser is not
 * measured separately.
 */
#include "trainer/model_backend.h"

#include "output/clock.h"
#include "output/device_problem.h"
#include "trainer/device_collective.h"
#include "trainer/engine.h"
#include "trainer/program.h"
#include "trainer/strategy.h"

#include <stdio.h>
#include <string.h>

/* The context of the host calls of one gradient. */
struct arrival {
    struct single *owner;
    int32_t variable;
};

struct single {
    struct engine engine;               /* its base has the exchange */
    struct backend_functions functions; /* the engine's, but for three */
    struct model_feed source;
    const struct model *model; /* borrowed, as the values */
    float *const *values;
    float *const *own;        /* [statistics], borrowed */
    struct arrival *arrivals; /* owned, [trained], as the next */
    void **contexts;
    struct device_collective *network; /* owned; NULL: there is none */
    bool networked;  /* gradients take the network, and not the exchange */
    bool averaged;   /* true once this run has its averages */
    double asked_at; /* clock_seconds when this run first asked for averages */
};

/* ------------------------------------------------------------- in the run */

static int64_t count_of(const struct arrival *arrival)
{
    return arrival->owner->model->variables[arrival->variable].count;
}

/* Ends the run of a graph from a file in which a gradient, or the receive of an
 * average, is not of its variable's size. */
static int refuse_count(const struct arrival *arrival, const char *name,
                        int64_t count)
{
    struct exchange *x = arrival->owner->engine.base.exchange;
    char why[192];

    snprintf(why, sizeof why,
             "the graph has '%s' with %lld elements, and its variable has "
             "%lld",
             name, (long long)count, (long long)count_of(arrival));
    x->problem = problem_set("device: %s", why);
    x->functions->abandon(x, why);
    return IPU_ERR_SHAPE;
}

static int gradient_ready(void *context, const char *name, void *data,
                          int64_t count)
{
    const struct arrival *arrival = context;
    struct exchange *x = arrival->owner->engine.base.exchange;

    if (count != count_of(arrival))
        return refuse_count(arrival, name, count);
    if (data != x->functions->gradient(x, arrival->variable))
        memcpy(x->functions->gradient(x, arrival->variable), data,
               (size_t)count * sizeof(float));
    return x->functions->ready(x, arrival->variable);
}

static int average_wanted(void *context, const char *name, void *data,
                          int64_t count)
{
    const struct arrival *arrival = context;
    struct single *s = arrival->owner;
    struct exchange *x = s->engine.base.exchange;
    const float *average = exchange_result(x, arrival->variable);
    int status = 0;

    if (count != count_of(arrival))
        return refuse_count(arrival, name, count);
    if (!s->averaged) {
        s->asked_at = clock_seconds();
        status = x->functions->wait(x);
        s->averaged = true;
    }
    if (status >= 0 && data != average)
        memcpy(data, average, (size_t)count * sizeof(float));
    return status;
}

/* ----------------------------------------------------------------- starting */

/* Has the engine compute a gradient in the exchange's memory. One that is a
 * constant, of a variable without effect on the loss, stays where it is, and
 * gradient_ready copies it. */
static int place_gradient(struct single *s, int i)
{
    const struct model_variable *v = &s->model->variables[i];
    struct exchange *x = s->engine.base.exchange;
    int status = ipu_engine_place(s->engine.device, v->stream,
                                  x->functions->gradient(x, i),
                                  (size_t)v->count * sizeof(float));

    return status == IPU_ERR_STATE ? 0 : status;
}

/* Has the engine use the variables where they are, and compute gradients in the
 * exchange's memory, which is known once it has started. */
static int place_tensors(struct single *s)
{
    struct exchange *x = s->engine.base.exchange;

    const int trained = s->model->trained;

    for (int i = 0; i < s->model->nvariables; i++) {
        const struct model_variable *v = &s->model->variables[i];
        size_t bytes = (size_t)v->count * sizeof(float);
        float *value = i < trained ? s->values[i] : s->own[i - trained];

        if ((i < trained && !x->alone && !s->networked &&
             place_gradient(s, i) < 0) ||
            ipu_engine_place(s->engine.device, v->name, value, bytes) < 0)
            return program_device_problem();
    }
    return 0;
}

static int start_single(struct backend *backend)
{
    struct exchange *x = backend->exchange;
    int status = x->functions->start(x);

    if (status < 0)
        return status;
    return x->functions->agree(x, place_tensors((struct single *)backend));
}

static double waited_seconds(const struct backend *backend)
{
    return exchange_get_stats(backend->exchange).wait;
}

static double network_waited(const struct single *s)
{
    return s->network ? device_collective_waited(s->network) : 0;
}

/* Returns the problem that has ended a run. */
static int run_problem(const struct single *s)
{
    int of_network = s->network ? device_collective_problem(s->network) : 0;

    if (s->engine.base.exchange->problem)
        return s->engine.base.exchange->problem;
    return of_network ? of_network : program_device_problem();
}

/* Makes an update on the devices' network. */
static int update_networked(struct single *s, double rate)
{
    struct backend *backend = &s->engine.base;
    double start = clock_seconds(), waited;
    int status;

    status = engine_run(&s->engine, rate);
    waited = network_waited(s);
    backend->times.wait += waited;
    backend->times.compute += clock_seconds() - start - waited;
    return status < 0 ? run_problem(s) : 0;
}

static int update_single(struct backend *backend, double rate, double *loss)
{
    struct single *s = (struct single *)backend;
    int status = engine_fetch(&s->engine);
    double start = clock_seconds(), waited = waited_seconds(backend);

    if (status < 0)
        return status;
    backend->exchange->problem = 0;
    if (s->network)
        device_collective_begin(s->network);
    if (s->networked) {
        status = update_networked(s, rate);
        *loss = (double)s->engine.loss;
        return status;
    }
    s->averaged = false;
    s->asked_at = start;
    backend->exchange->rate = rate;
    status = engine_run(&s->engine, rate);
    double end = clock_seconds();
    if (!s->averaged) /* gradients were accumulated only */
        s->asked_at = end;
    waited = waited_seconds(backend) - waited;
    backend->times.wait += waited + network_waited(s);
    backend->times.compute += s->asked_at - start - network_waited(s);
    backend->times.update += end - s->asked_at - waited;
    if (status < 0)
        return run_problem(s);
    *loss = (double)s->engine.loss;
    return 0;
}

static void single_fini(struct backend *backend)
{
    struct single *s = (struct single *)backend;

    /* First: the exchange may still be writing to the variables. */
    exchange_free(backend->exchange);
    engine_functions.fini(backend);
    device_collective_free(s->network);
    free(s->arrivals);
    free(s->contexts);
}

static int make_contexts(struct single *s)
{
    size_t trained = (size_t)s->model->trained;

    s->arrivals = calloc(trained + 1, sizeof *s->arrivals);
    s->contexts = calloc(trained + 1, sizeof *s->contexts);
    if (!s->arrivals || !s->contexts)
        return problem_set("no memory for the network");
    for (int i = 0; i < s->model->trained; i++) {
        s->arrivals[i] = (struct arrival){s, i};
        s->contexts[i] = &s->arrivals[i];
    }
    return 0;
}

/* Gives the host calls of a graph from a file their functions. */
static int connect_calls(struct single *s)
{
    for (int i = 0; i < s->model->trained; i++) {
        const struct model_variable *v = &s->model->variables[i];
        char average[72];

        program_average_name(v, average, sizeof average);
        if (ipu_engine_connect_call(s->engine.device, v->stream, gradient_ready,
                                    s->contexts[i]) < 0 ||
            ipu_engine_connect_call(s->engine.device, average, average_wanted,
                                    s->contexts[i]) < 0)
            return program_device_problem();
    }
    return 0;
}

static int make_engine(struct single *s, const struct model_backend *of,
                       struct exchange *exchange)
{
    const struct trainer_options *o = of->options;
    const struct program_exchange calls = {gradient_ready, average_wanted,
                                           s->contexts};
    struct engine_settings settings = {.feed =
                                           model_feed_of(of->model, &s->source),
                                       .steps = 1,
                                       .has_rate = true,
                                       .guarded = o->optimizer.guarded,
                                       .scaled = o->optimizer.scaled,
                                       .cycled = o->optimizer.cycled,
                                       .record = of->record};
    const struct program_settings program = {
        .optimizer = &o->optimizer,
        .seed = of->seed,
        .replicas = 1,
        .exchange = exchange->alone || s->networked ? NULL : &calls,
        .assigns = exchange->updates,
        .network = s->network ? device_collective_model(s->network) : NULL,
        .synchronised = o->synchronised};
    int status = program_training(of->model, &program, o->proportion,
                                  o->progress, &settings.executable);

    if (status == 0 && engine_init(&s->engine, &settings) < 0)
        status = problem_set("device: %s", problem_text());
    if (status == 0 && s->network)
        status = device_collective_connect(s->network, s->engine.device);
    if (status == 0 && of->model->graphs && !exchange->alone)
        status = connect_calls(s);
    s->engine.base.functions = &s->functions;
    s->engine.base.exchange = exchange;
    s->engine.base.source = &s->source;
    s->engine.base.statistics = s->own;
    s->engine.base.nstatistics = model_statistics(s->model);
    return status;
}

int single_new(const struct model_backend *of, struct backend **backend)
{
    const struct trainer_options *o = of->options;
    struct single *s = calloc(1, sizeof *s);
    int status;

    if (!s)
        return problem_set("no memory for the network");
    s->functions = engine_functions;
    s->functions.start = start_single;
    s->functions.update = update_single;
    s->functions.fini = single_fini;
    s->engine.base.functions = &s->functions;
    s->source =
        (struct model_feed){.fill = o->fill, .context = o->fill_context};
    s->model = of->model;
    s->values = of->values;
    s->own = of->own;
    status = model_exchange_new(of, &s->engine.base.exchange);
    s->networked = o->strategy == STRATEGY_DEVICE_COLLECTIVE;
    if (status == 0 && (s->networked || o->synchronised))
        status = device_collective_new(o->recipe, o->pack_bytes, &s->network);
    if (status == 0)
        status = make_contexts(s);
    if (status == 0)
        status = make_engine(s, of, s->engine.base.exchange);
    if (status == 0)
        *backend = &s->engine.base;
    else
        backend_free(&s->engine.base);
    return status;
}
