/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_exchange.c - the callbacks between a pipeline and an exchange.
 *
 *          device, one run                     exchange
 *     last stage: back, last mini-batch
 *       ready(v), v of the last stage  ----->  ready(v)
 *     ... stages before it go back             averaged meanwhile, in place
 *       ready(v), v of the first stage ----->  ready(v)
 *     wait                             ----->  wait: for all averages
 *     every IPU updates its variables
 *
 * Variables are added to the exchange in the order in which they become ready,
 * from the pipeline's last to its first, so that those that travel together are
 * neighbours in its memory, where ipu_pipeline_place has the device accumulate.
 * An accumulator of another dtype is copied.
 */
#include "trainer/pipeline_exchange.h"

#include "output/device_problem.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <ipu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A trained variable, by its number in the exchange. */
struct trained {
    float *value;    /* owned: where the first replica's variable lives */
    float *gradient; /* borrowed from the exchange */
    float *given;    /* borrowed: the device's memory for the average */
    int64_t count;
};

struct pipeline_exchange {
    ipu_pipeline *pipeline; /* borrowed; NULL before the start */
    struct exchange *exchange;
    struct trained *trained; /* owned */
    int32_t ntrained;
};

/* The device counts variables stage after stage; the exchange counts them as
 * they become ready. */
static int32_t number_of(const struct pipeline_exchange *p, int32_t variable)
{
    return p->ntrained - 1 - variable;
}

static const char *name_of(const struct pipeline_exchange *p, int32_t number)
{
    return ipu_pipeline_variable(p->pipeline, number_of(p, number));
}

/* ------------------------------------------------------------- in the run */

static int gradient_ready(void *context, int32_t variable, const char *name,
                          float *data, int64_t count)
{
    struct pipeline_exchange *p = context;
    int32_t number = number_of(p, variable);
    struct trained *t = &p->trained[number];

    (void)name;
    t->given = data;
    if (data != t->gradient)
        memcpy(t->gradient, data, (size_t)count * sizeof *data);
    return p->exchange->functions->ready(p->exchange, number);
}

static int wait_for_averages(void *context, int failed)
{
    struct pipeline_exchange *p = context;
    struct exchange *x = p->exchange;
    int status;

    if (failed < 0)
        return x->functions->abandon(x, ipu_last_error());
    status = x->functions->wait(x);
    for (int32_t i = 0; status >= 0 && i < p->ntrained; i++) {
        const struct trained *t = &p->trained[i];

        if (t->given != t->gradient)
            memcpy(t->given, t->gradient, (size_t)t->count * sizeof *t->given);
    }
    return status;
}

int pipeline_exchange_run(struct pipeline_exchange *p)
{
    p->exchange->problem = 0;
    if (ipu_pipeline_run(p->pipeline) >= 0)
        return 0;
    return p->exchange->problem ? p->exchange->problem : device_problem();
}

/* --------------------------------------------------------- before and after */

int pipeline_exchange_new(ipu_pipeline_options *options,
                          struct exchange *exchange,
                          struct pipeline_exchange **made)
{
    struct pipeline_exchange *p = calloc(1, sizeof *p);

    if (!p) {
        exchange_free(exchange);
        return problem_set("no memory for the pipeline");
    }
    p->exchange = exchange;
    options->ready = gradient_ready;
    options->wait = wait_for_averages;
    options->exchange_context = p;
    *made = p;
    return 0;
}

/* Gives a variable memory that the exchange can broadcast from. Its elements
 * stay: rank 0's present values will be those of all ranks. */
