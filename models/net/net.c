/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.c - owns a network and its list of variables.
 *
 * Variables are numbered in the order in which the backward pass completes
 * their gradients, which is about that in which they were asked for, backwards;
 * statistics come behind the trained ones.
 */
#include "net/net.h"

#include "output/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ipu_tensor net_fail(hvd_net *net, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (net->status >= 0)
        vsnprintf(net->text, sizeof net->text, format, arguments);
    va_end(arguments);
    net->status = PROBLEM;
    return (ipu_tensor){-1};
}

int32_t net_shape(hvd_net *net, ipu_tensor x, int64_t *shape)
{
    return ipu_tensor_info(net->graph, x, NULL, shape, NULL);
}

void hvd_net_work(hvd_net *net, int64_t products)
{
    if (!net->model && net->mode == HVD_MODE_TRAIN)
        net->work[net->piece] += products;
}

hvd_mode hvd_net_mode(const hvd_net *net)
{
    return net->mode;
}

int32_t hvd_net_piece(const hvd_net *net)
{
    return net->piece;
}

ipu_graph *hvd_net_graph(hvd_net *net)
{
    return net->graph;
}

ipu_tensor hvd_net_input(hvd_net *net, const char *name)
{
    for (int i = 0; i < net->ninputs; i++)
        if (strcmp(net->inputs[i].name, name) == 0) {
            if (net->mode == HVD_MODE_PREDICT)
                net->needed |= UINT64_C(1) << i;
            return net->pass->inputs[i];
        }
    return net_fail(net, "the data has no component '%s'", name);
}

/* Describes a result whose shape is now known. */
static void describe(hvd_net *net, const char *name, ipu_tensor x)
{
    struct model_tensor *t;
    int64_t shape[IPU_MAX_DIMS];
    int32_t ndim = ipu_tensor_info(net->graph, x, NULL, shape, NULL);

    if (ndim < 0 || net->mode != HVD_MODE_EVALUATE)
        return;
    if (net->noutputs == MODEL_MOST_OUTPUTS || ndim > 5 ||
        strlen(name) >= sizeof t->name) {
        net_fail(net,
                 "output '%s': there may be %d, of up to 5 dimensions and with "
                 "names of up to %zu bytes",
                 name, MODEL_MOST_OUTPUTS, sizeof t->name - 1);
        return;
    }
    t = &net->outputs[net->noutputs++];
    t->ndim = ipu_tensor_info(net->graph, x, &t->dtype, shape, NULL);
    memcpy(t->shape, shape, (size_t)ndim * sizeof *shape);
    strcpy(t->name, name);
}

void hvd_net_output(hvd_net *net, const char *name, ipu_tensor tensor)
{
    if (net->mode == HVD_MODE_TRAIN)
        return;
    if (!net->model) {
        describe(net, name, tensor);
        return;
    }
    for (int i = 1; i < net->noutputs; i++)
        if (strcmp(net->outputs[i].name, name) == 0)
            net->pass->outputs[i] = tensor;
}

/* --------------------------------------------------------- of the functions */

static ipu_tensor build_losses(hvd_net *net, ipu_tensor y)
{
    if (net->of.loss)
        return net->of.loss(net, y, net->of.context);
    if (net->ninputs < 2)
        return net_fail(net, "the model has no loss function, and the data no "
                             "second component with the classes");
    return ipu_softmax_cross_entropy(net->graph, y, net->pass->inputs[1]);
}

/* Prepares a call of the functions for a program of the model. */
static hvd_net *enter(const struct model *model, ipu_graph *graph,
                      const ipu_tensor *variables,
                      const struct model_pass *pass)
{
    hvd_net *net = model->own;

    net->graph = graph;
    net->given = variables;
    net->pass = pass;
    net->mode = pass->training   ? HVD_MODE_TRAIN
                : pass->predicts ? HVD_MODE_PREDICT
                                 : HVD_MODE_EVALUATE;
    return net;
}

static ipu_tensor piece_of(const struct model *model, ipu_graph *graph,
                           int piece, const ipu_tensor *variables, ipu_tensor x,
                           const struct model_pass *pass)
{
    return net_build_piece(enter(model, graph, variables, pass), piece, x);
}

