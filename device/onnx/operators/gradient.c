/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradient.c - Gradient of the set ai.onnx.preview.training: the derivatives of
 * the sum of a tensor y with respect to tensors xs. The inputs of the node have
 * to be the tensors xs and zs themselves, at which y was computed.
 *
 * Initialisers among xs are tensors of the graph from the beginning (build.c):
 * an op that computes with their elements on the host would not depend on them.
 */
#include <string.h>

#include "onnx/builder.h"
#include "onnx/operators/rows.h"

/* Checks that input i is the tensor of that name. */
static int check_place(struct ipu__onnx_call *call, size_t i, const char *name)
{
    if (i < (size_t)call->ninputs && call->inputs[i] &&
        !strcmp(call->inputs[i]->name, name))
        return IPU_OK;
    return onnx__refuse(call,
                        "its input %zu is not '%.100s': derivatives at other "
                        "values are not supported",
                        i, name);
}

static int check_places(struct ipu__onnx_call *call,
                        const struct ipu__onnx_texts *xs)
{
    const struct ipu__onnx_texts *zs = onnx__texts(call, "zs");
    size_t n = xs->count;

    for (size_t i = 0; i < n; i++)
        IPU_TRY(check_place(call, i, xs->at[i]));
    for (size_t i = 0; zs && i < zs->count; i++)
        IPU_TRY(check_place(call, n + i, zs->at[i]));
    if ((size_t)call->noutputs > n)
        return onnx__refuse(call, "it has more outputs than xs");
    return IPU_OK;
}

/* Returns the sum of y, float32. */
static int find_loss(struct ipu__onnx_call *call, ipu_tensor *loss)
{
    char name[256];
    struct ipu__onnx_value *y = NULL;

    if (onnx__text(call, "y", name, sizeof name))
        y = ipu__onnx_value(call->builder, name);
    if (!y || y->state != IPU__ONNX_MADE || onnx__is_whole(y->type))
        return onnx__refuse(call, "nothing before it makes its y, of floats");
    *loss = ipu_reduce_sum(
        call->graph, ipu_cast(call->graph, onnx__tensor(call, y), IPU_FLOAT32),
        1);
    return IPU_OK;
}

/* Returns the tensor of a value that others were made of: the first of those in
 * both orders. */
static ipu_tensor origin_of(struct ipu__onnx_call *call,
                            struct ipu__onnx_value *x, bool *last)
{
    *last = x->last.id >= 0 && (x->tensor.id < 0 || x->last.id < x->tensor.id);
    return *last ? x->last : onnx__tensor(call, x);
}

/* The derivatives that are wanted. */
struct wanted {
    int count;
    int *outputs; /* their numbers */
    bool *last;   /* channels are last */
    ipu_tensor *x, *dx;
};

static int find_wanted(struct ipu__onnx_call *call, struct wanted *w)
{
    for (int i = 0; i < call->noutputs; i++) {
        struct ipu__onnx_value *x = call->inputs[i];

        if (!onnx__wants(call, i))
            continue;
        IPU_TRY(onnx__want_floats(call, i));
        if (onnx__known(call, x))
            return onnx__refuse(call, "'%.100s' is a constant", x->name);
        w->outputs[w->count] = i;
        w->x[w->count] = origin_of(call, x, &w->last[w->count]);
        w->dx[w->count++].id = -1;
    }
    return IPU_OK;
}

static int give_wanted(struct ipu__onnx_call *call, const struct wanted *w)
{
    for (int k = 0; k < w->count; k++) {
        int i = w->outputs[k];
        int32_t type = call->inputs[i]->type;

        IPU_TRY(w->last[k] ? onnx__give_last(call, i, type, w->dx[k])
                           : onnx__give(call, i, type, w->dx[k]));
    }
    return IPU_OK;
}

static int build_gradient(struct ipu__onnx_call *call)
{
    struct ipu__onnx_file *file = &call->builder->model->file;
    const struct ipu__onnx_texts *xs = onnx__texts(call, "xs");
    size_t n = (size_t)call->noutputs + 1;
    struct wanted w = {.outputs =
                           ipu__onnx_keep_outside(file, n * sizeof *w.outputs),
                       .last = ipu__onnx_keep_outside(file, n * sizeof *w.last),
                       .x = ipu__onnx_keep_outside(file, n * sizeof *w.x),
                       .dx = ipu__onnx_keep_outside(file, n * sizeof *w.dx)};
    ipu_tensor loss;

    if (!w.outputs || !w.last || !w.x || !w.dx)
        return ipu__onnx_end(call->builder, IPU_ERR_MEMORY);
    if (!xs || xs->count < 1)
        return onnx__refuse(call, "xs is missing");
    IPU_TRY(check_places(call, xs));
    IPU_TRY(find_loss(call, &loss));
    IPU_TRY(find_wanted(call, &w));
    ipu_gradients(call->graph, loss, w.count, w.x, w.dx);
    return give_wanted(call, &w);
}

const struct ipu__onnx_operator onnx__gradient_rows[] = {
    {"Gradient", 1, "xs y zs", 1, IPU__ONNX_ANY_NUMBER, build_gradient, NULL,
     "derivatives at other values than those of xs and zs are refused"},
    {.name = NULL},
};
