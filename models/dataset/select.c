/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - take, skip, shard and repeat: which elements there are. */
#include "dataset/stage.h"

#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

/* Elements first, first + stride, ... of the input, at most most. */
struct selection {
    int64_t first, stride, most;
};

static const struct selection *selection_of(const hvd_dataset *set)
{
    return set->parameters;
}

static int64_t count_selected(const hvd_dataset *set, const struct share *share)
{
    const struct selection *s = selection_of(set);
    int64_t n = node_count(set->inputs[0], share);

    if (n < 0)
        return set->inputs[0]->endless && s->most < INT64_MAX ? s->most : -1;
    n = n <= s->first ? 0 : (n - s->first - 1) / s->stride + 1;
    return n < s->most ? n : s->most;
}

static struct stage *place_selected(struct stage *stage, int64_t *index)
{
    const struct selection *s = selection_of(stage->set);

    *index = s->first + *index * s->stride;
    return stage->inputs[0];
}

static int next_selected(struct stage *stage, void *const *out)
{
    const struct selection *s = selection_of(stage->set);
    struct stage *input = stage->inputs[0];
    int64_t gap = stage->position == 0 ? s->first : s->stride - 1;

    if (stage->position >= s->most)
        return HVD_END_OF_DATA;
    if (gap > 0) {
        int64_t status = stage_skip(input, gap);

        if (status < gap)
            return status < 0 ? (int)status : HVD_END_OF_DATA;
    }
    return stage_next(input, out);
}

/* Called for what stands behind a batch: its elements are steps. */
static int64_t restore_selected(struct stage *stage, int64_t epoch,
                                int64_t samples)
{
    const struct selection *s = selection_of(stage->set);
    struct stage *below = stage;

    stage->epoch = epoch;
    while (below->set->kind != &batch_kind)
        below = below->inputs[0];
    epoch = stage_restore(stage->inputs[0], epoch, samples);
    if (epoch >= 0) {
        int64_t all = batch_of_all(below);

        stage->position = (samples + all - 1) / all - s->first;
        if (stage->position < 0)
            stage->position = 0;
    }
    return epoch;
}

static const struct kind select_kind = {.name = "elements",
                                        .count = count_selected,
                                        .place = place_selected,
                                        .next = next_selected,
                                        .restore = restore_selected};

static hvd_dataset *select_elements(hvd_dataset *input, int64_t first,
                                    int64_t stride, int64_t most)
{
    hvd_dataset *set =
        node_make(&select_kind, 1, &input, sizeof(struct selection));

    if (set) {
        *(struct selection *)set->parameters =
            (struct selection){first, stride, most};
        set->endless = set->endless && most == INT64_MAX;
    }
    return set;
}

hvd_dataset *hvd_dataset_take(hvd_dataset *dataset, int64_t count)
{
    if (count < 0)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: %lld elements cannot be taken",
                         (long long)count);
    return select_elements(dataset, 0, 1, count);
}

hvd_dataset *hvd_dataset_skip(hvd_dataset *dataset, int64_t count)
{
    if (count < 0)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: %lld elements cannot be skipped",
                         (long long)count);
    return select_elements(dataset, count, 1, INT64_MAX);
}

hvd_dataset *hvd_dataset_shard(hvd_dataset *dataset,
                               int32_t num_input_pipelines,
                               int32_t input_pipeline_id)
{
    if (num_input_pipelines < 1 || input_pipeline_id < 0 ||
        input_pipeline_id >= num_input_pipelines)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: no shard %d of %d: expected 0 to one less "
                         "than the number of shards",
                         (int)input_pipeline_id, (int)num_input_pipelines);
    if (dataset && dataset->batched)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: shard comes before batch");
    return select_elements(dataset, input_pipeline_id, num_input_pipelines,
                           INT64_MAX);
}

/* ------------------------------------------------------------------ repeat */

/* The state of a repeat. */
struct round {
    int64_t done;  /* epochs of this one that are done */
    int64_t first; /* the input's epoch number of the first */
    bool seen;     /* an element in this epoch */
};

int64_t repeat_times(const hvd_dataset *set)
{
    return *(const int64_t *)set->parameters;
}

static int64_t count_repeated(const hvd_dataset *set, const struct share *share)
{
    int64_t n = node_count(set->inputs[0], share), all;
    int64_t times = repeat_times(set);

    return n < 0 || times < 0 || __builtin_mul_overflow(n, times, &all) ? -1
                                                                        : all;
}

