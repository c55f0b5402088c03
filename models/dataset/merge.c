/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - concatenate, interleave and zip. To interleave, a clock says from
 * which input the next element comes: of data with random access, it runs once
 * when the stage is opened, and the order is kept; of streams, it runs along.
 */
#include "dataset/stage.h"

#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

/* Makes a node of inputs that have the same components. */
static hvd_dataset *join(const struct kind *kind, int32_t n,
                         hvd_dataset *const *inputs, bool same)
{
    if (n < 1 || !inputs) {
        problem_fail(HVD_ERR_ARGUMENT, "data set: %s of %d data sets",
                     kind->name, (int)n);
        return NULL;
    }
    hvd_dataset *set = node_make(kind, n, inputs, 2 * sizeof(int32_t));
    if (!set)
        return NULL;
    if (set->batched)
        return node_fail(set, HVD_ERR_ARGUMENT,
                         "data set: %s comes before batch", kind->name);
    for (int32_t i = 1; i < n && same; i++) {
        bool equal = inputs[i]->ncomponents == set->ncomponents;

        for (int32_t k = 0; k < set->ncomponents && equal; k++)
            equal =
                component_equal(&inputs[i]->components[k], &set->components[k]);
        if (!equal)
            return node_fail(set, HVD_ERR_MISMATCH,
                             "data set: %s: data set %d has other components "
                             "than the first: names, dtypes and shapes must be "
                             "the same",
                             kind->name, (int)i);
    }
    return set;
}

static int64_t count_joined(const hvd_dataset *set, const struct share *share)
{
    int64_t all = 0;

    for (int32_t i = 0; i < set->ninputs; i++) {
        if (share->by_file && i % share->workers != share->worker)
            continue;
        int64_t n = node_count(set->inputs[i], share);
        if (n < 0)
            return -1;
        all += n;
    }
    return all;
}

/* ------------------------------------------------------------- concatenate */

/* The state: where the inputs begin, or which one is read. */
struct chain {
    int64_t *begins; /* [ninputs + 1], owned */
    int32_t current;
};

static int open_chain(struct stage *stage)
{
    struct chain *chain = stage->state = calloc(1, sizeof *chain);

    if (chain)
        chain->begins =
            calloc((size_t)stage->ninputs + 1, sizeof *chain->begins);
    if (!chain || !chain->begins)
        return problem_fail(HVD_ERR_MEMORY, "data set: no memory");
    for (int32_t i = 0; i < stage->ninputs; i++)
        chain->begins[i + 1] = chain->begins[i] + stage->inputs[i]->count;
    return 0;
}

static void close_chain(struct stage *stage)
{
    struct chain *chain = stage->state;

    if (chain)
        free(chain->begins);
}

static int begin_chain(struct stage *stage, int64_t epoch)
{
    struct chain *chain = stage->state;
    int status = 0;

    chain->current = 0;
    for (int32_t i = 0; i < stage->ninputs && status == 0; i++)
        status = stage_begin(stage->inputs[i], epoch);
    return status;
}

/* The input that has the element: the last that begins there or before. */
static struct stage *place_in_chain(struct stage *stage, int64_t *index)
{
    const struct chain *chain = stage->state;
    int32_t low = 0, high = stage->ninputs - 1;

    while (low < high) {
        int32_t middle = low + (high - low + 1) / 2;

        if (chain->begins[middle] <= *index)
            low = middle;
        else
            high = middle - 1;
    }
    *index -= chain->begins[low];
    return stage->inputs[low];
}

static int next_in_chain(struct stage *stage, void *const *out)
{
    struct chain *chain = stage->state;

    for (; chain->current < stage->ninputs; chain->current++) {
        int status = stage_next(stage->inputs[chain->current], out);

        if (status != HVD_END_OF_DATA)
            return status;
    }
    return HVD_END_OF_DATA;
}

static const struct kind concatenate_kind = {.name = "concatenate",
                                             .count = count_joined,
                                             .open = open_chain,
                                             .close = close_chain,
                                             .begin = begin_chain,
                                             .place = place_in_chain,
                                             .next = next_in_chain};

