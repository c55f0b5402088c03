/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelines.h - a network of layers that can be cut into stages anywhere, and
 * the same network as one program, for the tests of pipelines and replicas.
 *
 * Layer k is h = tanh(x W_k + b_k); the last gives the mean softmax cross
 * entropy of its rows. Every stage hands rate, labels and what it does not use
 * through: its inputs and outputs are (rate, x, labels); those of the last,
 * (loss, rate).
 */
#ifndef HVD_TESTS_PIPELINES_H
#define HVD_TESTS_PIPELINES_H

#include <math.h>

#include "device.h"

enum { LAYERS = 8, ROWS = 4, FEATURES = 5, CLASSES = 3, MOST_WIDTH = 8 };

/* Widths of x and of each layer's output. */
static const int widths[LAYERS + 1] = {FEATURES, 7, 6, 8, 5, 7, 6, 5, CLASSES};

/* A range of layers that forms one stage. */
struct layers {
    int first, count;
    int dropout; /* 1: one before each layer */
};

/* Adds layer k. v, if not NULL, gets W_k and b_k. */
static inline ipu_tensor one_layer(ipu_graph *graph, int k, ipu_tensor x,
                                   ipu_tensor *v)
{
    char name[2][16];
    ipu_tensor w, b;

    snprintf(name[0], sizeof name[0], "w%d", k);
    snprintf(name[1], sizeof name[1], "b%d", k);
    w = ipu_variable(graph, name[0], IPU_FLOAT32, 2,
                     SHAPE(widths[k], widths[k + 1]));
    b = ipu_variable(graph, name[1], IPU_FLOAT32, 1, SHAPE(widths[k + 1]));
    if (v) {
        v[0] = w;
        v[1] = b;
    }
    x = ipu_bias_add(graph, ipu_matmul(graph, x, w), b);
    return k + 1 < LAYERS ? ipu_tanh(graph, x) : x;
}

/* Returns the mean loss over rows. */
static inline ipu_tensor loss_of(ipu_graph *graph, ipu_tensor logits,
                                 ipu_tensor labels, int rows)
{
    return ipu_reduce_sum(
        graph, ipu_softmax_cross_entropy(graph, logits, labels), 1.0 / rows);
}

static inline int build_layers(void *context, ipu_graph *graph, int32_t ninputs,
                               const ipu_tensor *inputs, ipu_tensor *outputs)
{
    const struct layers *l = context;
    ipu_tensor x = inputs[1], step = {-1};
    char name[16];

    ck_assert_int_eq(ninputs, 3);
    snprintf(name, sizeof name, "step%d", l->first);
    if (l->dropout)
        step = ipu_counter(graph, name);
    for (int k = l->first; k < l->first + l->count; k++) {
        if (l->dropout)
            x = ipu_dropout(graph, x, 0.25, (uint64_t)k, step);
        x = one_layer(graph, k, x, NULL);
    }
    if (l->first + l->count == LAYERS) {
        outputs[0] = loss_of(graph, x, inputs[2], ROWS);
        outputs[1] = inputs[0];
        return 2;
    }
    outputs[0] = inputs[0];
    outputs[1] = x;
    outputs[2] = inputs[2];
    return 3;
}

/* ----------------------------------------------------------------- elements */

struct data {
    int64_t next, end; /* elements; end 0: without end */
    int status;        /* if not 0, the status of the next element */
};

static inline void element_of(int64_t number, float *x, int32_t *labels)
{
    device_fill(x, ROWS * FEATURES, (uint64_t)number * 31 + 7);
    for (int i = 0; i < ROWS; i++)
        labels[i] = (int32_t)((number * 5 + i * i) % CLASSES);
}

static inline int next_element(void *context, void *const *buffers)
{
    struct data *data = context;

    if (data->status)
        return data->status;
    if (data->end && data->next >= data->end)
        return 0;
    element_of(data->next++, buffers[0], buffers[1]);
    return 1;
}

/* Makes an infeed and does not start it. */
static inline ipu_infeed *infeed_of(struct data *data, int replicas)
{
    const ipu_feed_tensor tensors[] = {
        {"x", IPU_FLOAT32, 2, {ROWS, FEATURES}},
        {"labels", IPU_INT32, 1, {ROWS}},
    };
    ipu_infeed_options options;
    ipu_infeed *infeed = NULL;

    ipu_infeed_options_init(&options, sizeof options);
    options.name = "data";
    options.ntensors = 2;
    options.tensors = tensors;
    options.replicas = replicas;
    options.source.next = next_element;
    options.source.context = data;
    MUST(ipu_infeed_new(&options, &infeed));
    return infeed;
}

/* --------------------------------------------------------------- optimisers */

enum optimizer { SGD, MOMENTUM, ADAM, OPTIMIZERS };

static inline int apply(void *context, ipu_graph *graph, int32_t noutputs,
                        const ipu_tensor *outputs, int32_t count,
                        const ipu_tensor *variables,
                        const ipu_tensor *gradients)
{
    const enum optimizer *which = context;
    const ipu_sgd_options momentum = {.size = sizeof momentum, .momentum = 0.9};
    ipu_tensor step = {-1};

    ck_assert_int_eq(noutputs, 2);
    if (*which == ADAM)
        step = ipu_counter(graph, "updates");
    for (int32_t i = 0; i < count; i++) {
        int status =
            *which == ADAM
                ? ipu_adam(graph, variables[i], gradients[i], outputs[1], step,
                           NULL)
                : ipu_sgd(graph, variables[i], gradients[i], outputs[1],
                          *which == MOMENTUM ? &momentum : NULL);
        if (status < 0)
            return status;
    }
    return 0;
}

