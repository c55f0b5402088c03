/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MODELS_CHAPTER_NUMBER_H
#define MODELS_CHAPTER_NUMBER_H

#include <argp.h>
#include <stdlib.h>

/* A count from 1 to 10^9, or a failure that names the flag. */
static inline error_t chapter_number(struct argp_state *state, const char *flag,
                                     const char *text, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < 1 || value > 1000000000) {
        argp_failure(state, EXIT_FAILURE, 0, "%s '%s': give 1 to 1000000000",
                     flag, text);
        return EINVAL;
    }
    *number = (int)value;
    return 0;
}

#endif
