/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - elements computed by a function, on demand. With random access, the
 * threads of a batch call it for their rows. Of a stream, one thread reads a
 * block of elements, and all compute them.
 */
#include "dataset/stage.h"

#include "dataset/crew.h"
#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 8, MOST_THREADS = 256 };

struct mapping {
    hvd_map_fn *function;
    void *context;
    int32_t threads;
};

/* The state, of streams: elements that were read, and what became of them. */
struct block {
    char *in, *out; /* owned: [size] elements */
    size_t in_step, out_step;
    int64_t size, held, used;
    bool ended;
};

static const struct mapping *mapping_of(const hvd_dataset *set)
{
    return set->parameters;
}

static int compute(const struct stage *stage, int64_t index,
                   const void *const *in, void *const *out)
{
    const struct mapping *m = mapping_of(stage->set);

    hvd_set_last_error(0, "");
    int status = m->function(m->context, in, out);
    if (status >= 0)
        return 0;
    const char *why = hvd_last_error();
    return problem_fail(status, "data set: map of element %lld: %s",
                        (long long)index, *why ? why : hvd_strerror(status));
}

static int get_mapped(struct stage *stage, int64_t index, char *room,
                      void *const *out)
{
    const void *in[HVD_MAX_COMPONENTS];
    int status = stage_look(stage->inputs[0], index, room, in);

    return status < 0 ? status : compute(stage, index, in, out);
}

static int open_block(struct stage *stage)
{
    struct block *block;

    if (stage->set->random)
        return 0;
    block = stage->state = calloc(1, sizeof *block);
    if (block) {
        int32_t threads = mapping_of(stage->set)->threads;

        block->size = threads > 1 ? (int64_t)threads * ROUNDS : 1;
        block->in_step = stage_lay_out(stage->inputs[0], NULL, NULL);
        block->out_step = stage_lay_out(stage, NULL, NULL);
        block->in = aligned_alloc(64, (size_t)block->size * block->in_step);
        block->out = aligned_alloc(64, (size_t)block->size * block->out_step);
    }
    if (block && block->in && block->out)
        return 0;
    return problem_fail(HVD_ERR_MEMORY, "data set: no memory for map");
}

static void close_block(struct stage *stage)
{
    struct block *block = stage->state;

    if (block) {
        free(block->in);
        free(block->out);
    }
}

static int begin_block(struct stage *stage, int64_t epoch)
{
    struct block *block = stage->state;

    if (block) {
        block->held = block->used = 0;
        block->ended = false;
    }
    return stage_begin(stage->inputs[0], epoch);
}

static int compute_part(void *context, int thread, int64_t part)
{
    struct stage *stage = context;
    struct block *block = stage->state;
    void *in[HVD_MAX_COMPONENTS], *out[HVD_MAX_COMPONENTS];
    const void *at[HVD_MAX_COMPONENTS];

    (void)thread;
    stage_lay_out(stage->inputs[0], block->in + (size_t)part * block->in_step,
                  in);
    stage_lay_out(stage, block->out + (size_t)part * block->out_step, out);
    for (int32_t i = 0; i < stage->inputs[0]->set->ncomponents; i++)
        at[i] = in[i];
    return compute(stage, stage->position + part, at, out);
}

/* Reads a block, and computes it. A failure to read comes behind the elements
 * before it were computed, as if they had been read one by one. */
static int fill_block(struct stage *stage)
{
    struct block *block = stage->state;
    void *in[HVD_MAX_COMPONENTS];
    int status = 0;

    block->held = block->used = 0;
    while (block->held < block->size && status == 0 && !block->ended) {
        stage_lay_out(stage->inputs[0],
                      block->in + (size_t)block->held * block->in_step, in);
        status = stage_next(stage->inputs[0], in);
        block->held += status == 0;
        block->ended = status == HVD_END_OF_DATA;
    }
    if (status < 0)
        return status;
    if (block->held == 0)
        return HVD_END_OF_DATA;
    return crew_run(block->size > 1 ? stage->run->crew : NULL, block->held,
                    compute_part, stage);
}

static int next_mapped(struct stage *stage, void *const *out)
{
    struct block *block = stage->state;
    void *at[HVD_MAX_COMPONENTS];

    if (block->used == block->held) {
        int status = fill_block(stage);

        if (status != 0)
            return status;
    }
    stage_lay_out(stage, block->out + (size_t)block->used++ * block->out_step,
                  at);
    for (int32_t i = 0; i < stage->set->ncomponents; i++)
        memcpy(out[i], at[i], stage->bytes[i]);
    return 0;
}

static const struct kind map_kind = {.name = "map",
                                     .open = open_block,
                                     .close = close_block,
                                     .begin = begin_block,
                                     .get = get_mapped,
                                     .next = next_mapped};

hvd_dataset *hvd_dataset_map(hvd_dataset *dataset, int32_t ncomponents,
                             const hvd_component *components,
                             hvd_map_fn *function, void *context,
                             int32_t threads)
{
    if (!dataset)
        return NULL;
    if (dataset->batched)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: map comes before batch");
    if (!function || threads > MOST_THREADS)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: map with %d threads (at most %d)%s",
                         (int)threads, MOST_THREADS,
                         function ? "" : " and no function");
    hvd_dataset *set =
        node_make(&map_kind, 1, &dataset, sizeof(struct mapping));
    if (set)
        *(struct mapping *)set->parameters =
            (struct mapping){function, context, threads < 1 ? 1 : threads};
    return node_components(set, ncomponents, components);
}

int32_t map_threads(const hvd_dataset *set)
{
    return set->kind == &map_kind ? mapping_of(set)->threads : 0;
}
