/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/sizes.h"

error_t sizes_key(struct command_line *line, int key, const char *text,
                  struct sizes *sizes)
{
    switch (key) {
    case 'b': return command_bytes(line, "-b", text, &sizes->least);
    case 'e': return command_bytes(line, "-e", text, &sizes->most);
    case 'f':
        return command_number(line, "-f", text, 2, 1 << 20, &sizes->factor);
    default: return ARGP_ERR_UNKNOWN;
    }
}

error_t sizes_check(struct command_line *line, const struct sizes *sizes,
                    int64_t limit)
{
    if (sizes->least % (int64_t)sizeof(float) != 0)
        return command_refuse(line, "-b: %lld is not a multiple of 4",
                              (long long)sizes->least);
    if (sizes->most > limit)
        return command_refuse(line, "-e: %lld is more than %lld",
                              (long long)sizes->most, (long long)limit);
    if (sizes->least > sizes->most)
        return command_refuse(
            line, "the smallest size, %lld, is above the largest, %lld",
            (long long)sizes->least, (long long)sizes->most);
    return 0;
}
