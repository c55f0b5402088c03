/* SPDX-License-Identifier: Apache-2.0 */
/* losses.h - the mean of what a pipeline's last stage gives out first. */
#ifndef MODELS_LOSSES_H
#define MODELS_LOSSES_H

#include <stdint.h>
#include <string.h>

/* Zeroed is none yet. */
struct losses {
    double sum;
    int64_t count;
};

/* A pipeline's sink, whose context they are: data[0] is a float32. */
static inline int losses_take(void *context, int32_t replica,
                              int64_t mini_batch, int32_t count,
                              const void *const *data)
{
    struct losses *losses = context;
    float loss;

    (void)replica, (void)mini_batch, (void)count;
    memcpy(&loss, data[0], sizeof loss);
    losses->sum += (double)loss;
    losses->count++;
    return 0;
}

static inline double losses_mean(const struct losses *losses)
{
    return losses->count ? losses->sum / (double)losses->count : 0;
}

#endif
