/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sizes.h - the sizes of float buffers that subcommands go through: -b, -e, -f.
 */
#ifndef BENCH_SIZES_H
#define BENCH_SIZES_H

#include "command/command.h"

/* Bytes of the smallest and the largest size, and the factor from each to the
 * next. */
struct sizes {
    int64_t least, most;
    int factor;
};

/* Handles the keys 'b', 'e' and 'f'; returns ARGP_ERR_UNKNOWN for others. */
error_t sizes_key(struct command_line *line, int key, const char *text,
                  struct sizes *sizes);

/* Refuses sizes that are no floats, that are above limit, and that are none. */
error_t sizes_check(struct command_line *line, const struct sizes *sizes,
                    int64_t limit);

#endif
