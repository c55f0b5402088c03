/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses.c - losses of class scores, x: [n, classes, ...], and labels: [n,
 * ...].
 *
 * The loss of each label is -weight[label] x[label], where x are logarithms of
 * probabilities, or become so by log_softmax. Labels of one number (the
 * attribute ignore_index) have none. The mean divides by the sum of the weights
 * that were counted.
 */
#include "onnx/operators/rows.h"

/* What a loss is made of. */
struct loss {
    ipu_tensor scores; /* [n, ..., classes] */
    ipu_tensor labels; /* [n, ...]; 0 for those that are ignored */
    ipu_tensor weight; /* [n, ...]; id < 0: all are 1 */
};

static int check_loss(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_value *x = call->inputs[0], *t = call->inputs[1];
    const struct ipu__onnx_value *w = onnx__in(call, 2);
    bool fit = x->ndim >= 2 && t->ndim == x->ndim - 1 &&
               t->extents[0] == x->extents[0];

    IPU_TRY(onnx__want_floats(call, 0));
    for (int32_t d = 1; fit && d < t->ndim; d++)
        fit = t->extents[d] == x->extents[d + 1];
    if (!fit || !onnx__is_whole(t->type))
        return onnx__refuse(call, "its labels do not fit its scores");
    if (w &&
        (w->ndim != 1 || w->extents[0] != x->extents[1] || w->type != x->type))
        return onnx__refuse(call, "its weights do not fit its classes");
    return IPU_OK;
}

/* Sets labels and weights without those that are ignored. */
static void read_labels(struct ipu__onnx_call *call, struct loss *loss)
{
    struct ipu__onnx_value *w = onnx__in(call, 2);
    int64_t ignored = onnx__int(call, "ignore_index", 0);
    ipu_dtype dtype = ipu__onnx_kind(call->inputs[0]->type)->dtype;
    ipu_graph *g = call->graph;
    ipu_tensor counted, zero = onnx__scalar(call, IPU_ONNX_INT32, 0);

    loss->labels = onnx__tensor(call, call->inputs[1]);
    loss->weight.id = -1;
    counted.id = -1;
    /* No label of the device is beyond int32. */
    if (onnx__has_attribute(call, "ignore_index") &&
        ignored == (int32_t)ignored) {
        counted =
            ipu_not_equal(g, loss->labels,
                          onnx__scalar(call, IPU_ONNX_INT32, (double)ignored));
        loss->labels = ipu_select(g, counted, loss->labels, zero);
        loss->weight = ipu_cast(g, counted, dtype);
    }
    if (!w)
        return;
    loss->weight = ipu_gather(g, onnx__tensor(call, w), loss->labels, 0);
    if (counted.id >= 0)
        loss->weight = ipu_select(g, counted, loss->weight,
                                  onnx__scalar(call, w->type, 0));
}

/* Returns the loss of each label before it is weighted. */
static ipu_tensor loss_of_each(ipu_graph *g, const struct loss *loss)
{
    ipu_tensor taken =
        ipu_take(g, loss->scores, ipu_expand_dims(g, loss->labels, -1));

    return ipu_negate(g, ipu_squeeze(g, taken, -1));
}

static int give_loss(struct ipu__onnx_call *call, const struct loss *loss,
                     ipu_tensor each)
{
    int64_t count = onnx__size(call->inputs[1]);
    int32_t type = call->inputs[0]->type;
    bool weighted = loss->weight.id >= 0;
    ipu_graph *g = call->graph;
    ipu_tensor sum;

    if (weighted)
        each = ipu_multiply(g, each, loss->weight);
    if (onnx__text_is(call, "reduction", "none", "mean"))
        return onnx__give(call, 0, type, each);
    if (onnx__text_is(call, "reduction", "sum", "mean"))
        return onnx__give(call, 0, type, ipu_reduce_sum(g, each, 1));
    if (!onnx__text_is(call, "reduction", "mean", "mean"))
        return onnx__refuse(call, "there is no such reduction");
    sum = ipu_reduce_sum(g, each,
                         weighted ? 1 : 1 / (double)(count > 0 ? count : 1));
    if (weighted)
        sum = ipu_divide(g, sum, ipu_reduce_sum(g, loss->weight, 1));
    return onnx__give(call, 0, type, sum);
}

/* Returns x with the classes last. */
static ipu_tensor classes_last(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];

    return x->ndim > 2 ? onnx__last(call, x) : onnx__tensor(call, x);
}

static int build_likelihood(struct ipu__onnx_call *call)
{
    struct loss loss;

    IPU_TRY(check_loss(call));
    loss.scores = classes_last(call);
    read_labels(call, &loss);
    return give_loss(call, &loss, loss_of_each(call->graph, &loss));
}

/* One op computes softmax and loss, unless their logarithms are wanted. */
static int build_cross_entropy(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    ipu_graph *g = call->graph;
    struct loss loss;

    IPU_TRY(check_loss(call));
    loss.scores = classes_last(call);
    read_labels(call, &loss);
    if (!onnx__wants(call, 1) && ipu__onnx_kind(x->type)->dtype == IPU_FLOAT32)
        return give_loss(
            call, &loss,
            ipu_softmax_cross_entropy(g, loss.scores, loss.labels));
    loss.scores = ipu_log_softmax(g, loss.scores);
    IPU_TRY(x->ndim > 2 ? onnx__give_last(call, 1, x->type, loss.scores)
                        : onnx__give(call, 1, x->type, loss.scores));
    return give_loss(call, &loss, loss_of_each(g, &loss));
}

const struct ipu__onnx_operator onnx__loss_rows[] = {
    {"NegativeLogLikelihoodLoss", 12, "ignore_index reduction", 2, 3,
     build_likelihood, NULL, NULL},
    {"SoftmaxCrossEntropyLoss", 12, "ignore_index reduction", 2, 3,
     build_cross_entropy, NULL, NULL},
    {.name = NULL},
};
