/* SPDX-License-Identifier: Apache-2.0 */
/*
 * letter.c - writes and reads letters byte by byte, the lowest byte first.
 *
 *     head   magic 4, world 4, from 4, members 4, is_answer 1,
 *            is_dismissed 1, stage 1, base 4, round 4, failed 4, seen 4,
 *            founded 4, few 4, of 4
 *     sets   base_list, elders, list, ready, suspected, left, withdrawn, lost
 *            for each reason: so many words of 8 bytes as the members take
 *     MAC    8, of all before it
 *
 * A letter that was recorded and is sent again says nothing that has stopped
 * being true (survivors.c).
 */
#include "watch/letter.h"

#include <string.h>

#include "watch/mac.h"

enum { HEAD_BYTES = 47, MAC_BYTES = 8, NSETS = 7 + HVD__NREASONS };

_Static_assert(HEAD_BYTES + NSETS * HVD__MEMBER_SET_WORDS * 8 + MAC_BYTES <=
                   HVD__LETTER_BYTES,
               "a letter has room for all members");

static int words_of(int n)
{
    return (n + 63) / 64;
}

static size_t size_of(int n)
{
    return HEAD_BYTES + (size_t)NSETS * (size_t)words_of(n) * 8 + MAC_BYTES;
}

static unsigned char *put(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *at++ = (unsigned char)(value >> 8 * i);
    return at;
}

static uint64_t get(const unsigned char **at, int bytes)
{
    uint64_t value = 0;

    for (int i = 0; i < bytes; i++)
        value |= (uint64_t) * (*at)++ << 8 * i;
    return value;
}

/* Lists the sets of a letter in their order. */
static void list_sets(struct hvd__letter *letter,
                      struct hvd__member_set *sets[NSETS])
{
    sets[0] = &letter->base_list;
    sets[1] = &letter->elders;
    sets[2] = &letter->list;
    sets[3] = &letter->ready;
    sets[4] = &letter->suspected;
    sets[5] = &letter->left;
    sets[6] = &letter->withdrawn;
    for (int reason = 0; reason < HVD__NREASONS; reason++)
        sets[7 + reason] = &letter->lost[reason];
}

size_t hvd__letter_write(const struct hvd__letter *given, int n, uint32_t world,
                         const uint64_t key[2],
                         unsigned char bytes[HVD__LETTER_BYTES])
{
    struct hvd__letter letter = *given;
    struct hvd__member_set *sets[NSETS];
    unsigned char *at = put(bytes, HVD__LETTER_MAGIC, 4);

    list_sets(&letter, sets);
    at = put(at, world, 4);
    at = put(at, (uint32_t)letter.from, 4);
    at = put(at, (uint32_t)n, 4);
    at = put(at, letter.is_answer, 1);
    at = put(at, letter.is_dismissed, 1);
    at = put(at, letter.stage, 1);
    at = put(at, letter.base, 4);
    at = put(at, letter.round, 4);
    at = put(at, letter.failed, 4);
    at = put(at, letter.seen, 4);
    at = put(at, letter.founded, 4);
    at = put(at, (uint32_t)letter.few, 4);
    at = put(at, (uint32_t)letter.of, 4);
    for (int i = 0; i < NSETS; i++)
        for (int w = 0; w < words_of(n); w++)
            at = put(at, sets[i]->words[w], 8);
    put(at, hvd__mac(key, bytes, size_of(n) - MAC_BYTES), MAC_BYTES);
    return size_of(n);
}

/* Returns whether a set has members from 0 to n - 1 only. */
static bool is_of(const struct hvd__member_set *set, int n)
{
    return n % 64 == 0 || set->words[n / 64] >> n % 64 == 0;
}

bool hvd__letter_read(struct hvd__letter *letter, int n, uint32_t world,
                      const uint64_t key[2], const unsigned char *bytes,
                      size_t size)
{
    const unsigned char *at = bytes, *mac;
    struct hvd__member_set *sets[NSETS];
    bool is_good = true;

    if (size != size_of(n))
        return false;
    mac = bytes + size - MAC_BYTES;
    if (get(&at, 4) != HVD__LETTER_MAGIC || get(&at, 4) != world ||
        get(&mac, MAC_BYTES) != hvd__mac(key, bytes, size - MAC_BYTES))
        return false;
    *letter = (struct hvd__letter){0};
    list_sets(letter, sets);
    letter->from = (int32_t)get(&at, 4);
    is_good &= letter->from >= 0 && letter->from < n;
    is_good &= get(&at, 4) == (uint64_t)n;
    letter->is_answer = get(&at, 1) != 0;
    letter->is_dismissed = get(&at, 1) != 0;
    letter->stage = (uint8_t)get(&at, 1);
    is_good &= letter->stage < HVD__NSURVIVOR_STAGES;
    letter->base = (uint32_t)get(&at, 4);
    letter->round = (uint32_t)get(&at, 4);
    letter->failed = (uint32_t)get(&at, 4);
    letter->seen = (uint32_t)get(&at, 4);
    letter->founded = (uint32_t)get(&at, 4);
    letter->few = (int32_t)get(&at, 4);
    letter->of = (int32_t)get(&at, 4);
    for (int i = 0; i < NSETS; i++) {
        for (int w = 0; w < words_of(n); w++)
            sets[i]->words[w] = get(&at, 8);
        is_good &= is_of(sets[i], n);
    }
    return is_good;
}
