/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizers.c - Momentum, Adagrad and Adam of the set
 * ai.onnx.preview.training: what a step makes of tensors. They assign nothing:
 * the new tensors are outputs.
 *
 * R is the rate and T the number of the step, from 0 on. For each of n tensors
 * X there are a gradient G and one or two tensors of state:
 *
 *     G = G + norm_coefficient X
 *     Momentum    V' = alpha V + (T > 0 ? beta : 1) G
 *                 X' = X - R V'       or, of Nesterov, X - R (G + alpha V')
 *     Adagrad     H' = H + G^2
 *                 X' = X - R / (1 + T decay_factor) G / (sqrt(H') + epsilon)
 *     Adam        V' = alpha V + (1 - alpha) G
 *                 H' = beta H + (1 - beta) G^2
 *                 X' = (1 - norm_coefficient_post)
 *                      (X - R' V' / (sqrt(H') + epsilon))
 *                 R' = R, and from T = 1 on R sqrt(1 - beta^T) / (1 - alpha^T)
 */
#include <math.h>

#include "onnx/operators/rows.h"

enum { RATE, STEP, TENSORS };

/* A step of one tensor; state becomes the new one. */
struct step {
    struct ipu__onnx_call *call;
    ipu_graph *g;
    ipu_tensor rate, first; /* first: 1 in step 0, else 0; int32 scalar */
    ipu_tensor number;      /* of the step, float32 scalar */
    ipu_tensor x, gradient, state[2];
};

/* An optimiser: the properties in which one differs from another. */
struct optimizer {
    int states; /* tensors of state */
    /* Sets the rate for all tensors; NULL: it stays. */
    void (*set_rate)(struct step *s);
    /* Returns the new x. */
    ipu_tensor (*update)(struct step *s);
};

static ipu_tensor scalar(const struct step *s, double value)
{
    return ipu_fill(s->g, IPU_FLOAT32, 0, NULL, value);
}

/* Returns a x + b y. */
static ipu_tensor mix(const struct step *s, double a, ipu_tensor x, double b,
                      ipu_tensor y)
{
    return ipu_add(s->g, ipu_scale(s->g, x, a, 0), ipu_scale(s->g, y, b, 0));
}

/* Returns direction / (sqrt(squares) + epsilon). */
static ipu_tensor divide_by_root(const struct step *s, ipu_tensor direction,
                                 ipu_tensor squares)
{
    double epsilon = onnx__float(s->call, "epsilon", 1e-6);

    return ipu_divide(s->g, direction,
                      ipu_scale(s->g, ipu_sqrt(s->g, squares), 1, epsilon));
}

static ipu_tensor descend(const struct step *s, ipu_tensor direction)
{
    return ipu_subtract(s->g, s->x, ipu_multiply(s->g, s->rate, direction));
}

static ipu_tensor update_momentum(struct step *s)
{
    double alpha = onnx__float(s->call, "alpha", 0);
    double beta = onnx__float(s->call, "beta", 0);
    ipu_tensor share =
        ipu_select(s->g, s->first, scalar(s, 1), scalar(s, beta));

    s->state[0] = ipu_add(s->g, ipu_scale(s->g, s->state[0], alpha, 0),
                          ipu_multiply(s->g, share, s->gradient));
    if (onnx__text_is(s->call, "mode", "nesterov", ""))
        return descend(s, mix(s, 1, s->gradient, alpha, s->state[0]));
    return descend(s, s->state[0]);
}

static void decay_rate(struct step *s)
{
    double decay = onnx__float(s->call, "decay_factor", 0);

    s->rate = ipu_divide(s->g, s->rate, ipu_scale(s->g, s->number, decay, 1));
}

static ipu_tensor update_adagrad(struct step *s)
{
    s->state[0] = ipu_add(s->g, s->state[0], ipu_square(s->g, s->gradient));
    return descend(s, divide_by_root(s, s->gradient, s->state[0]));
}

/* Returns 1 - base^T. */
static ipu_tensor rest_of(const struct step *s, double base)
{
    ipu_tensor power =
        base > 0 ? ipu_exp(s->g, ipu_scale(s->g, s->number, log(base), 0))
                 : scalar(s, 0);

    return ipu_scale(s->g, power, -1, 1);
}

static void correct_rate(struct step *s)
{
    double alpha = onnx__float(s->call, "alpha", 0.9);
    double beta = onnx__float(s->call, "beta", 0.999);
    ipu_tensor one = scalar(s, 1);
    ipu_tensor root = ipu_sqrt(s->g, rest_of(s, beta));
    /* Nothing is divided by 0 in step 0. */
    ipu_tensor rest = ipu_select(s->g, s->first, one, rest_of(s, alpha));
    ipu_tensor factor =
        ipu_select(s->g, s->first, one, ipu_divide(s->g, root, rest));

    s->rate = ipu_multiply(s->g, s->rate, factor);
}

static ipu_tensor update_adam(struct step *s)
{
    double alpha = onnx__float(s->call, "alpha", 0.9);
    double beta = onnx__float(s->call, "beta", 0.999);
    double after = onnx__float(s->call, "norm_coefficient_post", 0);
    ipu_tensor x;

    s->state[0] = mix(s, alpha, s->state[0], 1 - alpha, s->gradient);
    s->state[1] =
        mix(s, beta, s->state[1], 1 - beta, ipu_square(s->g, s->gradient));
    x = descend(s, divide_by_root(s, s->state[0], s->state[1]));
    return after == 0 ? x : ipu_scale(s->g, x, 1 - after, 0);
}

/* Checks the numbers and shapes of inputs; returns how many tensors there are,
 * or negative. */
static int count_tensors(struct ipu__onnx_call *call,
                         const struct optimizer *optimizer)
{
    int each = 2 + optimizer->states, n = (call->ninputs - TENSORS) / each;

    if (n < 1 || call->ninputs != TENSORS + n * each ||
        call->noutputs > n * (each - 1))
        return onnx__refuse(call, "it has %d inputs and %d outputs",
                            call->ninputs, call->noutputs);
    for (int i = 0; i < call->ninputs; i++)
        if (!call->inputs[i])
            return onnx__refuse(call, "its input %d is missing", i);
    if (onnx__size(call->inputs[RATE]) != 1 ||
        onnx__size(call->inputs[STEP]) != 1 ||
        !onnx__is_whole(call->inputs[STEP]->type))
        return onnx__refuse(call, "its rate or step is not one number");
    IPU_TRY(onnx__want_floats(call, RATE));
    for (int i = TENSORS; i < call->ninputs; i++) {
        const struct ipu__onnx_value *x =
            call->inputs[TENSORS + (i - TENSORS) % n];

        IPU_TRY(onnx__want_floats(call, i));
        if (!onnx__same_shape(x, call->inputs[i]))
            return onnx__refuse(call,
                                "its input %d has another shape than "
                                "its tensor",
                                i);
    }
    return n;
}

static int step_tensor(struct step *s, const struct optimizer *optimizer, int i,
                       int n)
{
    struct ipu__onnx_value *const *in = s->call->inputs + TENSORS + i;
    double norm = onnx__float(s->call, "norm_coefficient", 0);

    s->x = onnx__tensor(s->call, in[0]);
    s->gradient = onnx__tensor(s->call, in[n]);
    if (norm != 0)
        s->gradient = mix(s, norm, s->x, 1, s->gradient);
    for (int k = 0; k < optimizer->states; k++)
        s->state[k] = onnx__tensor(s->call, in[(2 + k) * n]);
    IPU_TRY(onnx__give(s->call, i, in[0]->type, optimizer->update(s)));
    for (int k = 0; k < optimizer->states; k++)
        IPU_TRY(onnx__give(s->call, (1 + k) * n + i, in[0]->type, s->state[k]));
    return IPU_OK;
}

static int build_optimizer(struct ipu__onnx_call *call)
{
    const struct optimizer *optimizer = call->op->how;
    struct step s = {.call = call, .g = call->graph};
    int n = count_tensors(call, optimizer);
    ipu_tensor number;

    IPU_TRY(n);
    s.rate = ipu_reshape(s.g, onnx__tensor(call, call->inputs[RATE]), 0, NULL);
    number = ipu_reshape(s.g, onnx__tensor(call, call->inputs[STEP]), 0, NULL);
    s.number = ipu_cast(s.g, number, IPU_FLOAT32);
    s.first = ipu_less(s.g, number, ipu_fill(s.g, IPU_INT32, 0, NULL, 1));
    if (optimizer->set_rate)
        optimizer->set_rate(&s);
    for (int i = 0; i < n; i++)
        IPU_TRY(step_tensor(&s, optimizer, i, n));
    return IPU_OK;
}

static int build_momentum(struct ipu__onnx_call *call)
{
    if (!onnx__text_is(call, "mode", "standard", "") &&
        !onnx__text_is(call, "mode", "nesterov", ""))
        return onnx__refuse(call, "there is no such mode");
    return build_optimizer(call);
}

static const struct optimizer momentum = {1, NULL, update_momentum};
static const struct optimizer adagrad = {1, decay_rate, update_adagrad};
static const struct optimizer adam = {2, correct_rate, update_adam};

const struct ipu__onnx_operator onnx__optimizer_rows[] = {
    {"Adagrad", 1, "decay_factor epsilon norm_coefficient", 5,
     IPU__ONNX_ANY_NUMBER, build_optimizer, &adagrad, NULL},
    {"Adam", 1, "alpha beta epsilon norm_coefficient norm_coefficient_post", 6,
     IPU__ONNX_ANY_NUMBER, build_optimizer, &adam, NULL},
    {"Momentum", 1, "alpha beta mode norm_coefficient", 5, IPU__ONNX_ANY_NUMBER,
     build_momentum, &momentum, NULL},
    {.name = NULL},
};
