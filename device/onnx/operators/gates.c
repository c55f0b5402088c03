/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gates.c - the activations of recurrent operators. The lists of alpha and beta
 * have a number for each activation that takes one, in the order of the
 * activations; those beyond their ends have the values by default.
 */
#include "onnx/operators/gates.h"

#include <strings.h>

struct onnx__activation {
    const char *name;
    ipu_tensor (*apply)(ipu_graph *g, ipu_tensor x, double alpha, double beta);
    bool takes_alpha, takes_beta;
    double alpha, beta; /* by default */
};

static ipu_tensor affine(ipu_graph *g, ipu_tensor x, double alpha, double beta)
{
    return ipu_scale(g, x, alpha, beta);
}

static ipu_tensor elu(ipu_graph *g, ipu_tensor x, double alpha, double beta)
{
    (void)beta;
    return ipu_elu(g, x, alpha);
}

static ipu_tensor hard_sigmoid(ipu_graph *g, ipu_tensor x, double alpha,
                               double beta)
{
    return ipu_clip(g, ipu_scale(g, x, alpha, beta), 0, 1);
}

static ipu_tensor leaky_relu(ipu_graph *g, ipu_tensor x, double alpha,
                             double beta)
{
    (void)beta;
    return ipu_leaky_relu(g, x, alpha);
}

static ipu_tensor relu(ipu_graph *g, ipu_tensor x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return ipu_relu(g, x);
}

static ipu_tensor scaled_tanh(ipu_graph *g, ipu_tensor x, double alpha,
                              double beta)
{
    return ipu_scale(g, ipu_tanh(g, ipu_scale(g, x, beta, 0)), alpha, 0);
}

static ipu_tensor sigmoid(ipu_graph *g, ipu_tensor x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return ipu_sigmoid(g, x);
}

static ipu_tensor softplus(ipu_graph *g, ipu_tensor x, double alpha,
                           double beta)
{
    (void)alpha, (void)beta;
    return ipu_softplus(g, x);
}

static ipu_tensor softsign(ipu_graph *g, ipu_tensor x, double alpha,
                           double beta)
{
    (void)alpha, (void)beta;
    return ipu_divide(g, x, ipu_scale(g, ipu_abs(g, x), 1, 1));
}

static ipu_tensor tanh_of(ipu_graph *g, ipu_tensor x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return ipu_tanh(g, x);
}

/* x above alpha, and 0 elsewhere. */
static ipu_tensor thresholded_relu(ipu_graph *g, ipu_tensor x, double alpha,
                                   double beta)
{
    ipu_dtype dtype = IPU_FLOAT32;
    ipu_tensor none, least;

    (void)beta;
    ipu_tensor_info(g, x, &dtype, NULL, NULL);
    none = ipu_fill(g, dtype, 0, NULL, 0);
    least = ipu_fill(g, dtype, 0, NULL, alpha);
    return ipu_select(g, ipu_greater(g, x, least), x, none);
}

static const struct onnx__activation activations[] = {
    {"Affine", affine, true, true, 1, 0},
    {"Elu", elu, true, false, 1, 0},
    {"HardSigmoid", hard_sigmoid, true, true, 0.2, 0.5},
    {"LeakyRelu", leaky_relu, true, false, 0.01, 0},
    {"Relu", relu, false, false, 0, 0},
    {"ScaledTanh", scaled_tanh, true, true, 1, 1},
    {"Sigmoid", sigmoid, false, false, 0, 0},
    {"Softplus", softplus, false, false, 0, 0},
    {"Softsign", softsign, false, false, 0, 0},
    {"Tanh", tanh_of, false, false, 0, 0},
    {"ThresholdedRelu", thresholded_relu, true, false, 1, 0},
};

enum { ACTIVATIONS = sizeof activations / sizeof *activations };

static const struct onnx__activation *find_activation(const char *name)
{
    for (int i = 0; i < ACTIVATIONS; i++)
        if (!strcasecmp(activations[i].name, name))
            return &activations[i];
    return NULL;
}

/* Returns the next number of a list, or the other beyond its end. */
static double next_of(const struct ipu__onnx_floats *list, size_t *at,
                      double other)
{
    return list && *at < list->count ? (double)list->at[(*at)++] : other;
}

int onnx__read_gates(struct ipu__onnx_call *call, int directions,
                     int each_count, const char *const *names,
                     struct onnx__gate *gates)
{
    const struct ipu__onnx_texts *texts = onnx__texts(call, "activations");
    const struct ipu__onnx_floats *alphas =
        onnx__floats(call, "activation_alpha");
    const struct ipu__onnx_floats *betas =
        onnx__floats(call, "activation_beta");
    double clip = onnx__float(call, "clip", 0);
    int count = directions * each_count;
    size_t alpha = 0, beta = 0;

    if (texts && texts->count != (size_t)count)
        return onnx__refuse(call, "it has %zu activations instead of %d",
                            texts->count, count);
    if (!(clip >= 0))
        return onnx__refuse(call, "clip is negative");
    for (int i = 0; i < count; i++) {
        const char *name = texts ? texts->at[i] : names[i % each_count];
        const struct onnx__activation *a = find_activation(name);

        if (!a)
            return onnx__refuse(call, "there is no activation '%.60s'", name);
        gates[i] = (struct onnx__gate){a, a->alpha, a->beta, clip};
        if (a->takes_alpha)
            gates[i].alpha = next_of(alphas, &alpha, a->alpha);
        if (a->takes_beta)
            gates[i].beta = next_of(betas, &beta, a->beta);
    }
    return IPU_OK;
}

ipu_tensor onnx__activate(ipu_graph *g, const struct onnx__gate *gate,
                          ipu_tensor x)
{
    if (gate->clip > 0)
        x = ipu_clip(g, x, -gate->clip, gate->clip);
    return gate->activation->apply(g, x, gate->alpha, gate->beta);
}