/* ------------------------------------------------- all of it as one program */

struct plain {
    struct device d; /* forwards and backwards */
    struct device u; /* the update, which the host's sums go into */
    float x[ROWS * FEATURES], rate, loss;
    int32_t labels[ROWS];
    float slopes[2 * LAYERS][MOST_WIDTH * MOST_WIDTH];
    float sums[2 * LAYERS][MOST_WIDTH * MOST_WIDTH];
};

/* Number 2 k: w of layer k; 2 k + 1: b. */
static inline int count_of(int number)
{
    int k = number / 2;

    return widths[k + 1] * (number % 2 ? 1 : widths[k]);
}

static inline const char *name_of(int number, char *name)
{
    snprintf(name, 16, "%c%d", number % 2 ? 'b' : 'w', number / 2);
    return name;
}

static inline void first_values(int number, float *values)
{
    device_fill(values, count_of(number), (uint64_t)number + 100);
}

static inline void plain_update(struct plain *p, enum optimizer which)
{
    ipu_tensor outputs[2], v[2 * LAYERS], g[2 * LAYERS];
    char name[16], sum[32];

    p->u = device_new();
    outputs[0] = outputs[1] = device_floats(&p->u, "rate", 0, NULL);
    for (int i = 0; i < 2 * LAYERS; i++) {
        int64_t shape[] = {i % 2 ? widths[i / 2 + 1] : widths[i / 2],
                           widths[i / 2 + 1]};

        v[i] = ipu_variable(p->u.graph, name_of(i, name), IPU_FLOAT32,
                            i % 2 ? 1 : 2, shape);
        snprintf(sum, sizeof sum, "sum %s", name);
        g[i] = device_floats(&p->u, sum, i % 2 ? 1 : 2, shape);
    }
    MUST(apply(&which, p->u.graph, 2, outputs, 2 * LAYERS, v, g));
    device_load(&p->u);
    MUST(ipu_engine_connect(p->u.engine, "rate", &p->rate, 4));
    for (int i = 0; i < 2 * LAYERS; i++) {
        snprintf(sum, sizeof sum, "sum %s", name_of(i, name));
        MUST(ipu_engine_connect(p->u.engine, sum, p->sums[i],
                                (size_t)count_of(i) * 4));
    }
}

static inline void plain_new(struct plain *p, enum optimizer which, int dropout)
{
    ipu_tensor x, labels, step = {-1}, loss, v[2 * LAYERS], g[2 * LAYERS];
    char name[16], sum[32];
    float values[MOST_WIDTH * MOST_WIDTH];

    memset(p, 0, sizeof *p);
    p->d = device_new();
    x = device_floats(&p->d, "x", 2, SHAPE(ROWS, FEATURES));
    labels = ipu_input(p->d.graph, "labels", IPU_INT32, 1, SHAPE(ROWS));
    if (dropout)
        step = ipu_counter(p->d.graph, "step");
    for (int k = 0; k < LAYERS; k++) {
        if (dropout)
            x = ipu_dropout(p->d.graph, x, 0.25, (uint64_t)k, step);
        x = one_layer(p->d.graph, k, x, v + 2 * k);
    }
    loss = loss_of(p->d.graph, x, labels, ROWS);
    MUST(ipu_gradients(p->d.graph, loss, 2 * LAYERS, v, g));
    MUST(ipu_output(p->d.graph, "loss", loss));
    for (int i = 0; i < 2 * LAYERS; i++) {
        snprintf(sum, sizeof sum, "slope %s", name_of(i, name));
        MUST(ipu_output(p->d.graph, sum, g[i]));
    }
    device_load(&p->d);
    device_connect(&p->d, "x", p->x, ROWS * FEATURES);
    device_connect(&p->d, "labels", p->labels, ROWS);
    device_connect(&p->d, "loss", &p->loss, 1);
    plain_update(p, which);
    for (int i = 0; i < 2 * LAYERS; i++) {
        snprintf(sum, sizeof sum, "slope %s", name_of(i, name));
        device_connect(&p->d, sum, p->slopes[i], count_of(i));
        first_values(i, values);
        MUST(ipu_engine_write(p->d.engine, name, values,
                              (size_t)count_of(i) * 4));
        MUST(ipu_engine_write(p->u.engine, name, values,
                              (size_t)count_of(i) * 4));
    }
}

static inline void plain_free(struct plain *p)
{
    device_free(&p->d);
    device_free(&p->u);
}

/* Adds the gradients of an element, weighted, to the sums. */
static inline void plain_add(struct plain *p, int64_t element, double old,
                             double weight)
{
    element_of(element, p->x, p->labels);
    MUST(ipu_engine_run(p->d.engine));
    for (int i = 0; i < 2 * LAYERS; i++)
        for (int k = 0; k < count_of(i); k++)
            p->sums[i][k] =
                p->sums[i][k] * (float)old + p->slopes[i][k] * (float)weight;
}

/* Applies the update to the weights of both programs. */
static inline void plain_apply(struct plain *p)
{
    float values[MOST_WIDTH * MOST_WIDTH];
    char name[16];

    MUST(ipu_engine_run(p->u.engine));
    for (int i = 0; i < 2 * LAYERS; i++) {
        size_t bytes = (size_t)count_of(i) * 4;

        MUST(ipu_engine_read(p->u.engine, name_of(i, name), values, bytes));
        MUST(ipu_engine_write(p->d.engine, name, values, bytes));
        memset(p->sums[i], 0, bytes);
    }
}

#endif
