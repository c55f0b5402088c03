/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.h - which parts of the text a rank trains and is judged on.
 *
 * Row i of step k of all ranks together is a piece of context characters, and
 * those one further on as labels, from a place that depends on seed, k and i
 * alone. Rank r of n takes rows r, r + n, ...: so n ranks with batches of b use
 * the same pieces as one with batches of n b.
 *
 * The validation text is cut into pieces without overlap; what does not fill
 * one is left out. They are shared out likewise, to the last one.
 */
#ifndef MODELS_PIECES_H
#define MODELS_PIECES_H

#include "data/text.h"

struct pieces {
    const struct text *text; /* borrowed */
    int context, batch_size;
    int rank, size;
    int replicas; /* of each rank: 1; more: together they are as more ranks */
    uint64_t seed;
    int64_t evaluated; /* pieces of the validation text, of all ranks */
};

/* windows: at most so many for validation; 0: all. PROBLEM if either part of
 * the text is shorter than a piece. */
int pieces_init(struct pieces *pieces, const struct text *text, int context,
                int batch_size, int rank, int size, uint64_t seed,
                int64_t windows);

/* Fill characters and labels [batch, context] for a step, 0, 1, ... */
void pieces_batch(const struct pieces *pieces, int64_t step,
                  int32_t *characters, int32_t *labels);

/* The same for a trainer (feed.h), whose context is the pieces: number counts
 * the mini-batches of all replicas of this rank. */
int pieces_fill(void *context, int64_t number, void *characters,
                int32_t *labels);

/* Batch number step of this rank's for validation. Returns how many pieces are
 * real, the rest being zeros; 0: this rank has no more. */
int pieces_test_batch(const struct pieces *pieces, int64_t step,
                      int32_t *characters, int32_t *labels);

/* The same for a trainer (trainer.h): returns how many characters are real. */
int64_t pieces_fill_test(void *context, int64_t step, void *characters,
                         int32_t *labels);

#endif
