/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the messages of the library on stderr. HVD_LOG sets the level, below
 * which nothing is written; the default is "warning". A message is one line,
 * written in one piece: "hvd: rank 1: text".
 */
#ifndef HVD_BASE_LOG_H
#define HVD_BASE_LOG_H

#include <stdbool.h>

/* The levels, by volume: debug grows with worlds and tensors, trace with
 * operations. */
enum hvd__log_level {
    HVD__LOG_ERROR,
    HVD__LOG_WARNING,
    HVD__LOG_INFO,
    HVD__LOG_DEBUG,
    HVD__LOG_TRACE
};

/* Sets level and rank; a negative rank is not known yet. Not thread-safe: only
 * for the start of the library. */
void hvd__log_set(enum hvd__log_level level, int rank);

/* Returns whether messages of a level are written. Any thread may call it. */
bool hvd__log_hears(enum hvd__log_level level);

__attribute__((format(printf, 2, 3))) void hvd__log(enum hvd__log_level level,
                                                    const char *format, ...);

#endif