static int open_repeat(struct stage *stage)
{
    stage->state = calloc(1, sizeof(struct round));
    return stage->state ? 0
                        : problem_fail(HVD_ERR_MEMORY, "data set: no memory");
}

static int begin_repeat(struct stage *stage, int64_t epoch)
{
    int64_t times = repeat_times(stage->set);
    struct round *round = stage->state;

    *round = (struct round){.first = times < 0 ? 0 : epoch * times};
    return stage_begin(stage->inputs[0], round->first);
}

/* Begins the next epoch of the input, or says that there is none. */
static int go_round(struct stage *stage)
{
    struct round *round = stage->state;
    int64_t times = repeat_times(stage->set);

    if (times >= 0 && round->done + 1 >= times)
        return HVD_END_OF_DATA;
    if (!round->seen) /* An empty epoch would come for ever. */
        return HVD_END_OF_DATA;
    round->done++;
    round->seen = false;
    return stage_begin(stage->inputs[0], round->first + round->done);
}

static int next_repeated(struct stage *stage, void *const *out)
{
    struct round *round = stage->state;
    int status = repeat_times(stage->set) == 0 ? HVD_END_OF_DATA : 0;

    while (status == 0) {
        status = stage_next(stage->inputs[0], out);
        if (status != HVD_END_OF_DATA) {
            round->seen = true;
            return status;
        }
        status = go_round(stage);
    }
    return status;
}

static int64_t skip_repeated(struct stage *stage, int64_t n)
{
    struct round *round = stage->state;
    int64_t done = 0;

    while (done < n && repeat_times(stage->set) != 0) {
        int64_t status = stage_skip(stage->inputs[0], n - done);

        if (status < 0)
            return status;
        round->seen = round->seen || status > 0;
        done += status;
        if (done < n && (status = go_round(stage)) != 0)
            return status < 0 ? status : done;
    }
    return done;
}

static int64_t restore_repeated(struct stage *stage, int64_t epoch,
                                int64_t samples)
{
    struct round *round = stage->state;
    int64_t times = repeat_times(stage->set);

    epoch = stage_restore(stage->inputs[0], epoch, samples);
    if (epoch < 0 || times == 0)
        return epoch;
    round->done = times < 0 ? epoch : epoch % times;
    round->first = epoch - round->done;
    round->seen = samples > 0;
    return stage->epoch = times < 0 ? 0 : epoch / times;
}

static const struct kind repeat_kind = {.name = "repeat",
                                        .count = count_repeated,
                                        .open = open_repeat,
                                        .begin = begin_repeat,
                                        .next = next_repeated,
                                        .skip = skip_repeated,
                                        .restore = restore_repeated};

hvd_dataset *hvd_dataset_repeat(hvd_dataset *dataset, int64_t times)
{
    if (times < -1)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: cannot be repeated %lld times: expected -1 "
                         "(for ever), 0 or more",
                         (long long)times);
    hvd_dataset *set = node_make(&repeat_kind, 1, &dataset, sizeof times);
    if (set) {
        *(int64_t *)set->parameters = times;
        set->random = false;
        set->endless = times < 0;
    }
    return set;
}

bool is_repeat(const hvd_dataset *set)
{
    return set->kind == &repeat_kind;
}

/* ---------------------------------------------------------------- prefetch */

/* The iterator does it; here its elements are passed on. */
static int next_passed(struct stage *stage, void *const *out)
{
    return stage_next(stage->inputs[0], out);
}

static int64_t skip_passed(struct stage *stage, int64_t n)
{
    return stage_skip(stage->inputs[0], n);
}

static int64_t restore_passed(struct stage *stage, int64_t epoch,
                              int64_t samples)
{
    return stage_restore(stage->inputs[0], epoch, samples);
}

static struct stage *place_passed(struct stage *stage, int64_t *index)
{
    (void)index;
    return stage->inputs[0];
}

static const struct kind prefetch_kind = {.name = "prefetch",
                                          .place = place_passed,
                                          .next = next_passed,
                                          .skip = skip_passed,
                                          .restore = restore_passed};

hvd_dataset *hvd_dataset_prefetch(hvd_dataset *dataset, int32_t count)
{
    if (count < 1 || count > 1024)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: prefetch of %d, expected 1 to 1024",
                         (int)count);
    hvd_dataset *set = node_make(&prefetch_kind, 1, &dataset, sizeof count);
    if (set)
        *(int32_t *)set->parameters = count;
    return set;
}

int32_t prefetch_depth(const hvd_dataset *set)
{
    return set->kind == &prefetch_kind ? *(const int32_t *)set->parameters : 0;
}
