/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.h - what the driver asks of a schedule beside ipu_pipeline.h.
 */
#ifndef IPU_PIPELINE_SCHEDULE_H
#define IPU_PIPELINE_SCHEDULE_H

#include <stdbool.h>

/* Builders are defined here, not called from a program. */
#ifndef IPU_NO_SOURCES
#define IPU_NO_SOURCES
#endif
#include "ipu.h"

/* Stages that a mini-batch goes through, there and back. */
int32_t ipu__schedule_positions(const ipu_schedule_options *options);

/* The slot of its first stage. */
int64_t ipu__schedule_enters(const ipu_schedule_options *options,
                             int64_t mini_batch);

#endif
