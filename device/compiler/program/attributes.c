/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attributes.c - comparing the attributes of ops: member by member, since a
 * struct may have any bytes between its members.
 */
#include <stddef.h>
#include <string.h>

#include "compiler/program.h"
#include "graph/layout.h"

uint64_t ipu__hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

uint64_t ipu__attributes_hash(uint64_t hash, const struct ipu__attributes *a)
{
    const struct ipu__layout *layout = &ipu__attributes_layout;

    for (int32_t i = 0; i < layout->nmembers; i++)
        hash =
            ipu__hash_bytes(hash, (const char *)a + layout->members[i].offset,
                            layout->members[i].bytes);
    return hash;
}

/* Compares all members but the one at offset but. */
static bool equal_but(const struct ipu__attributes *a,
                      const struct ipu__attributes *b, size_t but)
{
    const struct ipu__layout *layout = &ipu__attributes_layout;

    for (int32_t i = 0; i < layout->nmembers; i++) {
        const struct ipu__layout_member *m = &layout->members[i];

        if (m->offset != but &&
            memcmp((const char *)a + m->offset, (const char *)b + m->offset,
                   m->bytes) != 0)
            return false;
    }
    return true;
}

bool ipu__attributes_equal(const struct ipu__attributes *a,
                           const struct ipu__attributes *b)
{
    return equal_but(a, b, sizeof *a);
}

bool ipu__attributes_congruent(const struct ipu__attributes *a,
                               const struct ipu__attributes *b)
{
    return equal_but(a, b, offsetof(struct ipu__attributes, seed)) &&
           a->fn == b->fn && a->context == b->context;
}