hvd_dataset *hvd_dataset_concatenate(int32_t n, hvd_dataset *const *datasets)
{
    return join(&concatenate_kind, n, datasets, true);
}

/* -------------------------------------------------------------- interleave */

/* The state: lanes that are read in turn. */
struct clock {
    int32_t *lanes; /* [cycle], owned: inputs, -1: none is left */
    int32_t lane;   /* whose turn it is */
    int32_t taken;  /* elements of its turn */
    int32_t next;   /* input that no lane has had */
    int32_t live;   /* lanes with an input */
    struct {
        int32_t input;
        int64_t index;
    } * order; /* [count], owned: with random access */
};

struct rhythm {
    int32_t cycle, block;
};

static void start_clock(const struct stage *stage, struct clock *clock)
{
    const struct rhythm *rhythm = stage->set->parameters;

    clock->lane = clock->taken = clock->next = clock->live = 0;
    for (int32_t i = 0; i < rhythm->cycle; i++) {
        clock->lanes[i] = clock->next < stage->ninputs ? clock->next++ : -1;
        clock->live += clock->lanes[i] >= 0;
    }
}

/* Returns the input whose turn it is; -1: all have ended. */
static int32_t read_clock(const struct stage *stage, struct clock *clock)
{
    const struct rhythm *rhythm = stage->set->parameters;

    if (clock->taken == rhythm->block) {
        clock->taken = 0;
        clock->lane = (clock->lane + 1) % rhythm->cycle;
    }
    if (clock->live == 0)
        return -1;
    while (clock->lanes[clock->lane] < 0)
        clock->lane = (clock->lane + 1) % rhythm->cycle;
    return clock->lanes[clock->lane];
}

/* The input whose turn it is has ended. */
static void end_lane(const struct stage *stage, struct clock *clock)
{
    const struct rhythm *rhythm = stage->set->parameters;
    bool more = clock->next < stage->ninputs;

    clock->lanes[clock->lane] = more ? clock->next++ : -1;
    clock->live -= !more;
    clock->taken = 0;
    clock->lane = (clock->lane + 1) % rhythm->cycle;
}

/* Lets the clock run through inputs with random access. */
static int fix_order(struct stage *stage, struct clock *clock)
{
    int64_t *used = calloc((size_t)stage->ninputs + 1, sizeof *used);
    int32_t input;

    clock->order = malloc((size_t)stage->count * sizeof *clock->order + 1);
    if (!used || !clock->order) {
        free(used);
        return problem_fail(HVD_ERR_MEMORY,
                            "data set: no memory for the order of %lld "
                            "elements",
                            (long long)stage->count);
    }
    start_clock(stage, clock);
    for (int64_t done = 0; (input = read_clock(stage, clock)) >= 0;) {
        if (used[input] == stage->inputs[input]->count) {
            end_lane(stage, clock);
            continue;
        }
        clock->order[done].input = input;
        clock->order[done++].index = used[input]++;
        clock->taken++;
    }
    free(used);
    return 0;
}

static int open_clock(struct stage *stage)
{
    const struct rhythm *rhythm = stage->set->parameters;
    struct clock *clock = stage->state = calloc(1, sizeof *clock);

    if (clock)
        clock->lanes = calloc((size_t)rhythm->cycle, sizeof *clock->lanes);
    if (!clock || !clock->lanes)
        return problem_fail(HVD_ERR_MEMORY, "data set: no memory");
    return stage->set->random ? fix_order(stage, clock) : 0;
}

static void close_clock(struct stage *stage)
{
    struct clock *clock = stage->state;

    if (clock) {
        free(clock->lanes);
        free(clock->order);
    }
}

static int begin_clock(struct stage *stage, int64_t epoch)
{
    int status = 0;

    start_clock(stage, stage->state);
    for (int32_t i = 0; i < stage->ninputs && status == 0; i++)
        status = stage_begin(stage->inputs[i], epoch);
    return status;
}

static struct stage *place_by_clock(struct stage *stage, int64_t *index)
{
    const struct clock *clock = stage->state;
    int32_t input = clock->order[*index].input;

