/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - one pass over memory that copies and hashes.
 *
 * A block of 64 bytes is four pairs of words, one for each of four lanes. A
 * lane folds its pairs one after the other, and the lanes do not wait for each
 * other: a product takes several cycles, and one can begin in each. In the end
 * the lanes are folded together. Large copies bypass the caches where the
 * processor can (x86): nobody reads a copy soon, and a store that does not read
 * the line first moves two thirds of the bytes.
 */
#include "state/copy.h"

#include <string.h>

#include "base/fingerprint.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { BLOCK = 64, STREAM_BYTES = 1 << 20 };

struct lanes {
    uint64_t a, b, c, d;
};

static inline uint64_t fold_pair(uint64_t lane, uint64_t first, uint64_t second)
{
    return hvd__fold(lane ^ first, second ^ UINT64_C(0xe7037ed1a0b428db)) +
           first;
}

static inline void fold_block(struct lanes *lanes, const unsigned char *from)
{
    uint64_t w[8];

    memcpy(w, from, sizeof w);
    lanes->a = fold_pair(lanes->a, w[0], w[1]);
    lanes->b = fold_pair(lanes->b, w[2], w[3]);
    lanes->c = fold_pair(lanes->c, w[4], w[5]);
    lanes->d = fold_pair(lanes->d, w[6], w[7]);
}

#ifdef __SSE2__
/* Copies blocks to an address that is a multiple of 16. */
static void stream_blocks(unsigned char *to, const unsigned char *from,
                          size_t nblocks, struct lanes *given)
{
    struct lanes lanes = *given;

    for (size_t n = nblocks; n > 0; n--, to += BLOCK, from += BLOCK) {
        fold_block(&lanes, from);
        for (int i = 0; i < BLOCK; i += 16)
            _mm_stream_si128((__m128i *)(void *)(to + i),
                             _mm_loadu_si128((const void *)(from + i)));
    }
    _mm_sfence();
    *given = lanes;
}
#endif

/* Copies blocks, unless to is NULL. */
static void copy_blocks(unsigned char *to, const unsigned char *from,
                        size_t nblocks, struct lanes *given)
{
    struct lanes lanes = *given;

    for (size_t n = nblocks; n > 0; n--, from += BLOCK) {
        fold_block(&lanes, from);
        if (to) {
            memcpy(to, from, BLOCK);
            to += BLOCK;
        }
    }
    *given = lanes;
}

uint64_t hvd__copy_hashed(void *to, const void *from, size_t bytes)
{
    const size_t nblocks = bytes / BLOCK, done = nblocks * BLOCK;
    const unsigned char *source = from;
    unsigned char *target = to;
    struct lanes lanes = {hvd__mix(1), hvd__mix(2), hvd__mix(3), hvd__mix(4)};
    uint64_t h;

    if (bytes == 0)
        return 0;
#ifdef __SSE2__
    if (target && bytes >= STREAM_BYTES && (uintptr_t)target % 16 == 0)
        stream_blocks(target, source, nblocks, &lanes);
    else
#endif
        copy_blocks(target, source, nblocks, &lanes);
    if (target)
        memcpy(target + done, source + done, bytes - done);
    h = hvd__fingerprint(bytes, &lanes, sizeof lanes);
    return hvd__fingerprint(h, source + done, bytes - done);
}
