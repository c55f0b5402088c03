/* SPDX-License-Identifier: Apache-2.0 */
/* fnv1a.h - the hash FNV-1a of bytes, to compare ranks by (Fowler, Noll, Vo).
 */
#ifndef MODELS_FNV1A_H
#define MODELS_FNV1A_H

#include <stddef.h>
#include <stdint.h>

#define FNV1A_START UINT64_C(0xcbf29ce484222325)

/* Returns the hash of the bytes hashed so far, which gave hash, and of these
 * bytes. */
static inline uint64_t fnv1a(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
