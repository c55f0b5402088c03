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

#endif
