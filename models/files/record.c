/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - CRC-32C by a table, eight bytes at once. */
#include "files/record.h"

#include "output/problem.h"

#include <hvd.h>
#include <pthread.h>
#include <string.h>

static uint32_t tables[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* tables[k][b]: the remainder of byte b with k zero bytes behind it. */
static void fill_tables(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t x = b;

        for (int i = 0; i < 8; i++)
            x = x & 1 ? x >> 1 ^ 0x82f63b78U : x >> 1;
        tables[0][b] = x;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            tables[k][b] =
                tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
}

uint32_t record_checksum(const void *bytes, size_t count)
{
    const unsigned char *at = bytes, *end = at + count;
    uint32_t x = ~0U;

    pthread_once(&once, fill_tables);
    for (; end - at >= 8; at += 8) {
        uint64_t eight;

        memcpy(&eight, at, sizeof eight);
        eight ^= x;
        x = 0;
        for (int k = 0; k < 8; k++)
            x ^= tables[7 - k][eight >> 8 * k & 0xff];
    }
    for (; at < end; at++)
        x = x >> 8 ^ tables[0][(x ^ *at) & 0xff];
    x = ~x;
    return (x >> 15 | x << 17) + 0xa282ead8U;
}

static uint32_t read_checksum(const unsigned char *at)
{
    uint32_t sum;

    memcpy(&sum, at, sizeof sum);
    return sum;
}

int record_find(const char *path, const void *bytes, size_t count,
                size_t offset, const unsigned char **at, size_t *length)
{
    const unsigned char *head = (const unsigned char *)bytes + offset;
    size_t left = count - offset;
    uint64_t size;

    if (left == 0)
        return 0;
    if (left < RECORD_HEAD)
        return problem_fail(HVD_ERR_FILE,
                            "%s: truncated: the record at byte %zu has %zu "
                            "bytes of its head",
                            path, offset, left);
    memcpy(&size, head, sizeof size);
    if (read_checksum(head + 8) != record_checksum(head, 8))
        return problem_fail(HVD_ERR_FILE,
                            "%s: damaged, or no file of records: the length "
                            "at byte %zu has a wrong checksum",
                            path, offset);
    left -= RECORD_HEAD;
    if (left < RECORD_TAIL || size > left - RECORD_TAIL)
        return problem_fail(HVD_ERR_FILE,
                            "%s: truncated: the record at byte %zu has %zu of "
                            "%llu bytes",
                            path, offset, left, (unsigned long long)size);
    if (read_checksum(head + RECORD_HEAD + size) !=
        record_checksum(head + RECORD_HEAD, size))
        return problem_fail(HVD_ERR_FILE,
                            "%s: damaged: the record at byte %zu has a wrong "
                            "checksum",
                            path, offset);
    *at = head + RECORD_HEAD;
    *length = size;
    return 1;
}

void record_add(struct bytes *file, const void *data, size_t length)
{
    uint64_t size = length;
    uint32_t head = record_checksum(&size, sizeof size);
    uint32_t tail = record_checksum(data, length);

    bytes_add(file, &size, sizeof size);
    bytes_add(file, &head, sizeof head);
    bytes_add(file, data, length);
    bytes_add(file, &tail, sizeof tail);
}
