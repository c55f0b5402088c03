/* SPDX-License-Identifier: Apache-2.0 */
#include "core/request/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/status.h"

int hvd__names_init(struct hvd__names *names, size_t most)
{
    size_t nplaces = 2;

    while (nplaces < 2 * most)
        nplaces *= 2;
    names->places = calloc(nplaces, sizeof *names->places);
    names->nplaces = nplaces;
    if (!names->places)
        return hvd__fail_memory(nplaces * sizeof *names->places);
    return HVD_OK;
}

void hvd__names_fini(struct hvd__names *names)
{
    free(names->places);
    *names = (struct hvd__names){0};
}

/* A name is stored at the place that its fingerprint gives or, if that is
 * taken, at the next free one. */
bool hvd__names_add(struct hvd__names *names, const char *name)
{
    size_t mask = names->nplaces - 1;
    size_t i = hvd__fingerprint(0, name, strlen(name)) & mask;

    for (; names->places[i]; i = (i + 1) & mask)
        if (strcmp(names->places[i], name) == 0)
            return false;
    names->places[i] = name;
    return true;
}

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
