/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.c - operators that draw: RandomNormal, RandomUniform, what is like
 * another tensor, and Bernoulli.
 *
 * What is drawn is a function of a seed and of the number of the run, so it is
 * another in each run of the program, and the same in each program. A node
 * without a seed has the number of the node among those that draw (Dropout is
 * one of them). The rows of normal distributions have a how. ONNX names no
 * generator: no two implementations draw the same.
 */
#include <math.h>
#include <string.h>

#include "onnx/builder.h"
#include "onnx/operators/rows.h"

/* Returns the seed of a node, whose attribute is a float. */
static uint64_t seed_of(struct ipu__onnx_call *call)
{
    float given = (float)onnx__float(call, "seed", NAN);
    uint32_t bits;

    if (isnan(given))
        return (uint64_t)call->builder->model->dropouts;
    memcpy(&bits, &given, sizeof bits);
    return (uint64_t)bits << 32;
}

/* Notes that the node draws. */
static int note_draw(struct ipu__onnx_call *call)
{
    ipu_onnx *model = call->builder->model;

    if (call->builder->depth > 0)
        return onnx__refuse(call, "random numbers are not supported in a graph "
                                  "of a node");
    if (model->dropouts++ == 0)
        model->run = ipu_counter(call->graph, ONNX__RUN);
    return IPU_OK;
}

static ipu_tensor draw(struct ipu__onnx_call *call, int32_t ndim,
                       const int64_t *extents, bool normal, const double of[2])
{
    ipu_tensor run = call->builder->model->run;
    uint64_t seed = seed_of(call);

    return normal ? ipu_random_normal(call->graph, ndim, extents, of[0], of[1],
                                      seed, run)
                  : ipu_random_uniform(call->graph, ndim, extents, of[0], of[1],
                                       seed, run);
}

static int give_drawn(struct ipu__onnx_call *call, int32_t ndim,
                      const int64_t *extents, int64_t number, bool normal)
{
    double of[2] = {
        normal ? onnx__float(call, "mean", 0) : onnx__float(call, "low", 0),
        normal ? onnx__float(call, "scale", 1) : onnx__float(call, "high", 1)};
    int32_t type = (int32_t)number;

    if (ipu__onnx_kind(number)->bytes == 0 || onnx__is_whole(type))
        return onnx__refuse(call, "its type is none of floats");
    if (!isfinite(of[0]) || !isfinite(of[1]) ||
        (normal ? of[1] < 0 : of[0] >= of[1]))
        return onnx__refuse(call, "%s",
                            normal ? "its scale is negative, or a "
                                     "number is not finite"
                                   : "low is not below high");
    IPU_TRY(note_draw(call));
    return onnx__give(call, 0, type,
                      ipu_cast(call->graph,
                               draw(call, ndim, extents, normal, of),
                               ipu__onnx_kind(type)->dtype));
}

static int build_random(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_ints *shape = onnx__ints(call, "shape");
    int64_t count = 1;

    if (!shape || shape->count > IPU_MAX_DIMS)
        return onnx__refuse(call,
                            "it has no shape, or one of more than %d "
                            "dimensions",
                            IPU_MAX_DIMS);
    for (size_t i = 0; i < shape->count; i++) {
        if (shape->at[i] < 1 || shape->at[i] > INT32_MAX / count)
            return onnx__refuse(call, "its shape has no elements, or too many");
        count *= shape->at[i];
    }
    return give_drawn(call, (int32_t)shape->count, shape->at,
                      onnx__int(call, "dtype", IPU_ONNX_FLOAT),
                      call->op->how != NULL);
}

static int build_random_like(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_value *x = call->inputs[0];

    return give_drawn(call, x->ndim, x->extents,
                      onnx__int(call, "dtype", x->type), call->op->how != NULL);
}

/* An element is 1 with the probability that the input has there. */
static int build_bernoulli(struct ipu__onnx_call *call)
{
    static const double unit[] = {0, 1};
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t number = onnx__int(call, "dtype", x->type);
    int32_t type = (int32_t)number;
    ipu_tensor p, hit;

    if (ipu__onnx_kind(number)->bytes == 0)
        return onnx__refuse(call, "its type is not supported");
    IPU_TRY(note_draw(call));
    p = ipu_cast(call->graph, onnx__tensor(call, x), IPU_FLOAT32);
    hit =
        ipu_less(call->graph, draw(call, x->ndim, x->extents, false, unit), p);
    return onnx__give(call, 0, type,
                      ipu_cast(call->graph, hit, ipu__onnx_kind(type)->dtype));
}

const struct ipu__onnx_operator onnx__random_rows[] = {
    {"Bernoulli", 15, "dtype seed", 1, 1, build_bernoulli, NULL, NULL},
    {"RandomNormal", 1, "dtype mean scale seed shape", 0, 0, build_random, "n",
     NULL},
    {"RandomNormalLike", 1, "dtype mean scale seed", 1, 1, build_random_like,
     "n", NULL},
    {"RandomUniform", 1, "dtype high low seed shape", 0, 0, build_random, NULL,
     NULL},
    {"RandomUniformLike", 1, "dtype high low seed", 1, 1, build_random_like,
     NULL, NULL},
    {.name = NULL},
};
