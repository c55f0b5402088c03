/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/mac.h"

struct state {
    uint64_t a, b, c, d;
};

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void mix(struct state *s, int rounds)
{
    while (rounds-- > 0) {
        s->a += s->b;
        s->c += s->d;
        s->b = rotate(s->b, 13) ^ s->a;
        s->d = rotate(s->d, 16) ^ s->c;
        s->a = rotate(s->a, 32);
        s->c += s->b;
        s->a += s->d;
        s->b = rotate(s->b, 17) ^ s->c;
        s->d = rotate(s->d, 21) ^ s->a;
        s->c = rotate(s->c, 32);
    }
}

static void absorb(struct state *s, uint64_t word)
{
    s->d ^= word;
    mix(s, 2);
    s->a ^= word;
}

/* Returns up to eight bytes as a word, the first in the lowest bits. */
static uint64_t word_of(const unsigned char *at, size_t bytes)
{
    uint64_t word = 0;

    while (bytes-- > 0)
        word = word << 8 | at[bytes];
    return word;
}

uint64_t hvd__mac(const uint64_t key[2], const void *data, size_t bytes)
{
    const unsigned char *at = data;
    struct state s = {
        .a = key[0] ^ UINT64_C(0x736f6d6570736575),
        .b = key[1] ^ UINT64_C(0x646f72616e646f6d),
        .c = key[0] ^ UINT64_C(0x6c7967656e657261),
        .d = key[1] ^ UINT64_C(0x7465646279746573),
    };
    size_t left = bytes;

    for (; left >= 8; left -= 8, at += 8)
        absorb(&s, word_of(at, 8));
    absorb(&s, word_of(at, left) | (uint64_t)bytes << 56);
    s.c ^= 0xff;
    mix(&s, 4);
    return s.a ^ s.b ^ s.c ^ s.d;
}
