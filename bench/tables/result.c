/* SPDX-License-Identifier: Apache-2.0 */
#include "tables/result.h"

#include "tables/call.h"

#include <string.h>

const char *result_type(const struct result *result)
{
    return result->kind == HVD_BARRIER ? "none" : result->type->name;
}

const char *result_redop(const struct result *result)
{
    return result->op ? result->op->name : "none";
}

int result_root(const struct result *result)
{
    return call_has_root(result->kind) ? result->root : -1;
}

static double bandwidth(const struct result *result, double seconds)
{
    return seconds > 0 ? (double)result->bytes / seconds / 1e9 : 0;
}

static double bus_factor(const struct result *result, int nranks)
{
    return call_bus_factor(result->kind, nranks);
}

double result_algbw(const struct result *result, enum placement placement)
{
    return bandwidth(result, result->placements[placement].hvd.mean);
}

double result_busbw(const struct result *result, enum placement placement,
                    int nranks)
{
    return result_algbw(result, placement) * bus_factor(result, nranks);
}

double result_ratio(const struct result *result, enum placement placement)
{
    const struct measured *m = &result->placements[placement];

    return m->hvd.median > 0 ? m->mpi.median / m->hvd.median : 0;
}

double result_copy_bw(const struct result *result, enum placement placement)
{
    return bandwidth(result, result->placements[placement].copy.median);
}

double result_share(const struct result *result, enum placement placement,
                    int nranks)
{
    const struct measured *m = &result->placements[placement];

    return m->hvd.median > 0
               ? bus_factor(result, nranks) * m->copy.median / m->hvd.median
               : 0;
}

void result_summarize(const struct result *results, int n, int nranks,
                      struct summary *summary)
{
    struct stats_geomean ratios[PLACEMENTS];
    double sum = 0;

    memset(summary, 0, sizeof *summary);
    memset(ratios, 0, sizeof ratios);
    for (int i = 0; i < n; i++)
        for (int p = 0; p < PLACEMENTS; p++) {
            enum placement placement = (enum placement)p;
            int64_t nwrong = results[i].placements[p].nwrong;
            double busbw = result_busbw(&results[i], placement, nranks);

            summary->nwrong += nwrong > 0 ? nwrong : 0;
            sum += busbw;
            if (busbw > summary->peak_busbw)
                summary->peak_busbw = busbw;
            stats_geomean_add(&ratios[p], result_ratio(&results[i], placement));
        }
    summary->average_busbw = n > 0 ? sum / (PLACEMENTS * n) : 0;
    for (int p = 0; p < PLACEMENTS; p++)
        summary->ratio[p] = stats_geomean_value(&ratios[p]);
}
