/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_mark.h - a number that stands for all elements of a data set, by which a
 * replay (replay.h) notices that the data are not those of the training.
 */
#ifndef MODELS_COMMAND_DATA_MARK_H
#define MODELS_COMMAND_DATA_MARK_H

#include <hvd_dataset.h>
#include <stdint.h>

/* Reads all elements, and sets *mark to their hash, which is not 0. Borrows
 * data. PROBLEM with the text kept if they cannot be read. */
int data_mark(hvd_dataset *data, uint64_t *mark);

#endif
