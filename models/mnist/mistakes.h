/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mistakes.h - digits that an evaluation has taken for others, as a picture:
 * under each digit stands what it is, and what it was taken for ("4>9").
 */
#ifndef MODELS_MISTAKES_H
#define MODELS_MISTAKES_H

#include "data/images.h"
#include "trainer/trainer.h"

#include <hvd_log.h>

enum { MISTAKES_MOST = 25 };

struct mistakes {
    int count; /* of those that are kept, the first ones */
    struct {
        uint8_t pixels[IMAGE_PIXELS];
        int label, taken_for;
    } digits[MISTAKES_MOST];
};

/* A visit_batch_fn with struct mistakes as its context. */
int mistakes_visit(void *context, const struct trainer_results *results);

/* Logs the picture if there are any, and forgets them. */
int mistakes_log(struct mistakes *mistakes, hvd_log *log, const char *tag,
                 int64_t step);

#endif
