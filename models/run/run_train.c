/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_train.c - trains the initialisers of a model.
 *
 * Several ranks have the same program, in which collectives of the device's own
 * network average the gradients and the loss; libhvd moves them. Each
 * normalises by its own batch; running statistics are averaged in the end.
 */
#include "run/run_train.h"

#include "run/run_ranks.h"
#include "run/run_tensor.h"
#include "trainer/device_collective.h"
#include "trainer/update.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names beside those of the model. */
#define LABELS "ipu-run/labels"
#define LOSS "ipu-run/loss"
#define STEP "ipu-run/step"

struct training {
    struct run_model *run;
    const struct run_training *how;
    const ipu_target *target;
    struct run_data *data;             /* owned; NULL: there is one batch */
    struct device_collective *network; /* owned; NULL: there are no ranks */
    int chips;
    ipu_onnx_tensor labels; /* owned data; NULL: the data set's */
    int64_t count;          /* of labels */
};

static int complain_last(void)
{
    return -run_complain("%s", ipu_last_error());
}

static const ipu_network *network_of(const struct training *t)
{
    return t->network ? device_collective_model(t->network) : NULL;
}

/* ------------------------------------------------------------------ program */

/* Checks that the labels are as the output says, and adds their input. */
static int add_labels(struct training *t, ipu_tensor y, ipu_tensor *labels)
{
    bool classes = t->how->loss == RUN_CROSS_ENTROPY;
    int64_t shape[IPU_MAX_DIMS];
    int32_t ndim = ipu_tensor_info(t->run->graph, y, NULL, shape, NULL);
    ipu_dtype dtype = ipu_onnx_type_dtype(t->labels.type);
    ipu_dtype wanted = classes ? IPU_INT32 : IPU_FLOAT32;

    ndim -= classes;
    if (t->labels.type == 0) { /* nobody has said what they are */
        t->labels.type = classes ? IPU_ONNX_INT64 : IPU_ONNX_FLOAT;
        t->labels.ndim = ndim;
        memcpy(t->labels.extents, shape, sizeof shape);
        dtype = wanted;
    }
    if (ndim < 0 || dtype != wanted || t->labels.ndim != ndim ||
        memcmp(shape, t->labels.extents, (size_t)ndim * sizeof *shape) != 0)
        return -run_complain(
            "the labels are %s, and the loss takes %s",
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

/* SGD has any momentum; the others are those of the training programs. */
static int add_optimizer(struct training *t, int n, const ipu_tensor *variables,
                         const ipu_tensor *gradients)
{
    const struct run_training *how = t->how;
    const ipu_sgd_options sgd = {.size = sizeof sgd,
                                 .momentum = how->momentum,
                                 .weight_decay = how->weight_decay};
    const struct optimizer_settings settings = {
        .optimizer = (enum optimizer)how->optimizer,
        .weight_decay = how->weight_decay};
    ipu_graph *g = t->run->graph;
    const struct update_inputs inputs = {
        .rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, how->rate),
        .momentum = {-1},
        .step = ipu_counter(g, STEP)};
    int status = IPU_OK;

    if (how->optimizer != OPTIMIZER_SGD)
        return update_build(g, &settings, n, variables, gradients, &inputs);
    for (int i = 0; i < n && status >= 0; i++)
        status = ipu_sgd(g, variables[i], gradients[i], inputs.rate, &sgd);
    return status;
}

/* Adds the averages of the gradients over the ranks, and the update. */
static int add_update(struct training *t, int n, ipu_tensor *variables,
                      ipu_tensor *gradients)
{
    const ipu_network *network = network_of(t);
    int status = IPU_OK;

    if (network)
        status = ipu_collective_gradients(t->run->graph, network, n, gradients,
                                          gradients);
    return status < 0 ? status : add_optimizer(t, n, variables, gradients);
}

/* Adds a step of the optimiser for each variable that no node assigns. */
static int add_step(struct training *t, ipu_tensor loss)
{
    ipu_onnx_value value = {.size = sizeof value};
    ipu_graph *g = t->run->graph;
    ipu_tensor *variables;
    int32_t all = 0, n = 0;
    int status = IPU_OK;

    while (ipu_onnx_variable(t->run->model, all, &value) > 0)
        all++;
    variables = calloc(2 * (size_t)all + 1, sizeof *variables);
    if (!variables)
        return -run_complain("there is too little memory");
    for (int32_t i = 0; i < all && status >= 0; i++) {
        ipu_onnx_variable(t->run->model, i, &value);
        if (!value.assigned)
            status = ipu_graph_find(g, value.name, &variables[n++]);
    }
    if (status >= 0)
        status = ipu_gradients(g, loss, n, variables, variables + all);
    if (status >= 0)
        status = add_update(t, n, variables, variables + all);
    free(variables);
    return status < 0 ? complain_last() : 0;
}

/* The output is the mean of the ranks' losses. */
static int add_output(struct training *t, ipu_tensor loss)
{
    const ipu_network *network = network_of(t);

    if (network)
        loss = ipu_collective_mean(t->run->graph, network, LOSS, loss);
    return ipu_output(t->run->graph, LOSS, loss) < 0 ? complain_last() : 0;
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

    if (ipu_onnx_train(run->model, NULL) < 0)
        return complain_last();
    for (int i = 0; i < t->how->nfrozen; i++)
        if (ipu_onnx_freeze(run->model, t->how->frozen[i]) < 0)
            return complain_last();
    if (ipu_graph_new(&run->graph) < 0 ||
        ipu_onnx_build(run->model, run->graph) < 0)
        return complain_last();
    if (ipu_onnx_variable(run->model, 0, &output) == 0)
        return -run_complain("the model has no initialisers of floats that "
                             "could be trained%s",
                             t->how->nfrozen ? ", but for frozen ones" : "");
    ipu_onnx_output(run->model, 0, &output);
    if (ipu_graph_find(run->graph, output.name, &y) < 0)
        return complain_last();
    if (add_labels(t, y, &labels))
        return 1;
    loss = add_loss(t, y, labels);
    run->trains = true;
    if (add_step(t, loss) || add_output(t, loss))
        return 1;
    if (t->chips > 1 && ipu_shard_by_time(run->graph, &options, t->chips) < 0)
        return complain_last();
    return ipu_compile_with(run->graph, &options, &run->executable) < 0
               ? complain_last()
               : 0;
}

/* ------------------------------------------------------------------ running */

static int connect(struct training *t)
{
    size_t bytes = (size_t)t->count * sizeof(float);

    t->run->labels = calloc(1, bytes ? bytes : 1);
    if (!t->run->labels)
        return -run_complain("there is too little memory");
    if (t->labels.data &&
        ipu_onnx_to_device(t->labels.type, t->count, t->labels.data,
                           t->run->labels) < 0)
        return complain_last();
    if (run_connect(t->run) < 0 ||
        ipu_engine_connect(t->run->engine, LABELS, t->run->labels, bytes) < 0 ||
        ipu_engine_connect(t->run->engine, LOSS, &t->run->loss,
                           sizeof t->run->loss) < 0 ||
        ipu_onnx_write_variables(t->run->model, t->run->engine) < 0 ||
        ipu_onnx_set_run(t->run->model, t->run->engine,
                         INT32_MAX / run_ranks() * run_rank()) < 0)
        return complain_last();
    if (network_of(t) &&
        device_collective_connect(t->network, t->run->engine) < 0)
        return complain_last();
    return 0;
}

/* Reads a variable, has change make another of it, and writes that. */
static int change_variable(struct training *t, const ipu_onnx_value *value,
                           int (*change)(void *data, size_t bytes))
{
    ipu_dtype dtype = ipu_onnx_type_dtype(value->type);
    size_t bytes = (size_t)run_count(value->ndim, value->extents) *
                   (dtype == IPU_FLOAT32 ? 4 : 2);
    void *data = malloc(bytes + 1);
    int status = data ? 0 : -run_complain("there is too little memory");

    if (!status &&
        ipu_engine_read(t->run->engine, value->name, data, bytes) < 0)
        status = complain_last();
    if (!status)
        status = change(data, bytes);
    if (!status &&
        ipu_engine_write(t->run->engine, value->name, data, bytes) < 0)
        status = complain_last();
    free(data);
    return status;
}

static int average_floats(void *data, size_t bytes)
{
    return run_average(data, (int64_t)(bytes / sizeof(float)));
}

/* All ranks begin with the weights of rank 0. */
static int send_variables(struct training *t)
{
    ipu_onnx_value value = {.size = sizeof value};
    int status = 0;

    for (int32_t i = 0; run_ranks() > 1 && !status &&
                        ipu_onnx_variable(t->run->model, i, &value) > 0;
         i++)
        status = change_variable(t, &value, run_send);
    return status;
}

/* Running statistics become their means. */
static int average_statistics(struct training *t)
{
    ipu_onnx_value value = {.size = sizeof value};
    int status = 0;

    for (int32_t i = 0; run_ranks() > 1 && !status &&
                        ipu_onnx_variable(t->run->model, i, &value) > 0;
         i++)
        if (value.assigned && ipu_onnx_type_dtype(value.type) == IPU_FLOAT32)
            status = change_variable(t, &value, average_floats);
    return status;
}

static int run_step(struct training *t)
{
    if (t->data && run_data_next(t->data, t->run))
        return 1;
    device_collective_begin(t->network);
    if (ipu_engine_run(t->run->engine) >= 0)
        return 0;
    run_blame(device_collective_problem(t->network));
    return complain_last();
}

static void print_epoch(int64_t number, double sum, int64_t steps)
{
    printf("epoch %" PRId64 "  mean loss %.7g\n", number, sum / (double)steps);
}

static int run_steps(struct training *t)
{
    const struct run_training *how = t->how;
    int64_t each = t->data ? run_data_steps(t->data) : 0;
    int64_t steps = how->steps ? how->steps : how->epochs * each;
    double sum = 0;

    for (int64_t step = 1; step <= steps; step++) {
        if (run_step(t))
            return 1;
        sum += (double)t->run->loss;
        if (run_rank() > 0)
            continue;
        if (step % how->every == 0 || step == steps)
            printf("step %" PRId64 "  loss %.7g\n", step, (double)t->run->loss);
        if (each == 0 || step % each)
            continue;
        print_epoch(step / each, sum, each);
        sum = 0;
    }
    return run_take_outputs(t->run) < 0 ? complain_last() : 0;
}

static int prepare(struct training *t)
{
    if (t->how->data.path) {
        if (run_data_open(&t->how->data, t->run, &t->data))
            return 1;
        t->labels = run_data_labels(t->data);
    } else if (run_ranks() > 1) {
        return -run_complain("several ranks need --data, which they divide");
    } else if (run_read_tensor(t->how->labels, &t->labels) < 0) {
        return 1;
    }
    if (device_collective_new(NULL, -1, &t->network) < 0)
        return -run_complain("there is too little memory");
    return build(t) || connect(t);
}

int run_train_build(struct run_model *run, const struct run_training *how,
                    const ipu_target *target, int chips)
{
    struct training t = {
        .run = run, .how = how, .target = target, .chips = chips};

    return build(&t);
}

int run_train(struct run_model *run, const struct run_training *how,
              const ipu_target *target)
{
    struct training t = {.run = run, .how = how, .target = target};
    int status = run_agree(prepare(&t));

    if (!status)
        status = send_variables(&t) || run_steps(&t) || average_statistics(&t);
    run_data_close(t.data);
    free(t.labels.data);
    /* The engine is not run again but by --bench, which one rank does. */
    if (run_ranks() > 1 && run->engine)
        ipu_engine_network(run->engine, NULL, NULL, 0);
    device_collective_free(t.network);
    return status;
}