static int place_value(struct pipeline_exchange *p, int32_t number)
{
    struct trained *t = &p->trained[number];
    const char *name = name_of(p, number);
    int64_t shape[IPU_MAX_DIMS];
    ipu_dtype dtype;
    int32_t ndim = ipu_pipeline_variable_info(p->pipeline, name, &dtype, shape);
    size_t bytes;

    if (ndim < 0)
        return device_problem();
    if (dtype != IPU_FLOAT32)
        return problem_set("variable '%s' is not float32: ranks average "
                           "float32 only",
                           name);
    t->count = 1;
    for (int32_t i = 0; i < ndim; i++)
        t->count *= shape[i];
    bytes = (size_t)t->count * sizeof *t->value;
    t->value = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!t->value)
        return problem_set("no memory for the weights");
    if (ipu_pipeline_place(p->pipeline, name, t->value, bytes) < 0)
        return device_problem();
    return p->exchange->functions->add(p->exchange, name, t->value, ndim,
                                       shape);
}

static int place_values(struct pipeline_exchange *p)
{
    int status = 0;

    while (ipu_pipeline_variable(p->pipeline, p->ntrained))
        p->ntrained++;
    p->trained = calloc((size_t)p->ntrained + 1, sizeof *p->trained);
    if (!p->trained)
        return problem_set("no memory for the weights");
    for (int32_t i = 0; status == 0 && i < p->ntrained; i++)
        status = place_value(p, i);
    return status;
}

/* Names the variable in which the device accumulates a gradient. Its elements
 * are 0 between updates, or belong to a run that failed. */
static int accumulator_name(const struct pipeline_exchange *p, int32_t number,
                            char *text, size_t size)
{
    int length = snprintf(text, size, "%s/accumulator", name_of(p, number));

    return length > 0 && (size_t)length < size
               ? 0
               : problem_set("the name of variable '%s' is too long",
                             name_of(p, number));
}

/* Copies rank 0's values to all replicas, and has gradients accumulated in the
 * exchange's memory. */
static int place_gradients(struct pipeline_exchange *p)
{
    for (int32_t i = 0; i < p->ntrained; i++) {
        struct trained *t = &p->trained[i];
        size_t bytes = (size_t)t->count * sizeof *t->value;
        char sum[512];
        ipu_dtype dtype;

        t->gradient = p->exchange->functions->gradient(p->exchange, i);
        if (accumulator_name(p, i, sum, sizeof sum) < 0)
            return PROBLEM;
        if (ipu_pipeline_write(p->pipeline, name_of(p, i), t->value, bytes) <
                0 ||
            ipu_pipeline_variable_info(p->pipeline, sum, &dtype, NULL) < 0 ||
            (dtype == IPU_FLOAT32 &&
             ipu_pipeline_place(p->pipeline, sum, t->gradient, bytes) < 0))
            return device_problem();
    }
    return 0;
}

int pipeline_exchange_start(struct pipeline_exchange *p, ipu_pipeline *pipeline)
{
    const struct exchange_functions *f = p->exchange->functions;
    int status;

    p->pipeline = pipeline;
    status = f->agree(p->exchange, place_values(p));
    if (status == 0)
        status = f->start(p->exchange);
    if (status == 0)
        status = f->agree(p->exchange, place_gradients(p));
    return status;
}

/* Moves a variable back to the device's own memory, before its memory in the
 * exchange is freed. */
static void take_back(struct pipeline_exchange *p, int32_t number)
{
    char sum[512];

    if (!p->trained[number].value)
        return;
    ipu_pipeline_place(p->pipeline, name_of(p, number), NULL, 0);
    if (accumulator_name(p, number, sum, sizeof sum) == 0)
        ipu_pipeline_place(p->pipeline, sum, NULL, 0);
}

void pipeline_exchange_free(struct pipeline_exchange *p)
{
    if (!p)
        return;
    for (int32_t i = 0; p->trained && i < p->ntrained; i++)
        take_back(p, i);
    /* The exchange goes before the values: it may still be writing to them. */
    exchange_free(p->exchange);
    for (int32_t i = 0; p->trained && i < p->ntrained; i++)
        free(p->trained[i].value);
    free(p->trained);
    free(p);
}
