/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline in a profile: its programs, and what ran when. */
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/pipeline.h"

static int add(ipu_profile *profile, const char *name, const char *direction,
               int32_t ipu, const ipu_executable *executable,
               const ipu_engine *engine)
{
    char text[128];

    if (!executable)
        return IPU_OK;
    snprintf(text, sizeof text, "%.80s %s", name, direction);
    return ipu_profile_add(profile, text, ipu, executable, engine);
}

static int add_programs(const ipu_pipeline *p, ipu_profile *profile)
{
    const struct ipu__copy *copy = &p->copies[0];
    char text[64];

    for (int32_t i = 0; i < p->nparts; i++) {
        const struct ipu__part *part = &p->parts[i];

        IPU_TRY(add(profile, part->name, "forward", part->ipu, part->forward,
                    copy->forward[i]));
        IPU_TRY(add(profile, part->name, "backward", part->ipu, part->backward,
                    copy->backward[i]));
    }
    for (int32_t c = 0; c < p->nchips; c++) {
        snprintf(text, sizeof text, "IPU %d", (int)p->chips[c].ipu);
        IPU_TRY(add(profile, "update on", text, p->chips[c].ipu,
                    p->chips[c].update, copy->update[c]));
    }
    return IPU_OK;
}

static int add_events(const ipu_pipeline *p, ipu_profile *profile)
{
    ipu_pipeline_slot *slots = calloc((size_t)p->nevents + 1, sizeof *slots);
    int status;

    if (!slots)
        return ipu__fail_memory((size_t)p->nevents * sizeof *slots);
    for (int64_t i = 0; i < p->nevents; i++) {
        const ipu_pipeline_event *e = &p->events[i];
        bool update = e->kind == IPU_STAGE_UPDATE;

        slots[i] = (ipu_pipeline_slot){
            .ipu = e->ipu,
            .slot = (int32_t)e->slot,
            .stage = update ? 0 : e->stage,
            .kind = e->kind,
            .mini_batch = update ? -1 : (int32_t)e->mini_batch,
            .cycles = e->cycles,
        };
    }
    status = ipu_profile_set_pipeline(profile, (int32_t)p->nevents, slots);
    free(slots);
    return status;
}

int ipu_pipeline_profile(const ipu_pipeline *pipeline, ipu_profile *profile)
{
    if (!pipeline || !profile)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s is NULL",
                         pipeline ? "the profile" : "the pipeline");
    IPU_TRY(add_programs(pipeline, profile));
    return pipeline->nevents > 0 ? add_events(pipeline, profile) : IPU_OK;
}
