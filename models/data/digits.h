/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits.h - draws handwritten-looking digits, for training without a
 * download.
 */
#ifndef MODELS_DIGITS_H
#define MODELS_DIGITS_H

#include "data/images.h"

#include <hvd_progress.h>

/* The two sets that are drawn from one seed; they are unrelated. */
enum { DIGITS_TRAIN = 0, DIGITS_TEST = 1 };

/*
 * Draws count digits. Image i depends on seed, set and i alone, and is the same
 * on every machine. Shows its progress unless that is NULL. PROBLEM if memory
 * runs out, or what hvd_progress_check returns.
 */
int digits_draw(uint64_t seed, int set, int64_t count, hvd_progress *progress,
                struct images *images);

#endif
