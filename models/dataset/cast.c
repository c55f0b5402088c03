/* SPDX-License-Identifier: Apache-2.0 */
/* cast.c - another dtype or shape for one component. */
#include "dataset/stage.h"

#include "files/elements.h"
#include "output/problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cast {
    int32_t component;
    double divisor; /* 0: only the shape differs */
    float inverse;  /* of the divisor, for quotient; 0: not for all bytes */
};

static const struct cast *cast_of(const hvd_dataset *set)
{
    return set->parameters;
}

/* Returns x / divisor, if find_inverse has found that: a product, and what its
 * error adds to it. */
static inline __attribute__((always_inline)) float quotient(float x,
                                                            float divisor,
                                                            float inverse)
{
    const float near = x * inverse;

    return __builtin_fmaf(__builtin_fmaf(-near, divisor, x), inverse, near);
}

/* Returns the inverse with which the quotients of all bytes have the bits of a
 * division; 0: there is none. */
static float find_inverse(float divisor)
{
    const float inverse = 1 / divisor;

    for (int x = 0; x < 256; x++) {
        const float exact = (float)x / divisor;
        const float found = quotient((float)x, divisor, inverse);

        if (memcmp(&exact, &found, sizeof exact) != 0)
            return 0;
    }
    return inverse;
}

/* Pixels, of which there are most: a division takes several times as long as
 * all else, and a processor with fused multiply-add does without. */
#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void multiply_bytes(
    const uint8_t *restrict from, int64_t n, float divisor, float inverse,
    float *restrict to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = quotient((float)from[i], divisor, inverse);
}
#endif

static void divide_bytes(const uint8_t *restrict from, int64_t n,
                         const struct cast *cast, float *restrict to)
{
    const float divisor = (float)cast->divisor;

#ifdef __x86_64__
    if (cast->inverse != 0 && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("avx2")) {
        multiply_bytes(from, n, divisor, cast->inverse, to);
        return;
    }
#endif
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)from[i] / divisor;
}

/* Ends of the integers' ranges, beyond the last numbers. */
static const double ends[][2] = {[HVD_UINT8] = {-1, 256},
                                 [HVD_INT8] = {-129, 128},
                                 [HVD_UINT16] = {-1, 65536},
                                 [HVD_INT16] = {-32769, 32768},
                                 [HVD_INT32] = {-2147483649.0, 2147483648.0},
                                 [HVD_INT64] = {-0x1.0000000000001p63, 0x1p63}};

static int cast_numbers(const struct stage *stage, int64_t index,
                        const void *from, void *to)
{
    const struct cast *cast = cast_of(stage->set);
    const hvd_component *c = &stage->set->components[cast->component];
    hvd_dtype before = stage->inputs[0]->set->components[cast->component].dtype;
    int64_t n = component_count(c);
    enum safetensors_dtype in =
        (enum safetensors_dtype)safetensors_from_hvd(before);
    enum safetensors_dtype kind =
        (enum safetensors_dtype)safetensors_from_hvd(c->dtype);

    if (before == HVD_UINT8 && c->dtype == HVD_FLOAT32) {
        divide_bytes(from, n, cast, to);
        return 0;
    }
    if (before == c->dtype && cast->divisor == 1) {
        memcpy(to, from, component_bytes(c));
        return 0;
    }
    for (int64_t i = 0; i < n; i++) {
        double x = element_get(in, from, i) / cast->divisor;

        if (!element_is_float(kind)) {
            x = trunc(x);
            if (!(x > ends[c->dtype][0] && x < ends[c->dtype][1]))
                return problem_fail(HVD_ERR_ARGUMENT,
                                    "data set: \"%s\" of element %lld: %.17g "
                                    "is beyond the range of %s",
                                    c->name, (long long)index, x,
                                    hvd_dtype_name(c->dtype));
        }
        element_put(kind, to, i, x);
    }
    return 0;
}

/* The other components go to their places without a copy between, if the input
 * computes them. */
static int get_cast(struct stage *stage, int64_t index, char *room,
                    void *const *out)
{
    const int32_t c = cast_of(stage->set)->component;
    const void *in[HVD_MAX_COMPONENTS];
    void *to[HVD_MAX_COMPONENTS];
    int64_t place = index;
    struct stage *input = stage_find(stage->inputs[0], &place);
    int status;

    if (!input->set->kind->look) {
        char *rest = room + stage_lay_out(input, room, to);
        void *from = to[c];

        memcpy(to, out, sizeof *to * (size_t)stage->set->ncomponents);
        to[c] = from;
        status = input->set->kind->get(input, place, rest, to);
        return status < 0 ? status : cast_numbers(stage, index, from, out[c]);
    }
    status = input->set->kind->look(input, place, in);
    for (int32_t i = 0; i < stage->set->ncomponents && status == 0; i++) {
        if (i == c)
            status = cast_numbers(stage, index, in[i], out[i]);
        else
            memcpy(out[i], in[i], stage->bytes[i]);
    }
    return status;
}

