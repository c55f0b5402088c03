/* SPDX-License-Identifier: Apache-2.0 */
/* Reshaping gives the same elements another shape. It costs nothing, since
 * input and output share memory. */
#include <inttypes.h>

#include "base/error.h"
#include "ops/copy.h"
#include "ops/op.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *wanted = &call->attributes->shape;

    *output = *wanted;
    output->dtype = call->inputs[0].shape.dtype;
    if (ipu__shape_count(output) == ipu__shape_count(&call->inputs[0].shape))
        return IPU_OK;
    return ipu__fail(IPU_ERR_SHAPE,
                     "reshape: %s is %s, which has not as many elements as %s",
                     call->inputs[0].name,
                     ipu__shape_print(&call->inputs[0].shape).text,
                     ipu__shape_print(output).text);
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    const struct ipu__attributes attributes = {
        .shape = graph->tensors[node->inputs[0]].shape};

    dx[0] = ipu__add(graph, &ipu__reshape, &dy, &attributes);
}

const struct ipu__op ipu__reshape = {
    .name = "reshape",
    .ninputs = 1,
    .in_place = IPU__FIRST,
    .alias = true,
    .raw = true,
    .shape = shape,
    .run = ipu__pass_on,
    .gradient = gradient,
};

/* Replace the one extent of -1 by what is left of count elements. */
static int complete(int64_t count, int32_t ndim, const int64_t *given,
                    int64_t *extents)
{
    int64_t rest = 1;
    int32_t unknown = -1;

    for (int32_t i = 0; i < ndim; i++) {
        extents[i] = given[i];
        if (given[i] != -1 && !__builtin_mul_overflow(rest, given[i], &rest))
            continue;
        if (given[i] != -1 || unknown >= 0)
            return ipu__fail(IPU_ERR_SHAPE, given[i] == -1
                                                ? "reshape: two extents are -1"
                                                : "reshape: the shape is too "
                                                  "large");
        unknown = i;
    }
    if (unknown < 0)
        return IPU_OK;
    if (rest <= 0 || count % rest != 0)
        return ipu__fail(IPU_ERR_SHAPE,
                         "reshape: %" PRId64 " elements do not divide by the "
                         "%" PRId64 " of the other extents",
                         count, rest);
    extents[unknown] = count / rest;
    return IPU_OK;
}

ipu_tensor ipu_reshape(ipu_graph *graph, ipu_tensor x, int32_t ndim,
                       const int64_t *extents)
{
    struct ipu__attributes attributes = {0};
    int64_t completed[IPU_MAX_DIMS];
    int32_t index;
    int status;

    if (!graph || graph->status < 0 || x.id < 0)
        return ipu__add(graph, &ipu__reshape, &x, NULL);
    index = ipu__index(graph, x);
    if (index < 0)
        return ipu__add(graph, &ipu__reshape, &x, NULL);
    status = ndim < 0 || ndim > IPU_MAX_DIMS || (ndim > 0 && !extents)
                 ? ipu__shape_make("reshape", IPU_FLOAT32, ndim, extents,
                                   &attributes.shape)
                 : complete(ipu__shape_count(&graph->tensors[index].shape),
                            ndim, extents, completed);
    if (status == IPU_OK)
        status = ipu__shape_make("reshape", IPU_FLOAT32, ndim, completed,
                                 &attributes.shape);
    if (status < 0)
        return ipu__invalid(graph, status);
    return ipu__add(graph, &ipu__reshape, &x, &attributes);
}
