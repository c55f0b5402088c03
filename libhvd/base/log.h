/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - what the library says on stderr, by HVD_LOG: nothing below the
 * level is written, "warning" is the default. One line a message, written in
 * one piece: "hvd: rank 1: text".
 */
#ifndef HVD_BASE_LOG_H
#define HVD_BASE_LOG_H

#include <stdbool.h>

/* By volume: debug grows with worlds and tensors, trace with operations. */
enum hvd__log_level {
    HVD__LOG_ERROR,
    HVD__LOG_WARNING,
    HVD__LOG_INFO,
    HVD__LOG_DEBUG,
    HVD__LOG_TRACE
};

/* rank < 0: not known yet. Not thread-safe: only while the library starts. */
void hvd__log_set(enum hvd__log_level level, int rank);

/* Whether anything of that level is written. Any thread. */
bool hvd__log_hears(enum hvd__log_level level);

__attribute__((format(printf, 2, 3))) void hvd__log(enum hvd__log_level level,
                                                    const char *format, ...);

#endif
