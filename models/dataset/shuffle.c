/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shuffle.c - orders. With random access, the permutation of hvd_shuffle, which
 * is drawn when an epoch begins. Of a stream, a buffer is filled, and each
 * element that leaves it makes room for the next; a draw depends on seed, epoch
 * and the number of the element alone.
 */
#include "dataset/stage.h"

#include "data/random.h"
#include "output/problem.h"

#include <hvd_strategy.h>
#include <stdlib.h>
#include <string.h>

struct parameters {
    uint64_t seed;
    int64_t buffer; /* 0: a permutation */
};

/* The state. */
struct order {
    int64_t *places; /* [count], owned: the permutation */
    char *buffer;    /* owned: elements, each of step bytes */
    size_t step;
    int64_t held;
    bool ended; /* the input is */
    struct random random;
};

static const struct parameters *parameters_of(const hvd_dataset *set)
{
    return set->parameters;
}

static int open_order(struct stage *stage)
{
    struct order *order = stage->state = calloc(1, sizeof *order);
    int64_t buffer = parameters_of(stage->set)->buffer;
    size_t bytes = 0;

    if (order && buffer == 0) {
        bytes = (size_t)stage->count * sizeof *order->places;
        order->places = malloc(bytes + 1);
    } else if (order) {
        order->step = stage_lay_out(stage, NULL, NULL);
        if (!__builtin_mul_overflow((size_t)buffer, order->step, &bytes))
            order->buffer = aligned_alloc(64, bytes);
    }
    if (order && (order->places || order->buffer))
        return 0;
    return problem_fail(HVD_ERR_MEMORY,
                        "data set: no memory for shuffling: %zu bytes", bytes);
}

static void close_order(struct stage *stage)
{
    struct order *order = stage->state;

    if (order) {
        free(order->places);
        free(order->buffer);
    }
}

static int begin_order(struct stage *stage, int64_t epoch)
{
    struct order *order = stage->state;
    uint64_t seed = parameters_of(stage->set)->seed;
    int status = stage_begin(stage->inputs[0], epoch);

    order->held = 0;
    order->ended = false;
    random_seed(&order->random, seed, (uint64_t)epoch);
    if (status == 0 && order->places && stage->count > 0)
        status = hvd_shuffle(stage->count, seed, epoch, order->places);
    return status;
}

static struct stage *place_in_order(struct stage *stage, int64_t *index)
{
    const struct order *order = stage->state;

    *index = order->places[*index];
    return stage->inputs[0];
}

/* Fills place of the buffer from the input. */
static int refill(struct stage *stage, int64_t place)
{
    struct order *order = stage->state;
    void *out[HVD_MAX_COMPONENTS];

    stage_lay_out(stage, order->buffer + (size_t)place * order->step, out);
    int status = stage_next(stage->inputs[0], out);
    if (status == HVD_END_OF_DATA)
        order->ended = true;
    return status;
}

static int next_in_order(struct stage *stage, void *const *out)
{
    struct order *order = stage->state;
    int64_t size = parameters_of(stage->set)->buffer;
    void *at[HVD_MAX_COMPONENTS];

    while (order->held < size && !order->ended) {
        int status = refill(stage, order->held);

        if (status < 0)
            return status;
        order->held += status == 0;
    }
    if (order->held == 0)
        return HVD_END_OF_DATA;
    int64_t drawn =
        (int64_t)(random_bits(&order->random) % (uint64_t)order->held);
    char *element = order->buffer + (size_t)drawn * order->step;
    stage_lay_out(stage, element, at);
    for (int32_t i = 0; i < stage->set->ncomponents; i++)
        memcpy(out[i], at[i], stage->bytes[i]);
    order->held--;
    if (drawn != order->held)
        memcpy(element, order->buffer + (size_t)order->held * order->step,
               order->step);
    return 0;
}

static const struct kind shuffle_kind = {.name = "shuffle",
                                         .open = open_order,
                                         .close = close_order,
                                         .begin = begin_order,
                                         .place = place_in_order,
                                         .next = next_in_order};
/* It has no place in an order that is drawn before. */
static const struct kind buffer_kind = {.name = "shuffle",
                                        .open = open_order,
                                        .close = close_order,
                                        .begin = begin_order,
                                        .next = next_in_order};

hvd_dataset *hvd_dataset_shuffle(hvd_dataset *dataset, uint64_t seed,
                                 int64_t buffer)
{
    if (!dataset)
        return NULL;
    if (dataset->batched)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: shuffle comes before batch");
    if (buffer < 0)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: a shuffle buffer of %lld elements",
                         (long long)buffer);
    if (buffer == 0 && !dataset->random)
        return node_fail(dataset, HVD_ERR_ARGUMENT,
                         "data set: a stream has no full permutation: give the "
                         "shuffle a buffer, or cache the stream before it");
    hvd_dataset *set = node_make(buffer ? &buffer_kind : &shuffle_kind, 1,
                                 &dataset, sizeof(struct parameters));
    if (set) {
        *(struct parameters *)set->parameters =
            (struct parameters){seed, buffer};
        set->random = buffer == 0;
    }
    return set;
}

uint64_t shuffle_seed(const hvd_dataset *set)
{
    return set->kind == &shuffle_kind || set->kind == &buffer_kind
               ? parameters_of(set)->seed
               : 0;
}
