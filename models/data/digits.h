/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits.h - draws handwritten-looking digits, for training without a
 * download.
 */
#ifndef MODELS_DIGITS_H
#define MODELS_DIGITS_H

#include "data/images.h"
#include "output/progress.h"

/* Which of two unrelated sets is drawn from one seed. */
enum { DIGITS_TRAIN = 0, DIGITS_TEST = 1 };

/*
 * Draw count digits. Image i depends on seed, set and i alone, and is the
 * same on every machine. progress (NULL: nobody) is told how far it is.
 * PROBLEM when memory runs out.
 */
int digits_draw(uint64_t seed, int set, int64_t count,
                struct progress *progress, struct images *images);

#endif
