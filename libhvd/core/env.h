/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.h - the environment variables of the library: one list, from which
 * parsing, messages and documentation come.
 */
#ifndef HVD_CORE_ENV_H
#define HVD_CORE_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

/* X(variable, field, parser, default text, meaning) */
#define HVD__SETTINGS(X)                                                       \
    X("HVD_CONSISTENCY_CHECK", consistency_check, bool, "0",                   \
      "compare the results of all ranks after every allreduce, allgather and " \
      "broadcast")                                                             \
    X("HVD_FUSION_THRESHOLD", fusion_threshold, bytes, "64MB",                 \
      "most bytes of tensors that are reduced together; 0 fuses nothing")      \
    X("HVD_LOG", log_level, level, "warning",                                  \
      "what is written to stderr: error, warning, info, debug or trace")

struct hvd__settings {
    bool consistency_check;
    size_t fusion_threshold;
    enum hvd__log_level log_level;
};

/* Read all of them; HVD_ERR_CONFIG names variable, value and what is
 * accepted. Settings that are not set have their default, also on failure. */
int hvd__settings_read(struct hvd__settings *settings);

/* A number of bytes: digits, then nothing, B, or K, M, G, T with or without
 * B or iB, in any case, all powers of 1024. HVD_ERR_CONFIG without text. */
int hvd__parse_bytes(const char *text, size_t *bytes);

#endif
