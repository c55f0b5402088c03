/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - opens the stages of an iterator, and gets elements from them. */
#include "dataset/stage.h"

#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

size_t stage_lay_out(const struct stage *stage, char *base, void **at)
{
    size_t used = 0;

    for (int32_t i = 0; i < stage->set->ncomponents; i++) {
        if (base)
            at[i] = base + used;
        used += (stage->bytes[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return used;
}

static int open_inputs(struct stage *stage)
{
    const hvd_dataset *set = stage->set;
    const struct share *share = &stage->run->share;

    stage->inputs = calloc((size_t)set->ninputs + 1, sizeof *stage->inputs);
    if (!stage->inputs)
        return problem_fail(HVD_ERR_MEMORY, "data set: no memory for %s",
                            set->kind->name);
    for (int32_t i = 0; i < set->ninputs; i++) {
        if (is_merge(set) && share->by_file &&
            i % share->workers != share->worker)
            continue;
        int status = stage_open(set->inputs[i], stage->run,
                                &stage->inputs[stage->ninputs]);
        if (status < 0)
            return status;
        stage->room += stage->inputs[stage->ninputs++]->room;
    }
    return 0;
}

int stage_open(const hvd_dataset *set, struct run *run, struct stage **opened)
{
    struct stage *stage = calloc(1, sizeof *stage);

    if (!stage)
        return problem_fail(HVD_ERR_MEMORY, "data set: no memory for %s",
                            set->kind->name);
    stage->set = set;
    stage->run = run;
    for (int32_t i = 0; i < set->ncomponents; i++)
        stage->bytes[i] = component_bytes(&set->components[i]);
    int status = open_inputs(stage);
    if (status == 0) {
        stage->count = node_count(set, &run->share);
        /* What comes behind a batch has elements as large as it has. */
        if (set->batched && stage->ninputs > 0)
            memcpy(stage->bytes, stage->inputs[0]->bytes, sizeof stage->bytes);
        if (set->kind->open)
            status = set->kind->open(stage);
    }
    if (status == 0) {
        stage->room += stage_lay_out(stage, NULL, NULL);
        stage->scratch = aligned_alloc(ALIGNMENT, stage->room + ALIGNMENT);
        if (!stage->scratch)
            status = problem_fail(HVD_ERR_MEMORY,
                                  "data set: no memory for an element of %zu "
                                  "bytes",
                                  stage->room);
    }
    if (status < 0) {
        stage_close(stage);
        return status;
    }
    *opened = stage;
    return 0;
}

void stage_close(struct stage *stage)
{
    if (!stage)
        return;
    if (stage->set->kind->close)
        stage->set->kind->close(stage);
    for (int32_t i = 0; i < stage->ninputs; i++)
        stage_close(stage->inputs[i]);
    free(stage->inputs);
    free(stage->scratch);
    free(stage->state);
    free(stage);
}

int stage_begin(struct stage *stage, int64_t epoch)
{
    int status = 0;

    stage->position = 0;
    stage->epoch = epoch;
    if (stage->set->kind->begin)
        return stage->set->kind->begin(stage, epoch);
    for (int32_t i = 0; i < stage->ninputs && status == 0; i++)
        status = stage_begin(stage->inputs[i], epoch);
    return status;
}

struct stage *stage_find(struct stage *stage, int64_t *index)
{
    while (stage->set->kind->place)
        stage = stage->set->kind->place(stage, index);
    return stage;
}

int stage_look(struct stage *stage, int64_t index, char *room, const void **at)
{
    void *out[HVD_MAX_COMPONENTS];

    stage = stage_find(stage, &index);
    if (stage->set->kind->look)
        return stage->set->kind->look(stage, index, at);
    char *rest = room + stage_lay_out(stage, room, out);
    for (int32_t i = 0; i < stage->set->ncomponents; i++)
        at[i] = out[i];
    return stage->set->kind->get(stage, index, rest, out);
}

void stage_expect(struct stage *stage, int64_t index)
{
    const void *at[HVD_MAX_COMPONENTS];

    stage = stage_find(stage, &index);
    while (!stage->set->kind->look && stage->ninputs == 1)
        stage = stage_find(stage->inputs[0], &index);
    if (!stage->set->kind->look || stage->set->kind->look(stage, index, at) < 0)
        return;
    for (int32_t i = 0; i < stage->set->ncomponents; i++)
        for (size_t b = 0; b < stage->bytes[i]; b += ALIGNMENT)
            __builtin_prefetch((const char *)at[i] + b);
}

int stage_get(struct stage *stage, int64_t index, char *room, void *const *out)
{
    const void *at[HVD_MAX_COMPONENTS];

    stage = stage_find(stage, &index);
    if (stage->set->kind->get)
        return stage->set->kind->get(stage, index, room, out);
    int status = stage->set->kind->look(stage, index, at);
    for (int32_t i = 0; i < stage->set->ncomponents && status == 0; i++)
        memcpy(out[i], at[i], stage->bytes[i]);
    return status;
}

int stage_next(struct stage *stage, void *const *out)
{
    if (!stage->set->random) {
        int status = stage->set->kind->next(stage, out);

        stage->position += status == 0;
        return status;
    }
    if (stage->position >= stage->count)
        return HVD_END_OF_DATA;
    return stage_get(stage, stage->position++, stage->scratch, out);
}

int64_t stage_skip(struct stage *stage, int64_t n)
{
    void *out[HVD_MAX_COMPONENTS];
    int64_t skipped = 0;

    if (stage->set->random) {
        int64_t left = stage->count - stage->position;

        skipped = n < left ? n : left;
    } else if (stage->set->kind->skip) {
        skipped = stage->set->kind->skip(stage, n);
    } else {
        stage_lay_out(stage, stage->scratch, out);
        for (; skipped < n; skipped++) {
            int status = stage_next(stage, out);

            if (status != 0)
                return status < 0 ? status : skipped;
        }
        return skipped;
    }
    stage->position += skipped > 0 ? skipped : 0;
    return skipped;
}

int64_t stage_restore(struct stage *stage, int64_t epoch, int64_t samples)
{
    if (stage->set->kind->restore &&
        (stage->set->batched || is_repeat(stage->set) ||
         prefetch_depth(stage->set)))
        return stage->set->kind->restore(stage, epoch, samples);
    int64_t status = stage_begin(stage, epoch);
    if (status == 0)
        status = stage_skip(stage, samples);
    if (status >= 0 && status < samples)
        status = problem_fail(HVD_ERR_ARGUMENT,
                              "data set: a position behind %lld elements, but "
                              "epoch %lld has %lld: it is one of other data",
                              (long long)samples, (long long)epoch,
                              (long long)status);
    return status < 0 ? status : epoch;
}
