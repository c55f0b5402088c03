/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.h - the digits that mnist, pipelined and the small programs learn, as
 * data sets (hvd_dataset.h).
 */
#ifndef MODELS_DATASET_H
#define MODELS_DATASET_H

#include "data/digits.h"

#include <hvd_dataset.h>
#include <hvd_progress.h>

/* Where digits come from. */
struct digits_source {
    const char *directory; /* has MNIST files; NULL: digits are drawn */
    uint64_t seed;         /* seed of drawn digits */
    int64_t
        count; /* 0: all, or 40000 drawn to train on and 5000 to test with */
};

/* Loads or draws DIGITS_TRAIN or DIGITS_TEST: elements have the components
 * "images", float32 [784], from 0 to 1, and "labels", int32. Drawing takes
 * seconds, which progress shows (NULL: nobody sees). NULL with the text kept.
 */
hvd_dataset *digits_dataset(const struct digits_source *source, int set,
                            hvd_progress *progress);

#endif
