/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies are what was copied, and every bit of it counts in their hash.
 */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "state/copy.h"
#include "suite.h"

enum { MOST = (2 << 20) + 333 };

static unsigned char *source, *target;

static void set_up(void)
{
    source = malloc(MOST + 64);
    target = malloc(MOST + 64);
    for (int i = 0; i < MOST + 64; i++)
        source[i] = (unsigned char)((unsigned)i * 2654435761U >> 13);
}

static void tear_down(void)
{
    free(source);
    free(target);
}

/* Short ones, and long ones that bypass the caches, at any address. */
static size_t size_of(int number)
{
    return number < 300 ? (size_t)number : (size_t)(MOST - number);
}

TEST(copies_are_exact_and_hashes_do_not_depend_on_addresses)
{
    for (int i = 0; i < 340; i++) {
        const size_t bytes = size_of(i);
        unsigned char *from = source + i % 7, *to = target + i % 17;
        uint64_t hash;

        to[bytes] = 77;
        hash = hvd__copy_hashed(to, from, bytes);
        ck_assert_msg(memcmp(to, from, bytes) == 0, "%zu bytes", bytes);
        ck_assert_int_eq(to[bytes], 77);
        ck_assert_uint_eq(hvd__copy_hashed(NULL, to, bytes), hash);
    }
}

TEST(each_bit_and_the_length_count)
{
    for (size_t bytes = 1; bytes < 200; bytes++) {
        const uint64_t hash = hvd__copy_hashed(NULL, source, bytes);

        ck_assert_uint_ne(hvd__copy_hashed(NULL, source, bytes - 1), hash);
        for (size_t bit = 0; bit < 8 * bytes; bit++) {
            source[bit / 8] ^= (unsigned char)(1U << bit % 8);
            ck_assert_uint_ne(hvd__copy_hashed(NULL, source, bytes), hash);
            source[bit / 8] ^= (unsigned char)(1U << bit % 8);
        }
    }
}

/* Zeros hash by their number, and words by their order. */
TEST(zeros_and_exchanged_words_differ)
{
    uint64_t words[32] = {0}, before = 1;

    for (size_t bytes = 0; bytes <= sizeof words; bytes++) {
        const uint64_t hash = hvd__copy_hashed(NULL, words, bytes);

        ck_assert_uint_ne(hash, before);
        before = hash;
    }
    for (int a = 0; a < 32; a++)
        for (int b = 0; b < a; b++) {
            uint64_t first, second;

            words[a] = 1;
            words[b] = 2;
            first = hvd__copy_hashed(NULL, words, sizeof words);
            words[a] = 2;
            words[b] = 1;
            second = hvd__copy_hashed(NULL, words, sizeof words);
            ck_assert_uint_ne(first, second);
            words[a] = words[b] = 0;
        }
}

TEST_MAIN("state_copy", .set_up = set_up, .tear_down = tear_down)
