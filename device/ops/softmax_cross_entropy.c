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

#include "graph/error.h"
#include "ops/op.h"

static int check(const struct ipu__call *call)
{
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, 2, "[n, classes]"));
    IPU_TRY(ipu__expect(call, 1, IPU_INT32, 1, "[n]"));
    if (call->inputs[0].shape.extents[0] != call->inputs[1].shape.extents[0])
        return ipu__unfit(call, 0, 1, "they must have as many rows");
    if (call->inputs[0].shape.extents[1] == 0)
        return ipu__unfit(call, 0, 1, "there must be a class");
    return IPU_OK;
}

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->inputs[1].shape;
    output->dtype = IPU_FLOAT32;
    return check(call);
}

static float largest(const float *x, int64_t count)
{
    float most = x[0];

    for (int64_t i = 1; i < count; i++)
        if (x[i] > most || isnan(x[i]))
            most = x[i];
    return most;
}

static double sum_of_exp(const float *x, float most, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += exp((double)(x[i] - most));
    return sum;
}

static int check_labels(const struct ipu__call *call)
{
    const int32_t *labels = call->inputs[1].data;
    int64_t rows = call->inputs[0].shape.extents[0];
    int64_t classes = call->inputs[0].shape.extents[1];

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
    int64_t rows = call->inputs[0].shape.extents[0];
    int64_t classes = call->inputs[0].shape.extents[1];
    float *losses = call->output.data;

    IPU_TRY(check_labels(call));
    for (int64_t r = 0; r < rows; r++) {
        const float *row = logits + r * classes;
        float most = largest(row, classes);

        losses[r] = (float)(log(sum_of_exp(row, most, classes)) -
                            (double)(row[labels[r]] - most));
    }
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    const ipu_tensor inputs[] = {ipu__handle(graph, node->inputs[0]),
                                 ipu__handle(graph, node->inputs[1]), dy};

    (void)needed;
    dx[0] = ipu__add(graph, &ipu__softmax_cross_entropy_grad, inputs, NULL);
}

const struct ipu__op ipu__softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .ninputs = 2,
    .in_place = -1,
    .shape = shape,
    .run = run,
    .gradient = gradient,
};

static int grad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->inputs[0].shape;
    return check(call);
}

/* Labels were checked by the forward op, but that one may have been dropped
 * if nobody looks at the loss. */
static int run_grad(const struct ipu__call *call)
{
    const float *logits = call->inputs[0].data, *dy = call->inputs[2].data;
    const int32_t *labels = call->inputs[1].data;
    int64_t rows = call->inputs[0].shape.extents[0];
    int64_t classes = call->inputs[0].shape.extents[1];
    float *dx = call->output.data;

    IPU_TRY(check_labels(call));
    for (int64_t r = 0; r < rows; r++) {
        const float *row = logits + r * classes;
        float most = largest(row, classes);
        double sum = sum_of_exp(row, most, classes);

        for (int64_t i = 0; i < classes; i++) {
            double p = exp((double)(row[i] - most)) / sum;
            dx[r * classes + i] =
                (float)((p - (i == labels[r])) * (double)dy[r]);
        }
    }
    return IPU_OK;
}

const struct ipu__op ipu__softmax_cross_entropy_grad = {
    .name = "softmax_cross_entropy_grad",
    .ninputs = 3,
    .in_place = 0,
    .shape = grad_shape,
    .run = run_grad,
};

ipu_tensor ipu_softmax_cross_entropy(ipu_graph *graph, ipu_tensor logits,
                                     ipu_tensor labels)
{
    return ipu__add(graph, &ipu__softmax_cross_entropy,
                    (const ipu_tensor[]){logits, labels}, NULL);
}
