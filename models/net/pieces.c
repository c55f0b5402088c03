/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.c - builds a piece of a network, on the graph of the stage that has
 * it.
 *
 * A model has a function for each piece, or one function for all, which marks
 * where the next piece begins (hvd_net_next_piece). That function is called for
 * each piece as a whole. What it builds of other pieces goes to a spare graph
 * that is thrown away; at the mark before the wanted piece it is handed the
 * piece's x and the real graph, and at the mark behind it a spare x again:
 *
 *     spare | mark: takes x | real ... | mark: gives the result | spare
 *
 * A tensor knows its graph: so the device finds out a layer that uses one which
 * has not come through the mark.
 */
#include "net/net.h"

#include "output/device_problem.h"
#include "output/problem.h"

#include <stdlib.h>

/* A call of the function of all pieces, for one of them. */
struct net_marks {
    int wanted, passed; /* pieces; marks */
    ipu_tensor x, result;
    ipu_graph *real, *graph; /* graph: the spare one, owned */
    const struct model_pass *real_pass;
    struct model_pass pass; /* of the spare graph, as the next two */
    ipu_tensor inputs[MODEL_MOST_INPUTS], outputs[MODEL_MOST_OUTPUTS];
};

/* Makes the spare graph. */
static int open_spare(hvd_net *net, struct net_marks *m)
{
    if (ipu_graph_new(&m->graph) < 0)
        return device_problem();
    for (int i = 0; i < net->ninputs; i++)
        m->inputs[i] =
            ipu_input(m->graph, net->inputs[i].name, net->inputs[i].dtype,
                      net->inputs[i].ndim, net->inputs[i].shape);
    for (int i = 0; i < net->nvariables; i++)
        net->made[i].id = -1;
    m->pass = *m->real_pass;
    m->pass.inputs = m->inputs;
    m->pass.outputs = m->outputs;
    m->pass.synchronised = false;
    if (m->pass.training)
        m->pass.step = ipu_counter(m->graph, "step");
    return 0;
}

/* Has the layers that follow go to the spare graph, or to the real one. */
static void go_to(hvd_net *net, const struct net_marks *m, bool spare)
{
    net->graph = spare ? m->graph : m->real;
    net->pass = spare ? &m->pass : m->real_pass;
    net->is_spare = spare;
}

/* Returns a tensor of the spare graph that is like one of the real graph. */
static ipu_tensor spare_like(const struct net_marks *m, ipu_tensor x)
{
    int64_t shape[IPU_MAX_DIMS];
    ipu_dtype dtype;
    int32_t ndim = ipu_tensor_info(m->real, x, &dtype, shape, NULL);

    return ndim < 0 ? (ipu_tensor){-1}
                    : ipu_input(m->graph, "behind", dtype, ndim, shape);
}

ipu_tensor hvd_net_next_piece(hvd_net *net, ipu_tensor x)
{
    struct net_marks *m = net->marks;

    net->drops = 0;
    if (net->npieces == 0) /* a network of a program's own */
        return x;
    if (net->of.pieces)
        return net_fail(net, "hvd_net_next_piece: the model has functions for "
                             "its pieces: a piece ends with its function");
    if (net->piece + 1 == HVD_MODEL_MOST_PIECES)
        return net_fail(net, "hvd_net_next_piece: there may be %d pieces",
                        HVD_MODEL_MOST_PIECES);
    net->piece++;
    if (!m)
        return x;
    m->passed++;
    if (m->passed == m->wanted) {
        go_to(net, m, false);
        return m->x;
    }
    if (m->passed == m->wanted + 1) {
        m->result = x;
        x = spare_like(m, x);
        go_to(net, m, true);
    }
    return x;
}

/* ---------------------------------------------------------------- the calls */

static ipu_tensor call(hvd_net *net, int function, ipu_tensor x)
{
    net->piece = function;
    net->drops = 0;
    return net->functions[function](net, x, net->of.context);
}

ipu_tensor net_build_all(hvd_net *net, ipu_tensor x)
{
    const int count = net->of.pieces ? net->npieces : 1;

    for (int i = 0; i < count; i++)
        x = call(net, i, x);
    return x;
}

static ipu_tensor build_marked(hvd_net *net, int piece, ipu_tensor x)
{
    struct net_marks m = {
        .wanted = piece, .x = x, .real = net->graph, .real_pass = net->pass};
    ipu_tensor y = {-1};

    if (open_spare(net, &m) < 0)
        return net_fail(net, "%s", problem_text());
    go_to(net, &m, piece > 0);
    net->marks = &m;
    y = call(net, 0, piece > 0 ? m.inputs[0] : x);
    net->marks = NULL;
    go_to(net, &m, false);
    ipu_graph_free(m.graph);
    if (m.passed != net->npieces - 1)
        return net_fail(net,
                        "hvd_net_next_piece was called %d times, and %d "
                        "times before",
                        m.passed, net->npieces - 1);
    return piece == m.passed ? y : m.result;
}

ipu_tensor net_build_piece(hvd_net *net, int piece, ipu_tensor x)
{
    return net->of.pieces || net->npieces == 1 ? call(net, piece, x)
                                               : build_marked(net, piece, x);
}

/* ----------------------------------------------------------------- checking */

/* What a piece hands to the next. */
struct handed {
    ipu_dtype dtype;
    int32_t ndim;
    int64_t shape[IPU_MAX_DIMS];
};

/* Builds a piece on a graph of its own. x becomes its result. */
static int check_piece(const struct model *model, int piece, struct handed *x)
{
    ipu_tensor inputs[MODEL_MOST_INPUTS] = {{-1}}, y;
    ipu_tensor *given = calloc((size_t)model->nvariables + 1, sizeof *given);
    struct model_pass pass = {.training = true, .inputs = inputs};
    ipu_graph *graph = NULL;
    int status = given ? ipu_graph_new(&graph) : -1;

    if (status < 0) {
        free(given);
        return problem_set("no memory for the network");
    }
    pass.step = ipu_counter(graph, "step");
    for (int i = 0; i < model->ninputs; i++)
        inputs[i] =
            ipu_input(graph, model->inputs[i].name, model->inputs[i].dtype,
                      model->inputs[i].ndim, model->inputs[i].shape);
    for (int i = 0; i < model->nvariables; i++) {
        const struct model_variable *v = &model->variables[i];

        given[i] = ipu_variable(graph, v->name, IPU_FLOAT32, v->ndim, v->shape);
    }
    y = model->piece(model, graph, piece, given,
                     piece > 0 ? ipu_input(graph, "x of the piece", x->dtype,
                                           x->ndim, x->shape)
                               : inputs[0],
                     &pass);
    if (ipu_output(graph, "y of the piece", y) < 0)
        status =
            problem_set("model %s: piece %d uses a tensor from before its "
                        "hvd_net_next_piece that has not come through it: %s",
                        model->name, piece, ipu_last_error());
    else
        x->ndim = ipu_tensor_info(graph, y, &x->dtype, x->shape, NULL);
    ipu_graph_free(graph);
    free(given);
    return status;
}

int net_check_pieces(const struct model *model)
{
    struct handed x = {.ndim = 0};
    int status = 0;

    for (int i = 0; i < model->pieces && status == 0; i++)
        status = check_piece(model, i, &x);
    return status < 0 ? PROBLEM : 0;
}