/* The losses, which may have several dimensions, as [rows]. */
static ipu_tensor losses_of(const struct model *model, ipu_graph *graph,
                            ipu_tensor y, const struct model_pass *pass)
{
    const int64_t rows[] = {model->rows};

    return ipu_reshape(graph, build_losses(enter(model, graph, NULL, pass), y),
                       1, rows);
}

static bool needs(const struct model *model, int piece, int variable)
{
    const hvd_net *net = model->own;

    for (int i = 0; i < net->nvariables; i++)
        if (net->variables[i].number == variable)
            return net->variables[i].pieces[piece];
    return false;
}

static int64_t work_of(const struct model *model, int piece)
{
    return ((const hvd_net *)model->own)->work[piece] + 1;
}

static void free_net(void *own)
{
    hvd_net *net = own;

    if (net->of.free_context)
        net->of.free_context(net->of.context);
    free(net->variables);
    free(net->made);
    free(net);
}

/* ---------------------------------------------------------------- discovery */

/* Checks the losses, and learns how many a batch has. */
static void learn_losses(hvd_net *net, ipu_tensor losses, int64_t *rows)
{
    int64_t shape[IPU_MAX_DIMS] = {0}, batch = net->inputs[0].shape[0];
    ipu_dtype dtype = IPU_FLOAT32;
    int32_t ndim = ipu_tensor_info(net->graph, losses, &dtype, shape, NULL);

    if (ndim < 0)
        return;
    *rows = 1;
    for (int32_t i = 0; i < ndim; i++)
        *rows *= shape[i];
    if (ndim == 0 || *rows % batch != 0 || dtype != IPU_FLOAT32)
        net_fail(net,
                 "the loss function must return the losses of all rows, "
                 "float32 [%lld] or [%lld, ...]: the trainer takes their mean",
                 (long long)batch, (long long)batch);
}

/* Calls the functions once, on a graph that is thrown away. */
static int discover(hvd_net *net, hvd_mode mode, int64_t *rows)
{
    ipu_tensor inputs[MODEL_MOST_INPUTS], x;
    struct model_pass pass = {.training = mode == HVD_MODE_TRAIN,
                              .predicts = mode == HVD_MODE_PREDICT,
                              .inputs = inputs,
                              .step = {-1}};
    int status = 0;

    net->mode = mode;
    /* cppcheck-suppress autoVariables; it is needed until the return */
    net->pass = &pass;
    if (ipu_graph_new(&net->graph) < 0)
        return problem_set("%s", ipu_last_error());
    for (int i = 0; i < net->ninputs; i++)
        inputs[i] =
            ipu_input(net->graph, net->inputs[i].name, net->inputs[i].dtype,
                      net->inputs[i].ndim, net->inputs[i].shape);
    for (int i = 0; i < net->nvariables; i++)
        net->made[i].id = -1;
    if (pass.training)
        pass.step = ipu_counter(net->graph, "step");
    x = net_build_all(net, inputs[0]);
    if (mode != HVD_MODE_PREDICT)
        learn_losses(net, build_losses(net, x), rows);
    /* Marks make pieces of one function. */
    if (pass.training)
        net->npieces = net->piece + 1;
    /* The result is the first output. */
    describe(net, net->of.output, x);
    if (net->status < 0)
        status = problem_set("model %s: %s", net->of.name, net->text);
    else if (ipu_output(net->graph, "output of the model", x) < 0)
        status = problem_set("model %s: %s", net->of.name, ipu_last_error());
    ipu_graph_free(net->graph);
    net->graph = NULL;
    return status;
}

/* Has the result, which was described last, be the first output. */
static void order_outputs(hvd_net *net)
{
    struct model_tensor last = net->outputs[net->noutputs - 1];

    memmove(net->outputs + 1, net->outputs,
            (size_t)(net->noutputs - 1) * sizeof last);
    net->outputs[0] = last;
}

static int add_variable(hvd_net *net, struct net_variable *v)
{
    double spread = 0;
    enum model_start start =
        net_start(&v->initializer, v->ndim, v->shape, &spread);

    v->number = v->trained ? model_add(net->model, v->name, start, spread,
                                       v->ndim, v->shape)
                           : model_add_statistic(net->model, v->name, start,
                                                 spread, v->ndim, v->shape);
    return v->number < 0 ? PROBLEM : 0;
}

