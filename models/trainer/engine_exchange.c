/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_exchange.c - the callbacks between a program and an exchange.
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
 */
#include "trainer/engine_exchange.h"

#include "output/clock.h"
#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

/* The context of the host calls of one gradient. */
struct arrival {
    struct engine_exchange *owner;
    int32_t variable;
};

static int gradient_ready(void *context, const char *name, void *data,
                          int64_t count)
{
    const struct arrival *arrival = context;
    struct exchange *x = arrival->owner->exchange;

    (void)name;
    (void)data;
    (void)count;
    return x->functions->ready(x, arrival->variable);
}

static int average_wanted(void *context, const char *name, void *data,
                          int64_t count)
{
    const struct arrival *arrival = context;
    struct engine_exchange *e = arrival->owner;
    struct exchange *x = e->exchange;
    const float *average = x->functions->gradient(x, arrival->variable);
    int status = 0;

    (void)name;
    if (!e->averaged) {
        e->asked_at = clock_seconds();
        status = x->functions->wait(x);
        e->averaged = true;
    }
    if (status >= 0 && data != average)
        memcpy(data, average, (size_t)count * sizeof(float));
    return status;
}

int engine_exchange_init(struct engine_exchange *e, const struct model *model,
                         struct exchange *exchange)
{
    size_t variables = (size_t)model->nvariables;

    e->exchange = exchange;
    e->arrivals = calloc(variables + 1, sizeof *e->arrivals);
    e->contexts = calloc(variables + 1, sizeof *e->contexts);
    if (!e->arrivals || !e->contexts)
        return problem_set("no memory for the network");
    for (int i = 0; i < model->nvariables; i++) {
        e->arrivals[i] = (struct arrival){e, i};
        e->contexts[i] = &e->arrivals[i];
    }
    return 0;
}

void engine_exchange_fini(struct engine_exchange *e)
{
    free(e->arrivals);
    free(e->contexts);
}

struct program_exchange engine_exchange_calls(const struct engine_exchange *e)
{
    return (struct program_exchange){gradient_ready, average_wanted,
                                     e->contexts};
}

int engine_exchange_place(const struct engine_exchange *e,
                          const struct model *model, ipu_engine *engine)
{
    for (int i = 0; i < model->nvariables; i++) {
        const struct model_variable *v = &model->variables[i];
        float *gradient = e->exchange->functions->gradient(e->exchange, i);

        if (ipu_engine_place(engine, v->stream, gradient,
                             (size_t)v->count * sizeof(float)) < 0)
            return program_device_problem();
    }
    return 0;
}

void engine_exchange_begin(struct engine_exchange *e, double now)
{
    e->averaged = false;
    e->asked_at = now;
    e->exchange->problem = 0;
}
