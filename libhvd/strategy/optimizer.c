/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer.c - the optimisers: SGD, momentum, Adam, or none of them.
 * gradients.c applies them.
 *
 * Every rank applies the same updates to the same values, and all must get the
 * same bits. So there is one version of each loop, compiled for the baseline of
 * the architecture: with fused multiply-add where a processor has it, ranks on
 * different processors would drift apart.
 *
 * Scalars are computed in double, arrays in float32.
 */
#include "strategy/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/status.h"

/* X(constant, name, arrays of state) */
#define OPTIMIZERS(X)                                                          \
    X(HVD_SGD, "sgd", 0)                                                       \
    X(HVD_MOMENTUM, "momentum", 1)                                             \
    X(HVD_ADAM, "adam", 2)                                                     \
    X(HVD_NO_OPTIMIZER, "none", 0)

const char *hvd_optimizer_name(hvd_optimizer optimizer)
{
    switch (optimizer) {
#define X(constant, name, states)                                              \
    case constant: return name;
        OPTIMIZERS(X)
#undef X
    default: return NULL;
    }
}

int hvd_optimizer_from_name(const char *name)
{
    if (!name)
        return hvd__fail(HVD_ERR_ARGUMENT, "the name of an optimizer is NULL");
#define X(constant, text, states)                                              \
    if (strcmp(name, text) == 0)                                               \
        return constant;
    OPTIMIZERS(X)
#undef X
    return hvd__fail(HVD_ERR_ARGUMENT,
                     "there is no optimizer '%s': sgd, momentum, adam or none",
                     name);
}

int hvd__optimizer_states(hvd_optimizer optimizer)
{
#define X(constant, name, states) [constant] = (states),
    static const int states_of[] = {OPTIMIZERS(X)};
#undef X

    return hvd_optimizer_name(optimizer) ? states_of[optimizer] : 0;
}

int hvd__optimizer_check_rate(double rate)
{
    if (!(rate >= 0) || !isfinite(rate))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "learning rate %g: give a finite number, 0 or more",
                         rate);
    return HVD_OK;
}

static int check_decay(const char *name, double value)
{
    if (!(value >= 0) || value >= 1)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%s %g: give a number of at least 0, less than 1",
                         name, value);
    return HVD_OK;
}

int hvd__optimizer_check(const hvd_strategy_options *options)
{
    if (!hvd_optimizer_name(options->optimizer))
        return hvd__fail(HVD_ERR_ARGUMENT, "optimizer %d is none (0 to %d)",
                         (int)options->optimizer, HVD_NUM_OPTIMIZERS - 1);
    HVD_TRY(hvd__optimizer_check_rate(options->learning_rate));
    HVD_TRY(check_decay("momentum", options->momentum));
    HVD_TRY(check_decay("beta1", options->beta1));
    HVD_TRY(check_decay("beta2", options->beta2));
    if (!(options->epsilon >= 0) || !isfinite(options->epsilon))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "epsilon %g: give a finite number, 0 or more",
                         options->epsilon);
    return HVD_OK;
}

static void sgd(float rate, float *restrict value,
                const float *restrict gradient, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        value[i] -= rate * gradient[i];
}

static void momentum(float rate, float decay, float *restrict value,
                     const float *restrict gradient, float *restrict velocity,
                     int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        velocity[i] = decay * velocity[i] + gradient[i];
        value[i] -= rate * velocity[i];
    }
}

/* The bias corrections of algorithm 1 become two factors: rate / (1 - beta1^t),
 * and 1 / sqrt(1 - beta2^t) for the root. */
static void adam(const hvd_strategy_options *options, int64_t step,
                 float *restrict value, const float *restrict gradient,
                 float *restrict first, float *restrict second, int64_t count)
{
    const float beta1 = (float)options->beta1, beta2 = (float)options->beta2;
    const float keep1 = (float)(1 - options->beta1);
    const float keep2 = (float)(1 - options->beta2);
    const float epsilon = (float)options->epsilon;
    const float rate = (float)(options->learning_rate /
                               (1 - pow(options->beta1, (double)step)));
    const float root = (float)(1 / sqrt(1 - pow(options->beta2, (double)step)));

    for (int64_t i = 0; i < count; i++) {
        first[i] = beta1 * first[i] + keep1 * gradient[i];
        second[i] = beta2 * second[i] + keep2 * gradient[i] * gradient[i];
        value[i] -= rate * first[i] / (sqrtf(second[i]) * root + epsilon);
    }
}

void hvd__optimizer_apply(const hvd_strategy_options *options, int64_t step,
                          float *value, const float *gradient,
                          float *const *states, int64_t count)
{
    float rate = (float)options->learning_rate;

    switch (options->optimizer) {
    case HVD_NO_OPTIMIZER: break;
    case HVD_SGD: sgd(rate, value, gradient, count); break;
    case HVD_MOMENTUM:
        momentum(rate, (float)options->momentum, value, gradient, states[0],
                 count);
        break;
    default:
        adam(options, step, value, gradient, states[0], states[1], count);
        break;
    }
}
