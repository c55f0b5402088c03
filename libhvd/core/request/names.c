/* SPDX-License-Identifier: Apache-2.0 */
#include "core/request/names.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"

/* Returns true if one of eight bytes is a control character (Mycroft's test, by
 * which a byte borrows from its neighbour only after one that is). */
static bool has_control(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = 0x80 * ones;
    uint64_t delete = word ^ 0x7f * ones;

    return (((word - 0x20 * ones) & ~word) | ((delete - ones) & ~delete)) &
           high;
}

static bool is_clean(const char *name, size_t bytes)
{
    uint64_t word;

    for (; bytes >= sizeof word; bytes -= sizeof word, name += sizeof word) {
        memcpy(&word, name, sizeof word);
        if (has_control(word))
            return false;
    }
    for (; bytes > 0; bytes--, name++)
        if ((unsigned char)*name < 0x20 || *name == 0x7f)
            return false;
    return true;
}

int hvd__name_check(const char *name)
{
    size_t bytes = strnlen(name, HVD_MAX_NAME + 1), i = 0;

    if (bytes > HVD_MAX_NAME)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a name is longer than %d bytes: '%.32s...'",
                         HVD_MAX_NAME, name);
    if (is_clean(name, bytes))
        return (int)bytes;
    while ((unsigned char)name[i] >= 0x20 && name[i] != 0x7f)
        i++;
    return hvd__fail(HVD_ERR_ARGUMENT,
                     "byte %zu of the name '%.64s' is the control character "
                     "0x%02x",
                     i, name, (unsigned)(unsigned char)name[i]);
}
