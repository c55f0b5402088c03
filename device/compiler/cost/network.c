/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c - how long a program waits for the device's network.
 *
 * The network does one collective after the other, in the order in which they
 * start, while the steps after the start compute. The step that needs a result
 * waits for what is then left.
 */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "compiler/passes.h"
#include "compiler/program.h"
#include "ops/transfers/network.h"

int64_t ipu__network_cycles(const struct ipu_executable *e,
                            const struct ipu__step *step)
{
    return llround(
        ceil(ipu__network_seconds(&step->attributes) * e->target.clock_hz));
}

static bool has_network(const struct ipu_executable *e)
{
    for (int32_t i = 0; i < e->nsteps; i++)
        if (e->steps[i].op && e->steps[i].op->network)
            return true;
    return false;
}

/* Counts the cycles for which a step waits until the network is done at
 * cycle end of the run. */
static void count_wait(struct ipu__step *step, int64_t now, int64_t end)
{
    step->cycles.exchange = end > now ? end - now : 0;
    step->cycles.total =
        step->cycles.compute + step->cycles.exchange + step->cycles.sync;
    if (step->attributes.size > 1)
        step->cycles.estimate = "the latency of the network is an assumption";
}

int ipu__network_cost(struct ipu_executable *e)
{
    int64_t *ends, now = 0, idle = 0; /* idle: when the network is free */

    if (!has_network(e))
        return IPU_OK;
    IPU_TRY(ipu__new_array(&ends, (size_t)e->nvalues, sizeof *ends));
    for (int32_t i = 0; i < e->nsteps; i++) {
        struct ipu__step *step = &e->steps[i];

        if (step->op && step->op->network == IPU__DEPARTS) {
            idle = now > idle ? now : idle;
            idle += ipu__network_cycles(e, step);
            ends[step->output] = idle;
        }
        if (step->op && step->op->network == IPU__ARRIVES)
            count_wait(step, now, ends[step->inputs[0]]);
        now += step->cycles.total;
    }
    free(ends);
    return IPU_OK;
}
