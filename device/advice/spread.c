/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spread.c - measures the remedies that spread a program over several chips.
 * balance.c proposes where to cut, each proposal is compiled as shards or as a
 * pipeline, and what the chosen one takes is the remedy. remedy.c calls it.
 */
#include "advice/remedy.h"
#include "base/error.h"

struct spread {
    const struct ipu__trial *trial;
    ipu_remedy tried; /* kind and parts */
    ipu_remedy best;  /* of the last cut that fits, or the last */
};

static int measure_shards(struct spread *s, const ipu_graph *g)
{
    ipu_executable *e = NULL;
    int status;

    IPU_TRY(ipu__compile_trial(s->trial, g, 0, &e));
    status = ipu__remedy_of(e, g, &s->tried);
    ipu_executable_free(e);
    return status;
}

static int measure_pipeline(struct spread *s, const ipu_graph *g)
{
    const ipu_target target = ipu__trial_target(s->trial);
    struct ipu__pipeline_cost cost;
    ipu_remedy *r = &s->tried;
    int status = ipu__measure_stages(s->trial, g, &target, r->parts,
                                     IPU__BATCHES_PER_STAGE * r->parts, &cost);

    if (status < 0)
        return status == IPU_ERR_MEMORY || status == IPU_ERR_CALLBACK
                   ? status
                   : ipu__fail(IPU_ERR_STATE, "%s", ipu_last_error());
    r->runs = 1;
    r->bytes_per_tile = target.bytes_per_tile;
    r->tile_bytes = cost.tile_bytes;
    r->remote_bytes = cost.remote_bytes;
    r->cycles = cost.cycles;
    r->streaming_cycles = cost.streaming_cycles;
    r->seconds = ipu_model_seconds(&target, cost.cycles);
    r->fits = r->tile_bytes <= r->bytes_per_tile;
    return IPU_OK;
}

static int judge(void *context, const ipu_graph *g)
{
    struct spread *s = context;

    IPU_TRY(s->tried.kind == IPU_REMEDY_PIPELINE ? measure_pipeline(s, g)
                                                 : measure_shards(s, g));
    if (s->tried.fits || !s->best.fits)
        s->best = s->tried;
    return s->tried.fits;
}

int ipu__measure_spread(const struct ipu__trial *trial, ipu_graph *graph,
                        ipu_remedy *remedy)
{
    struct spread s = {.trial = trial, .tried = *remedy};
    const struct ipu__balance how = {.trial = trial,
                                     .stages =
                                         remedy->kind == IPU_REMEDY_PIPELINE,
                                     .judge = judge,
                                     .context = &s};

    IPU_TRY(ipu__balance(&how, graph, remedy->parts));
    *remedy = s.best;
    return IPU_OK;
}