/* Trained ones backwards, statistics behind them. */
static int add_variables(hvd_net *net)
{
    int status = 0;

    for (int i = net->nvariables - 1; i >= 0 && status == 0; i--)
        if (net->variables[i].trained)
            status = add_variable(net, &net->variables[i]);
    for (int i = 0; i < net->nvariables && status == 0; i++)
        if (!net->variables[i].trained)
            status = add_variable(net, &net->variables[i]);
    return status;
}

static int check_model(const hvd_model *of, int ninputs)
{
    if (!of || of->size < sizeof *of)
        return problem_set("the model has not been set by hvd_model_init");
    if (!of->build == !(of->pieces && of->npieces > 0) ||
        of->npieces > HVD_MODEL_MOST_PIECES)
        return problem_set("model %s: there must be a function build, or 1 to "
                           "%d pieces",
                           of->name, HVD_MODEL_MOST_PIECES);
    if (ninputs < 1 || ninputs > MODEL_MOST_INPUTS)
        return problem_set("model %s: the data has %d components, a model "
                           "takes 1 to %d",
                           of->name, ninputs, MODEL_MOST_INPUTS);
    return 0;
}

static int make_model(hvd_net *net, int64_t rows, struct model **model)
{
    const struct model plain = {
        .name = net->of.name,
        .ninputs = net->ninputs,
        .rows = rows,
        .pieces = net->npieces,
        .piece = piece_of,
        .losses = losses_of,
        .noutputs = net->noutputs,
        .needs = needs,
        .work = work_of,
        .draws = net->draws,
        .needed = net->needed,
    };
    struct model *fresh = model_new(&plain);

    if (!fresh)
        return PROBLEM;
    memcpy(fresh->inputs, net->inputs, sizeof net->inputs);
    memcpy(fresh->outputs, net->outputs, sizeof net->outputs);
    net->model = fresh;
    if (add_variables(net) < 0) {
        model_free(fresh);
        return PROBLEM;
    }
    fresh->own = net;
    fresh->free_own = free_net;
    *model = fresh;
    return 0;
}

/* Copies what the caller has given. */
static void adopt(hvd_net *net, const hvd_model *of, int ninputs,
                  const struct model_tensor *inputs)
{
    net->of = *of;
    net->npieces = of->pieces ? of->npieces : 1;
    for (int i = 0; i < net->npieces; i++)
        net->functions[i] = of->pieces ? of->pieces[i] : of->build;
    net->ninputs = ninputs;
    memcpy(net->inputs, inputs, (size_t)ninputs * sizeof *inputs);
}

/* Gives back what a model would have owned. */
static int refuse_model(const hvd_model *of, int status)
{
    if (of && of->size >= sizeof *of && of->free_context)
        of->free_context(of->context);
    return status;
}

int net_model(const hvd_model *of, int ninputs,
              const struct model_tensor *inputs, struct model **model)
{
    int64_t rows = 0;
    int status = check_model(of, ninputs);
    hvd_net *net = status < 0 ? NULL : calloc(1, sizeof *net);

    if (status < 0)
        return refuse_model(of, status);
    if (!net)
        return refuse_model(of, problem_set("no memory for the network"));
    adopt(net, of, ninputs, inputs);
    status = discover(net, HVD_MODE_TRAIN, &rows);
    if (status == 0)
        status = discover(net, HVD_MODE_EVALUATE, &rows);
    if (status == 0)
        status = discover(net, HVD_MODE_PREDICT, &rows);
    if (status == 0) {
        order_outputs(net);
        status = make_model(net, rows, model);
    }
    if (status < 0)
        free_net(net);
    if (status == 0 && !of->pieces && (*model)->pieces > 1) {
        status = net_check_pieces(*model);
        if (status < 0) {
            model_free(*model);
            *model = NULL;
        }
    }
    return status;
}

void hvd_model_init(hvd_model *model, size_t size)
{
    memset(model, 0, size);
    model->size = (uint32_t)size;
    model->name = "model";
    model->output = "output";
}
