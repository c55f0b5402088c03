/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - uthash, configured so that it reports a lack of memory instead of
 * exiting: after an ADD, hh.tbl of an element that could not be added is NULL.
 * Keys are fingerprints, 64 bits that need no further hashing.
 */
#ifndef HVD_CORE_HASH_H
#define HVD_CORE_HASH_H

#include <stdint.h>
#include <string.h>

static inline unsigned hvd__hash_of(const void *key)
{
    uint64_t fingerprint;

    memcpy(&fingerprint, key, sizeof fingerprint);
    return (unsigned)fingerprint;
}

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, bytes, hash) ((hash) = hvd__hash_of(key))
#include <uthash.h>

#endif
