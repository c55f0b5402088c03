/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.c - tensors of random numbers, uniform or normal, by seed and step.
 *
 * Each element is a function of seed, step and its index (random.h): the ops
 * have no state, and a run that is repeated gives the same bits.
 */
#include <math.h>

#include "base/error.h"
#include "ops/functions.h"
#include "ops/op.h"
#include "ops/random/random.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->attributes->shape;
    return ipu__expect(call, 0, IPU_INT32, 0, "the step, a scalar");
}

static struct ipu__random stream_of(const struct ipu__call *call,
                                    uint32_t stream)
{
    return ipu__random_of(call->attributes->seed,
                          *(const int32_t *)call->inputs[0].data, stream);
}

IPU__WIDE(static, void, uniform,
          (float *y, struct ipu__random r, float low, float width,
           int64_t first, int64_t count),
          (y, r, low, width, first, count))
{
    for (int64_t i = 0; i < count; i++)
        y[i] = low + width * ipu__random_float(r, first + i);
}

/* offset: the lower bound, scale: the width. */
static int run_uniform(const struct ipu__call *call)
{
    uniform(call->output.data, stream_of(call, 1),
            (float)call->attributes->offset, (float)call->attributes->scale,
            call->first, ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

const struct ipu__op ipu__random_uniform = {
    .name = "random_uniform",
    .ninputs = 1,
    .by_element = true,
    .slots = 4,
    .shape = shape,
    .run = run_uniform,
};

/* Two uniform numbers make a normal one (Box and Muller, 1958). offset: the
 * mean, scale: the standard deviation. */
static int run_normal(const struct ipu__call *call)
{
    struct ipu__random radii = stream_of(call, 2), angles = stream_of(call, 3);
    float mean = (float)call->attributes->offset, *y = call->output.data;
    float deviation = (float)call->attributes->scale;
    int64_t count = ipu__shape_count(&call->output.shape);

    for (int64_t i = 0; i < count; i++) {
        int64_t k = call->first + i;
        float radius = sqrtf(-2 * ipu__log(1 - ipu__random_float(radii, k)));

        y[i] = mean + deviation * radius *
                          cosf(6.28318531f * ipu__random_float(angles, k));
    }
    return IPU_OK;
}

const struct ipu__op ipu__random_normal = {
    .name = "random_normal",
    .ninputs = 1,
    .by_element = true,
    .slots = 3,
    .shape = shape,
    .run = run_normal,
};

static ipu_tensor add_random(ipu_graph *graph, const struct ipu__op *op,
                             int32_t ndim, const int64_t *extents,
                             struct ipu__attributes *a, ipu_tensor step)
{
    int status =
        ipu__shape_make(op->name, IPU_FLOAT32, ndim, extents, &a->shape);

    if (status == IPU_OK && !(isfinite(a->offset) && isfinite(a->scale)))
        status = ipu__fail(IPU_ERR_ARGUMENT, "%s: %g and %g must be finite",
                           op->name, a->offset, a->scale);
    if (status < 0)
        return ipu__invalid(graph, status);
    return ipu__add(graph, op, &step, a);
}

ipu_tensor ipu_random_uniform(ipu_graph *graph, int32_t ndim,
                              const int64_t *extents, double low, double high,
                              uint64_t seed, ipu_tensor step)
{
    struct ipu__attributes a = {
        .offset = low, .scale = high - low, .seed = seed};

    return add_random(graph, &ipu__random_uniform, ndim, extents, &a, step);
}

ipu_tensor ipu_random_normal(ipu_graph *graph, int32_t ndim,
                             const int64_t *extents, double mean,
                             double deviation, uint64_t seed, ipu_tensor step)
{
    struct ipu__attributes a = {
        .offset = mean, .scale = deviation, .seed = seed};

    return add_random(graph, &ipu__random_normal, ndim, extents, &a, step);
}
