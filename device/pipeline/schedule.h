/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.h - the queries of the driver on a schedule, besides the functions
 * of ipu_pipeline.h.
 */
#ifndef IPU_PIPELINE_SCHEDULE_H
#define IPU_PIPELINE_SCHEDULE_H

#include <stdbool.h>

/* This room defines builders and does not call them as a program does. */
#ifndef IPU_NO_SOURCES
#define IPU_NO_SOURCES
#endif
#include "ipu.h"

/* Returns how many positions a mini-batch goes through, forwards and
 * backwards. */
int32_t ipu__schedule_positions(const ipu_schedule_options *options);

/* Returns the slot of the mini-batch's first position. */
int64_t ipu__schedule_enters(const ipu_schedule_options *options,
                             int64_t mini_batch);

#endif
