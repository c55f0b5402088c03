/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.h - shares the text out to the ranks, for training and for validation.
 *
 * Row i of step k of all ranks together is a piece of context characters, from
 * a place that depends on seed, k and i alone; its labels are the characters
 * one place further on. Rank r of n takes rows r, r + n, ...: so n ranks with
 * batches of b use the same pieces as one rank with batches of n b.
 *
 * The validation text is cut into pieces without overlap; the rest that does
 * not fill a piece is left out. They are shared out in the same way, to the
 * last one.
 */
#ifndef MODELS_PIECES_H
#define MODELS_PIECES_H

#include "data/text.h"

struct pieces {
    const struct text *text; /* borrowed */
    int context, batch_size;
    int rank, size;
    int replicas; /* replicas of each rank; they take pieces as ranks would */
    uint64_t seed;
    int64_t
        evaluated; /* pieces of the validation text, for all ranks together */
};

/* windows: the most pieces for validation; 0: all. PROBLEM if either part of
 * the text is shorter than a piece. */
int pieces_init(struct pieces *pieces, const struct text *text, int context,
                int batch_size, int rank, int size, uint64_t seed,
                int64_t windows);

/* Fills the inputs, characters and labels [batch, context], with mini-batch
 * number 0, 1, ... of all replicas of this rank; context is the pieces, as a
 * trainer (trainer.h) has it. */
int pieces_fill(void *context, int64_t number, void *const *inputs);

/* Fills validation batch number step of this rank. Returns how many characters
 * are real, 0 when this rank has no more; the other rows are zeros. */
int64_t pieces_fill_test(void *context, int64_t step, void *const *inputs);

#endif
