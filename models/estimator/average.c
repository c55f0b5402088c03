/* SPDX-License-Identifier: Apache-2.0 */
/*
 * average.c - running averages of the trained variables, on the host:
 *
 *     average += (1 - decay) (variable - average)
 *
 * after each update that is not skipped. All ranks have the same variables, and
 * so the same averages, without a message. They begin as copies. Statistics are
 * averages already: theirs are the statistics themselves.
 */
#include "estimator/estimator.h"
#include "net/make.h"
#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

static int64_t elements_of(const hvd_estimator *e, int i)
{
    const int64_t *shape;
    int64_t count = 0;
    int32_t ndim;

    net_variable(trainer_model(e->trainer), i, &ndim, &shape, &count);
    return count;
}

int averages_init(hvd_estimator *e)
{
    const struct model *m = trainer_model(e->trainer);
    const int trained = net_trained(m);
    const int64_t *shape;
    int64_t count;
    int32_t ndim;
    int all = trained;

    if (e->options.ema_decay == 0)
        return 0;
    while (net_variable(m, all, &ndim, &shape, &count))
        all++;
    e->averages = calloc((size_t)all + 1, sizeof *e->averages);
    for (int i = 0; e->averages && i < all; i++) {
        e->averages[i] =
            i < trained ? malloc((size_t)elements_of(e, i) * sizeof(float) + 1)
                        : trainer_values(e->trainer)[i];
        if (!e->averages[i])
            break;
        e->naveraged = i < trained ? i + 1 : trained;
    }
    return e->naveraged == trained && e->averages
               ? 0
               : problem_fail(HVD_ERR_MEMORY, "no memory for averages");
}

void averages_fini(hvd_estimator *e)
{
    for (int i = 0; i < e->naveraged; i++)
        free(e->averages[i]);
    free(e->averages);
    e->averages = NULL;
    e->naveraged = 0;
}

void averages_start(hvd_estimator *e)
{
    for (int i = 0; i < e->naveraged && e->numbers[NUMBER_AVERAGED] == 0; i++)
        memcpy(e->averages[i], trainer_values(e->trainer)[i],
               (size_t)elements_of(e, i) * sizeof(float));
}

void averages_update(hvd_estimator *e)
{
    const double n = e->numbers[NUMBER_AVERAGED];
    double decay = e->options.ema_decay;
    float share;

    if (e->options.ema_warmup && (1 + n) / (10 + n) < decay)
        decay = (1 + n) / (10 + n);
    share = (float)(1 - decay);
    for (int i = 0; i < e->naveraged; i++) {
        const float *now = trainer_values(e->trainer)[i];
        const int64_t count = elements_of(e, i);
        float *average = e->averages[i];

        for (int64_t k = 0; k < count; k++)
            average[k] += share * (now[k] - average[k]);
    }
    e->numbers[NUMBER_AVERAGED] += e->naveraged > 0;
}
