/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - the batches of a data set (hvd_dataset.h) as a trainer (trainer.h)
 * asks for them.
 *
 * In a training, a batch of the data is one of the network for each replica,
 * and the data begins again at its end. In an evaluation, rows are packed into
 * batches of the network, whatever batches the data has.
 *
 * Functions return 0, or a problem with the text kept (problem.h). After
 * input_open, one thread at a time uses an input.
 */
#ifndef MODELS_ESTIMATOR_INPUT_H
#define MODELS_ESTIMATOR_INPUT_H

#include <hvd_dataset.h>
#include <stdbool.h>

struct model; /* model.h */

struct input {
    hvd_dataset *data; /* owned, as the iterator */
    hvd_iterator *iterator;
    hvd_input_context of; /* this rank's share */
    hvd_batch batch;
    size_t bytes[HVD_MAX_COMPONENTS]; /* of a row of each component */
    int place[HVD_MAX_COMPONENTS];    /* component of each input; -1: none */
    int ninputs;
    int64_t capacity; /* rows of a batch of the network */
    int64_t losses;   /* of a row */
    bool exact;       /* training: all batches are full, and never end */
    bool waits;       /* batch has not been used yet */
    bool over;        /* the data of an evaluation has ended */
    int64_t row;      /* of batch, the next for an evaluation */
    int64_t most;     /* batches of an evaluation; 0: all */
    int64_t made;     /* batches that it has taken */
};

/* Opens the share of the data that of describes, and gets the first batch.
 * exact: for a training. Takes data over, also on failure. */
int input_open(struct input *input, hvd_dataset *data,
               const hvd_input_context *of, bool exact);

/* Finds the component of each input of the network. */
int input_match(struct input *input, const struct model *model, bool predicts);

void input_close(struct input *input); /* zeroed is accepted */

/* A fill_batch_fn and a fill_test_fn (trainer.h) with an input as context. */
int input_fill(void *input, int64_t number, void **inputs);
int64_t input_fill_test(void *input, int64_t step, void *const *inputs);

#endif
