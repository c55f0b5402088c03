/* SPDX-License-Identifier: Apache-2.0 */
/*
 * single.c - an engine for a model: its variables are in memory of the host,
 * and its gradients are averaged over the ranks.
 *
 * A single rank averages nothing: its program has no host calls and no
 * receives, which would cost the chip more than all its other work, and the
 * exchange only broadcasts and compares. Then the time of the optimiser is not
 * measured separately.
 */
#include "trainer/model_backend.h"

#include "output/clock.h"
#include "output/device_problem.h"
#include "trainer/engine.h"
#include "trainer/engine_exchange.h"

struct single {
    struct engine engine;               /* its base has the exchange */
    struct backend_functions functions; /* the engine's, but for three */
    struct engine_exchange calls;
    struct model_feed source;
    const struct model *model; /* borrowed, as the values */
    float *const *values;
};

/* The exchange's memory is known once it has started. */
static int place_tensors(struct single *s)
{
    const struct model *m = s->model;

    if (!s->engine.base.exchange->alone &&
        engine_exchange_place(&s->calls, m, s->engine.device) < 0)
        return PROBLEM;
    for (int i = 0; i < m->nvariables; i++)
        if (ipu_engine_place(s->engine.device, m->variables[i].name,
                             s->values[i],
                             (size_t)m->variables[i].count * sizeof(float)) < 0)
            return program_device_problem();
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
    struct exchange_stats stats;

    backend->exchange->functions->get_stats(backend->exchange, &stats);
    return stats.wait;
}

static int update_single(struct backend *backend, double rate, double *loss)
{
    struct single *s = (struct single *)backend;
    int status = engine_fetch(&s->engine);
    double start = clock_seconds(), waited = waited_seconds(backend);

    if (status < 0)
        return status;
    engine_exchange_begin(&s->calls, start);
    status = engine_run(&s->engine, rate);
    double end = clock_seconds();
    if (!s->calls.averaged) /* gradients were accumulated only */
        s->calls.asked_at = end;
    waited = waited_seconds(backend) - waited;
    backend->times.wait += waited;
    backend->times.compute += s->calls.asked_at - start;
    backend->times.update += end - s->calls.asked_at - waited;
    if (status < 0)
        return backend->exchange->problem ? backend->exchange->problem
                                          : program_device_problem();
    *loss = (double)s->engine.loss;
    return 0;
}

static void single_fini(struct backend *backend)
{
    struct single *s = (struct single *)backend;

    /* First: the exchange may still be writing to the variables. */
    exchange_free(backend->exchange);
    engine_functions.fini(backend);
    engine_exchange_fini(&s->calls);
}

static int make_engine(struct single *s, const struct model_backend *of,
                       struct exchange *exchange)
{
    const struct trainer_options *o = of->options;
    const struct program_exchange calls = engine_exchange_calls(&s->calls);
    struct engine_settings settings = {.feed =
                                           model_feed_of(of->model, &s->source),
                                       .steps = 1,
                                       .has_rate = true,
                                       .record = of->record};
    int status = program_training(
        of->model, &o->optimizer, of->seed, exchange->alone ? NULL : &calls,
        o->proportion, o->progress, &settings.executable);

    if (status == 0 && engine_init(&s->engine, &settings) < 0)
        status = problem_set("device: %s", problem_text());
    s->engine.base.functions = &s->functions;
    s->engine.base.exchange = exchange;
    return status;
}

static int make_exchange(const struct model_backend *of,
                         struct exchange **exchange)
{
    const struct trainer_options *o = of->options;
    const struct exchange_settings settings = {o->compression, o->check_every,
                                               o->serial};
    int status = exchange_new(&settings, exchange);

    for (int i = 0; i < of->model->nvariables && status == 0; i++) {
        const struct model_variable *v = &of->model->variables[i];

        status = (*exchange)->functions->add(*exchange, v->name, of->values[i],
                                             v->ndim, v->shape);
    }
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
    status = make_exchange(of, &s->engine.base.exchange);
    if (status == 0)
        status =
            engine_exchange_init(&s->calls, of->model, s->engine.base.exchange);
    if (status == 0)
        status = make_engine(s, of, s->engine.base.exchange);
    if (status == 0)
        *backend = &s->engine.base;
    else
        backend_free(&s->engine.base);
    return status;
}
