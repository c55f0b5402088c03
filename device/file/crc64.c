/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc64.c - computes the checksum of eight bytes at a time with eight tables:
 * table k holds the effect of a byte on the checksum when k bytes of zeros
 * follow it. The tables are made at the first call.
 */
#include "file/crc64.h"

#include <pthread.h>

enum { SLICES = 8 };

static uint64_t tables[SLICES][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    const uint64_t polynomial = UINT64_C(0xc96c5795d7870f42);

    for (int i = 0; i < 256; i++) {
        uint64_t crc = (uint64_t)i;

        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        tables[0][i] = crc;
    }
    for (int i = 0; i < 256; i++)
        for (int k = 1; k < SLICES; k++)
            tables[k][i] =
                tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 0xff];
}

/* Loads eight bytes one by one, so that the machine's byte order does not
 * matter. */
static uint64_t eight(const unsigned char *p)
{
    uint64_t word = 0;

    for (int i = 0; i < 8; i++)
        word |= (uint64_t)p[i] << 8 * i;
    return word;
}

uint64_t ipu__crc64(uint64_t crc, const void *data, size_t bytes)
{
    const unsigned char *p = data;

    pthread_once(&once, make_tables);
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint64_t word = crc ^ eight(p);

        crc = 0;
        for (int k = 0; k < SLICES; k++)
            crc ^= tables[SLICES - 1 - k][word >> 8 * k & 0xff];
    }
    for (; bytes > 0; bytes--, p++)
        crc = crc >> 8 ^ tables[0][(crc ^ *p) & 0xff];
    return ~crc;
}