    *index = clock->order[*index].index;
    return stage->inputs[input];
}

static int next_by_clock(struct stage *stage, void *const *out)
{
    struct clock *clock = stage->state;
    int32_t input;

    while ((input = read_clock(stage, clock)) >= 0) {
        int status = stage_next(stage->inputs[input], out);

        if (status != HVD_END_OF_DATA) {
            clock->taken++;
            return status;
        }
        end_lane(stage, clock);
    }
    return HVD_END_OF_DATA;
}

static const struct kind interleave_kind = {.name = "interleave",
                                            .count = count_joined,
                                            .open = open_clock,
                                            .close = close_clock,
                                            .begin = begin_clock,
                                            .place = place_by_clock,
                                            .next = next_by_clock};

hvd_dataset *hvd_dataset_interleave(int32_t n, hvd_dataset *const *datasets,
                                    int32_t cycle, int32_t block)
{
    hvd_dataset *set = join(&interleave_kind, n, datasets, true);

    if (!set)
        return NULL;
    if (cycle < 1 || cycle > 65536 || block < 1)
        return node_fail(set, HVD_ERR_ARGUMENT,
                         "data set: interleave of %d at a time, in blocks of "
                         "%d: both must be 1 or more",
                         (int)cycle, (int)block);
    *(struct rhythm *)set->parameters = (struct rhythm){cycle, block};
    return set;
}

bool is_merge(const hvd_dataset *set)
{
    return set->kind == &concatenate_kind || set->kind == &interleave_kind;
}

/* --------------------------------------------------------------------- zip */

static int64_t count_zipped(const hvd_dataset *set, const struct share *share)
{
    int64_t least = -1;

    for (int32_t i = 0; i < set->ninputs; i++) {
        int64_t n = node_count(set->inputs[i], share);

        if (n < 0 && !set->inputs[i]->endless)
            return -1;
        if (n >= 0 && (least < 0 || n < least))
            least = n;
    }
    return least;
}

static int look_zipped(struct stage *stage, int64_t index, char *room,
                       const void **at)
{
    for (int32_t i = 0; i < stage->ninputs; i++) {
        int status = stage_look(stage->inputs[i], index, room, at);

        if (status < 0)
            return status;
        at += stage->inputs[i]->set->ncomponents;
        room += stage->inputs[i]->room;
    }
    return 0;
}

static int get_zipped(struct stage *stage, int64_t index, char *room,
                      void *const *out)
{
    const void *at[HVD_MAX_COMPONENTS] = {NULL};
    int status = look_zipped(stage, index, room, at);

    for (int32_t i = 0; i < stage->set->ncomponents && status == 0; i++)
        memcpy(out[i], at[i], stage->bytes[i]);
    return status;
}

static int next_zipped(struct stage *stage, void *const *out)
{
    int status = 0;

    for (int32_t i = 0; i < stage->ninputs && status == 0; i++) {
        status = stage_next(stage->inputs[i], out);
        out += stage->inputs[i]->set->ncomponents;
    }
    return status;
}

static const struct kind zip_kind = {.name = "zip",
                                     .count = count_zipped,
                                     .get = get_zipped,
                                     .next = next_zipped};

hvd_dataset *hvd_dataset_zip(int32_t n, hvd_dataset *const *datasets)
{
    hvd_component all[HVD_MAX_COMPONENTS];
    hvd_dataset *set = join(&zip_kind, n, datasets, false);
    int32_t count = 0;

    if (!set)
        return NULL;
    for (int32_t i = 0; i < n; i++) {
        const hvd_dataset *input = set->inputs[i];

        if (count + input->ncomponents > HVD_MAX_COMPONENTS)
            return node_fail(set, HVD_ERR_ARGUMENT,
                             "data set: zip has more than %d components",
                             HVD_MAX_COMPONENTS);
        for (int32_t k = 0; k < input->ncomponents; k++)
            all[count++] = input->components[k];
        set->endless = i == 0 ? input->endless : set->endless && input->endless;
    }
    return node_components(set, count, all);
}