static int next_cast(struct stage *stage, void *const *out)
{
    const struct cast *cast = cast_of(stage->set);
    struct stage *input = stage->inputs[0];
    void *in[HVD_MAX_COMPONENTS];

    stage_lay_out(input, input->scratch, in);
    void *from = in[cast->component];
    memcpy(in, out, sizeof *in * (size_t)stage->set->ncomponents);
    in[cast->component] = from;
    int status = stage_next(input, in);
    return status == 0 ? cast_numbers(stage, stage->position, from,
                                      out[cast->component])
                       : status;
}

static const struct kind cast_kind = {
    .name = "cast", .get = get_cast, .next = next_cast};

static struct stage *place_reshaped(struct stage *stage, int64_t *index)
{
    (void)index;
    return stage->inputs[0];
}

static int next_reshaped(struct stage *stage, void *const *out)
{
    return stage_next(stage->inputs[0], out);
}

static int64_t skip_reshaped(struct stage *stage, int64_t n)
{
    return stage_skip(stage->inputs[0], n);
}

static const struct kind reshape_kind = {.name = "reshape",
                                         .place = place_reshaped,
                                         .next = next_reshaped,
                                         .skip = skip_reshaped};

/* Finds a component, or frees the data set and returns -1. */
static int32_t find_component(hvd_dataset *set, const char *name,
                              const char *what)
{
    int32_t i;

    if (!set)
        return -1;
    i = set->batched ? -1 : node_find(set, name);
    if (set->batched)
        node_fail(set, HVD_ERR_ARGUMENT, "data set: %s comes before batch",
                  what);
    else if (i < 0)
        node_fail(set, HVD_ERR_ARGUMENT,
                  "data set: %s: there is no component \"%s\"; the first is "
                  "\"%s\"",
                  what, name ? name : "", set->components[0].name);
    return i;
}

hvd_dataset *hvd_dataset_cast(hvd_dataset *dataset, const char *name,
                              hvd_dtype dtype, double divisor)
{
    hvd_component components[HVD_MAX_COMPONENTS];
    int32_t i = find_component(dataset, name, "cast");

    if (i < 0)
        return NULL;
    hvd_dtype before = dataset->components[i].dtype;
    if (dtype == HVD_BOOL || hvd_dtype_size(dtype) < 0)
        return node_fail(dataset, HVD_ERR_UNSUPPORTED,
                         "data set: \"%s\" cannot be cast from %s to %s", name,
                         hvd_dtype_name(before),
                         hvd_dtype_size(dtype) < 0 ? "an unknown dtype"
                                                   : hvd_dtype_name(dtype));
    if (divisor == 0 || !isfinite(divisor))
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: \"%s\" cannot be divided by %g", name,
                         divisor);
    hvd_dataset *set = node_make(&cast_kind, 1, &dataset, sizeof(struct cast));
    if (!set)
        return NULL;
    *(struct cast *)set->parameters =
        (struct cast){i, divisor, find_inverse((float)divisor)};
    memcpy(components, set->components, sizeof components);
    components[i].dtype = dtype;
    return node_components(set, set->ncomponents, components);
}

hvd_dataset *hvd_dataset_reshape(hvd_dataset *dataset, const char *name,
                                 int32_t ndim, const int64_t *shape)
{
    hvd_component components[HVD_MAX_COMPONENTS];
    int32_t i = find_component(dataset, name, "reshape");
    int64_t before;

    if (i < 0)
        return NULL;
    if (ndim < 0 || ndim > HVD_MAX_COMPONENT_DIMS || (ndim > 0 && !shape))
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: reshape to %d dimensions, expected 0 to %d",
                         (int)ndim, HVD_MAX_COMPONENT_DIMS);
    hvd_dataset *set = node_make(&reshape_kind, 1, &dataset, 0);
    if (!set)
        return NULL;
    before = component_count(&set->components[i]);
    memcpy(components, set->components, sizeof components);
    components[i].ndim = ndim;
    for (int32_t k = 0; k < ndim; k++)
        components[i].shape[k] = shape[k];
    set = node_components(set, set->ncomponents, components);
    if (set && component_count(&set->components[i]) != before)
        return node_fail(set, HVD_ERR_MISMATCH,
                         "data set: reshape of \"%s\" from %lld numbers to "
                         "%lld",
                         name, (long long)before,
                         (long long)component_count(&set->components[i]));
    return set;
}
