/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload.c - which variables lie in the DRAM beside the chip.
 *
 * Those that only an update region uses: read there and nowhere else, assigned
 * there or not at all. An optimiser's state is such; the weights, which the
 * forward pass reads, and accumulators, which each run writes, are not. They
 * are on the chip from the step that first reads them until they have been
 * stored, one after the other, and not while the rest of the program runs.
 *
 * Small ones stay: a transfer takes its latency however few bytes it has.
 */
#include "compiler/program.h"
#include "graph/error.h"

enum { USUAL_BYTES = 128 };

/* What is known of a variable: in which region it is used (+ 1); or that it
 * stays. */
enum { UNUSED = 0, STAYS = -1 };

static void note_use(int32_t *use, int32_t region)
{
    if (region == 0 || (*use != UNUSED && *use != region))
        *use = STAYS;
    else
        *use = region;
}

static int32_t use_of(const ipu_graph *g, int32_t tensor)
{
    int32_t use = UNUSED;

    for (int32_t n = 0; n < g->nnodes && use != STAYS; n++)
        for (int i = 0; i < g->nodes[n].op->ninputs; i++)
            if (g->nodes[n].inputs[i] == tensor)
                note_use(&use, g->nodes[n].region);
    for (int32_t i = 0; i < g->nassigns; i++)
        if (g->assigns[i].variable == tensor)
            note_use(&use, ipu__tensor_region(g, g->assigns[i].value));
    for (int32_t i = 0; i < g->nsinks; i++)
        if (g->sinks[i].tensor == tensor && g->sinks[i].fn)
            use = STAYS; /* the host sees it in each run */
    return use;
}

static bool wants(const struct ipu__region *region, const ipu_target *target,
                  const struct ipu__shape *shape)
{
    int64_t least =
        region->minimum_bytes > 0 ? region->minimum_bytes : USUAL_BYTES;

    return region->offload != IPU_OFFLOAD_OFF &&
           target->streaming_bytes_per_second > 0 &&
           (int64_t)ipu__shape_bytes(shape) >= least;
}

int ipu__choose_remote(const ipu_graph *g, const ipu_target *target,
                       bool *remote)
{
    if (g->nregions == 0)
        return IPU_OK;
    for (int32_t r = 0; r < g->nregions; r++)
        if (g->regions[r].offload == IPU_OFFLOAD_ON &&
            !(target->streaming_bytes_per_second > 0))
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "compile: variables of the update are to be kept "
                             "beside the chip, but '%s' has no streaming "
                             "memory: do not ask for it, or take another "
                             "target",
                             target->name);
    for (int32_t t = 0; t < g->ntensors; t++) {
        int32_t use;

        if (g->tensors[t].kind != IPU__VARIABLE || g->tensors[t].fixed ||
            g->tensors[t].remote || g->tensors[t].renews ||
            g->tensors[t].renewed)
            continue;
        use = use_of(g, t);
        remote[t] = use > 0 &&
                    wants(&g->regions[use - 1], target, &g->tensors[t].shape);
    }
    return IPU_OK;
}
