/* SPDX-License-Identifier: Apache-2.0 */
/*
 * textbook.h - the optimisers of hvd_strategy.h, which the device has, too, in
 * double, a formula each, for comparison.
 */
#ifndef TESTS_TEXTBOOK_H
#define TESTS_TEXTBOOK_H

#include <math.h>
#include <stdbool.h>

#include "hvd_strategy.h"

/* A variable and what optimisers keep of it; each is [count]. */
struct textbook {
    double *w, *m, *v, *b;
};

static inline double textbook_length(const double *x, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static inline double textbook_ratio(double a, double b, double p, double q)
{
    return p > 0 && q > 0 ? a / b : 1;
}

/* Returns what the rate is multiplied by; g: with the decay that is coupled. */
static inline double textbook_direction(const hvd_strategy_options *o, int t,
                                        double g, double *m, double *v,
                                        double *b)
{
    double u;

    switch (o->optimizer) {
    case HVD_MOMENTUM:
    case HVD_LARS: return *m = o->momentum * *m + g;
    case HVD_NESTEROV: *m = o->momentum * *m + g; return g + o->momentum * *m;
    case HVD_ADAM:
    case HVD_ADAMW:
    case HVD_LAMB:
        *m = o->beta1 * *m + (1 - o->beta1) * g;
        *v = o->beta2 * *v + (1 - o->beta2) * g * g;
        return *m / (1 - pow(o->beta1, t)) /
               (sqrt(*v / (1 - pow(o->beta2, t))) + o->epsilon);
    case HVD_LION:
        u = o->beta1 * *m + (1 - o->beta1) * g;
        *m = o->beta2 * *m + (1 - o->beta2) * g;
        return (u > 0) - (u < 0);
    case HVD_RMSPROP:
        *v = o->rho * *v + (1 - o->rho) * g * g;
        *m = o->rho * *m + (1 - o->rho) * g;
        u = g / (sqrt(*v - (o->centered ? *m * *m : 0)) + o->epsilon);
        return *b = o->momentum * *b + u;
    case HVD_ADAGRAD: *v += g * g; return g / (sqrt(*v) + o->epsilon);
    case HVD_ADADELTA:
        *v = o->rho * *v + (1 - o->rho) * g * g;
        u = g * sqrt(*m + o->epsilon) / sqrt(*v + o->epsilon);
        *m = o->rho * *m + (1 - o->rho) * u * u;
        return u;
    default: return g;
    }
}

/* Makes step t, from 1. direction: [count], scratch. */
static inline void textbook_step(const hvd_strategy_options *o, int t,
                                 bool spared, const struct textbook *b,
                                 const double *g, double *direction,
                                 int64_t count)
{
    bool coupled = o->optimizer <= HVD_NESTEROV || o->optimizer == HVD_LARS;
    double decay = spared ? 0 : o->weight_decay, ratio = 1;
    double w = textbook_length(b->w, count), length = textbook_length(g, count);

    if (o->optimizer == HVD_NO_OPTIMIZER)
        return;
    if (o->optimizer == HVD_LARS && !spared)
        ratio = textbook_ratio(o->trust * w, length + decay * w + o->epsilon, w,
                               length);
    for (int64_t i = 0; i < count; i++) {
        direction[i] = textbook_direction(
            o, t, ratio * (g[i] + (coupled ? decay * b->w[i] : 0)), &b->m[i],
            &b->v[i], &b->b[i]);
        direction[i] += coupled ? 0 : decay * b->w[i];
    }
    length = textbook_length(direction, count);
    ratio = o->optimizer == HVD_LAMB ? textbook_ratio(w, length, w, length) : 1;
    for (int64_t i = 0; i < count; i++)
        b->w[i] -= o->learning_rate * ratio * direction[i];
}

#endif
