/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_train.c - trains the initialisers of a model with SGD. All steps are of
 * the inputs and labels that were given: this finds out whether a model learns,
 * and adapts small ones. Programs with data sets use the library.
 */
#include "run/run_train.h"

#include "run/run_tensor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names beside those of the model. */
#define LABELS "ipu-run/labels"
#define LOSS "ipu-run/loss"

struct training {
    struct run_model *run;
    const struct run_training *how;
    const ipu_target *target;
    ipu_onnx_tensor labels; /* owned data */
    int64_t count;          /* of labels */
};

static int complain_last(void)
{
    return run_complain("%s", ipu_last_error());
}

/* ------------------------------------------------------------------- program
 */

/* Checks that the labels are as the output says, and adds their input. */
static int add_labels(struct training *t, ipu_tensor y, ipu_tensor *labels)
{
    bool classes = t->how->loss == RUN_CROSS_ENTROPY;
    int64_t shape[IPU_MAX_DIMS];
    int32_t ndim = ipu_tensor_info(t->run->graph, y, NULL, shape, NULL);
    ipu_dtype dtype = ipu_onnx_type_dtype(t->labels.type);
    ipu_dtype wanted = classes ? IPU_INT32 : IPU_FLOAT32;

    ndim -= classes;
    if (ndim < 0 || dtype != wanted || t->labels.ndim != ndim ||
        memcmp(shape, t->labels.extents, (size_t)ndim * sizeof *shape) != 0)
        return run_complain(
            "--labels are %s, and the loss takes %s",
            run_shape(t->labels.type, t->labels.ndim, t->labels.extents).text,
            run_shape(classes ? IPU_ONNX_INT64 : IPU_ONNX_FLOAT, ndim, shape)
                .text);
    t->count = run_count(ndim, shape);
    *labels = ipu_input(t->run->graph, LABELS, wanted, ndim, shape);
    return 0;
}

static ipu_tensor add_loss(struct training *t, ipu_tensor y, ipu_tensor labels)
{
    ipu_graph *g = t->run->graph;

    y = ipu_cast(g, y, IPU_FLOAT32);
    if (t->how->loss == RUN_MSE)
        return ipu_mean_squared_error(g, y, labels);
    return ipu_reduce_sum(g, ipu_sparse_cross_entropy(g, y, labels, 0),
                          1 / (double)(t->count > 0 ? t->count : 1));
}

/* Adds a step of SGD of each variable. */
static int add_steps(struct training *t, ipu_tensor loss)
{
    const ipu_sgd_options options = {.size = sizeof options,
                                     .momentum = t->how->momentum};
    ipu_graph *g = t->run->graph;
    ipu_tensor rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, t->how->rate);
    ipu_onnx_value value = {.size = sizeof value};
    ipu_tensor *wrt, *gradients;
    int32_t all = 0, n = 0;
    int status = IPU_OK;

    while (ipu_onnx_variable(t->run->model, all, &value) > 0)
        all++;
    wrt = calloc(2 * (size_t)all, sizeof *wrt);
    if (!wrt)
        return run_complain("there is too little memory");
    gradients = wrt + all;
    for (int32_t i = 0; i < all && status >= 0; i++) {
        ipu_onnx_variable(t->run->model, i, &value);
        if (!value.assigned)
            status = ipu_graph_find(g, value.name, &wrt[n++]);
    }
    if (status >= 0)
        status = ipu_gradients(g, loss, n, wrt, gradients);
    for (int32_t i = 0; i < n && status >= 0; i++)
        status = ipu_sgd(g, wrt[i], gradients[i], rate, &options);
    free(wrt);
    return status < 0 ? complain_last() : 0;
}

static int build(struct training *t)
{
    /* The processor runs it, whether the chip could or not. */
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = t->target,
                                         .allow_out_of_memory = 1,
                                         .brief = 1};
    ipu_onnx_value output = {.size = sizeof output};
    ipu_tensor y = {-1}, labels = {-1}, loss;
    struct run_model *run = t->run;

    if (ipu_onnx_train(run->model, NULL) < 0 ||
        ipu_graph_new(&run->graph) < 0 ||
        ipu_onnx_build(run->model, run->graph) < 0)
        return complain_last();
    if (ipu_onnx_variable(run->model, 0, &output) == 0)
        return run_complain("the model has no initialisers of floats that "
                            "could be trained");
    ipu_onnx_output(run->model, 0, &output);
    if (ipu_graph_find(run->graph, output.name, &y) < 0)
        return complain_last();
    if (add_labels(t, y, &labels) < 0)
        return -1;
    loss = add_loss(t, y, labels);
    if (add_steps(t, loss) < 0)
        return -1;
    if (ipu_output(run->graph, LOSS, loss) < 0 ||
        ipu_compile_with(run->graph, &options, &run->executable) < 0)
        return complain_last();
    return 0;
}

/* ------------------------------------------------------------------- running
 */

static int connect(struct training *t)
{
    size_t bytes = (size_t)t->count * sizeof(float);

    t->run->labels = malloc(bytes ? bytes : 1);
    if (!t->run->labels)
        return run_complain("there is too little memory");
    if (ipu_onnx_to_device(t->labels.type, t->count, t->labels.data,
                           t->run->labels) < 0 ||
        run_connect(t->run) < 0 ||
        ipu_engine_connect(t->run->engine, LABELS, t->run->labels, bytes) < 0 ||
        ipu_engine_connect(t->run->engine, LOSS, &t->run->loss, sizeof(float)) <
            0 ||
        ipu_onnx_write_variables(t->run->model, t->run->engine) < 0)
        return complain_last();
    return 0;
}

static int train(struct training *t)
{
    if (run_read_tensor(t->how->labels, &t->labels) < 0 || build(t) < 0 ||
        connect(t) < 0)
        return 1;
    for (int step = 1; step <= t->how->steps; step++) {
        if (run_again(t->run) < 0)
            return -complain_last();
        printf("step %d  loss %.7g\n", step, (double)t->run->loss);
    }
    return 0;
}

int run_train(struct run_model *run, const struct run_training *how,
              const ipu_target *target)
{
    struct training t = {.run = run, .how = how, .target = target};
    int status = train(&t);

    free(t.labels.data);
    return status;
}
