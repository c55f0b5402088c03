/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loss of each row: log(sum of exp(logits)) - logits[label]; its derivative
 * is softmax(logits) - onehot(label), times that of the loss.
 *
 * The largest logit is subtracted first, so that nothing overflows. A label
 * out of range stops the run: there is no loss to compute.
 */
#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "ops/costs.h"
#include "ops/op.h"
#include "ops/rows.h"

/* Labels have the dimensions of the logits but the last. */
static bool labels_fit(const struct ipu__shape *logits,
                       const struct ipu__shape *labels)
{
    if (logits->ndim != labels->ndim + 1)
        return false;
    for (int32_t i = 0; i < labels->ndim; i++)
        if (logits->extents[i] != labels->extents[i])
            return false;
    return true;
}

static int64_t classes_of(const struct ipu__call *call)
{
    const struct ipu__shape *logits = &call->inputs[0].shape;

    return logits->extents[logits->ndim - 1];
}

static int check_inputs(const struct ipu__call *call)
{
    const struct ipu__shape *logits = &call->inputs[0].shape;

    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, logits->ndim > 0 ? -1 : 1,
                        "[..., classes]"));
    IPU_TRY(ipu__expect(call, 1, IPU_INT32, -1, "[...]"));
    if (!labels_fit(logits, &call->inputs[1].shape))
        return ipu__unfit(call, 0, 1,
                          "labels must have the dimensions of the logits but "
                          "the last");
    if (classes_of(call) == 0)
        return ipu__unfit(call, 0, 1, "there must be a class");
    return IPU_OK;
}

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->inputs[1].shape;
    output->dtype = IPU_FLOAT32;
    return check_inputs(call);
}

static int check_labels(const struct ipu__call *call)
{
    const int32_t *labels = call->inputs[1].data;
    int64_t rows = ipu__shape_count(&call->inputs[1].shape);
    int64_t classes = classes_of(call);

    for (int64_t r = 0; r < rows; r++)
        if (labels[r] < 0 || labels[r] >= classes)
            return ipu__fail(IPU_ERR_DATA,
                             "%s: row %" PRId64 " of %s is label %" PRId32
                             ", not one of the %" PRId64 " classes",
                             call->op->name, r, call->inputs[1].name, labels[r],
                             classes);
    return IPU_OK;
}

static int run(const struct ipu__call *call)
{
    const float *logits = call->inputs[0].data;
    const int32_t *labels = call->inputs[1].data;
    int64_t rows = ipu__shape_count(&call->inputs[1].shape);
    int64_t classes = classes_of(call);
    float *losses = call->output.data;

    IPU_TRY(check_labels(call));
    for (int64_t r = 0; r < rows; r++) {
        const float *row = logits + r * classes;
        float most = ipu__row_max(row[0], row, classes);

        losses[r] = (float)(log(ipu__row_exp_sum(row, most, classes)) -
                            (double)(row[labels[r]] - most));
    }
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    const ipu_tensor inputs[] = {ipu__input(graph, node, 0),
                                 ipu__input(graph, node, 1), dy};

    dx[0] = ipu__add(graph, &ipu__softmax_cross_entropy_grad, inputs, NULL);
}

const struct ipu__op ipu__softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .ninputs = 2,
    .checks = true,
    .functions = {IPU__EXP},
    .slots = 3,
    .shape = shape,
    .run = run,
    .cost = ipu__rows_cost,
    .gradient = gradient,
};

static int grad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    struct ipu__shape loss = call->inputs[1].shape;

    loss.dtype = IPU_FLOAT32;
    *output = call->inputs[0].shape;
    IPU_TRY(check_inputs(call));
    return ipu__expect_true(call,
                            ipu__shape_equal(&call->inputs[2].shape, &loss));
}

/* Labels were checked by the forward op, but that one may have been dropped
 * if nobody looks at the loss. */
static int run_grad(const struct ipu__call *call)
{
    const float *logits = call->inputs[0].data, *dy = call->inputs[2].data;
    const int32_t *labels = call->inputs[1].data;
    int64_t rows = ipu__shape_count(&call->inputs[1].shape);
    int64_t classes = classes_of(call);
    float *dx = call->output.data;

    IPU_TRY(check_labels(call));
    for (int64_t r = 0; r < rows; r++) {
        const float *row = logits + r * classes;
        float *slopes = dx + r * classes, at = dy[r];
        float most = ipu__row_max(row[0], row, classes);
        double sum = ipu__row_exp(slopes, row, most, classes);

        ipu__row_scale(slopes, (float)((double)at / sum), classes);
        slopes[labels[r]] -= at;
    }
    return IPU_OK;
}

const struct ipu__op ipu__softmax_cross_entropy_grad = {
    .name = "softmax_cross_entropy_grad",
    .ninputs = 3,
    .in_place = IPU__FIRST,
    .checks = true,
    .by_row = true,
    .functions = {IPU__EXP},
    .slots = 6,
    .shape = grad_shape,
    .run = run_grad,
    .cost = ipu__rows_cost,
};

ipu_tensor ipu_softmax_cross_entropy(ipu_graph *graph, ipu_tensor logits,
                                     ipu_tensor labels)
{
    return ipu__add(graph, &ipu__softmax_cross_entropy,
                    (const ipu_tensor[]){logits, labels}, NULL);
}
