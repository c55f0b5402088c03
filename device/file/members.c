/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.c - writes and reads structs. A struct is a count of members, 4
 * bytes; then each member's number and type, one byte each, its count of
 * elements, 2 bytes, and the elements. Zeros at the end of an array are left
 * out, so that the array may grow. There is only one way to write a struct, and
 * no other is read: files with equal contents are equal.
 *
 * An IPU__INDEX is written as an IPU__INT32, index + 1, and left out if none.
 */
#include "file/members.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

/* The largest amount: above the count of iterations of an endless loop. */
#define MOST_AMOUNT ((int64_t)1 << 56)

static uint8_t type_in_file(const struct ipu__layout_member *m)
{
    return m->type == IPU__INDEX ? IPU__INT32 : m->type;
}

static uint32_t width_of(const struct ipu__layout_member *m)
{
    uint8_t type = type_in_file(m);

    return type == IPU__BOOL ? 1 : type == IPU__INT32 ? 4 : 8;
}

/* Adds a number to an index. The sum is unsigned, as an index that was read may
 * be any number; it is checked later. */
static void shift_index(void *index, uint32_t by)
{
    uint32_t sum;

    memcpy(&sum, index, sizeof sum);
    sum += by;
    memcpy(index, &sum, sizeof sum);
}

/* Returns the elements of a member as a file has them. place is used if they
 * are not the same in memory. */
static const unsigned char *as_in_file(const struct ipu__layout_member *m,
                                       const void *value, int32_t *place)
{
    const unsigned char *data = (const unsigned char *)value + m->offset;

    if (m->type != IPU__INDEX)
        return data;
    memcpy(place, data, sizeof *place);
    shift_index(place, 1);
    return (const unsigned char *)place;
}

static bool is_zero(const unsigned char *data, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (data[i])
            return false;
    return true;
}

/* Returns the number of elements up to the last one that is not 0. */
static uint16_t count_of(const struct ipu__layout_member *m, const void *value)
{
    int32_t place;
    const unsigned char *data = as_in_file(m, value, &place);
    uint32_t width = width_of(m), count = m->bytes / width;

    while (count > 0 && is_zero(data + (count - 1) * width, width))
        count--;
    return (uint16_t)count;
}

void ipu__put_struct(struct ipu__writer *writer,
                     const struct ipu__layout *layout, const void *value)
{
    int32_t used = 0;

    for (int32_t i = 0; i < layout->nmembers; i++)
        used += count_of(&layout->members[i], value) > 0;
    ipu__put_int(writer, used);
    for (int32_t i = 0; i < layout->nmembers; i++) {
        const struct ipu__layout_member *m = &layout->members[i];
        uint16_t count = count_of(m, value);
        uint8_t type = type_in_file(m);
        int32_t place;

        if (count == 0)
            continue;
        ipu__put(writer, &m->number, 1);
        ipu__put(writer, &type, 1);
        ipu__put(writer, &count, sizeof count);
        ipu__put(writer, as_in_file(m, value, &place),
                 (size_t)count * width_of(m));
    }
}

static const struct ipu__layout_member *find_member(
    const struct ipu__layout *layout, uint8_t number)
{
    for (int32_t i = 0; i < layout->nmembers; i++)
        if (layout->members[i].number == number)
            return &layout->members[i];
    return NULL;
}

static bool are_bools(const unsigned char *data, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (data[i] > 1)
            return false;
    return true;
}

static int get_member(struct ipu__reader *r, const struct ipu__layout *layout,
                      uint8_t *last, unsigned char *value)
{
    const struct ipu__layout_member *m;
    uint8_t number, type;
    uint16_t count;
    uint32_t width;

    IPU_TRY(ipu__get(r, &number, 1));
    IPU_TRY(ipu__get(r, &type, 1));
    IPU_TRY(ipu__get(r, &count, sizeof count));
    m = find_member(layout, number);
    if (!m || type_in_file(m) != type || number <= *last)
        return ipu__damaged(r, "%s has no member %d of type %d there",
                            layout->name, number, type);
    *last = number;
    width = width_of(m);
    if (count == 0 || count > m->bytes / width)
        return ipu__damaged(r, "%s: %d of %s, of which there are %d",
                            layout->name, count, m->name,
                            (int)(m->bytes / width));
    value += m->offset;
    IPU_TRY(ipu__get(r, value, (size_t)count * width));
    if (is_zero(value + (count - 1u) * width, width) ||
        (type == IPU__BOOL && !are_bools(value, count)))
        return ipu__damaged(r, "%s: %s is not as it is written", layout->name,
                            m->name);
    if (m->type == IPU__INDEX)
        shift_index(value, UINT32_MAX);
    return IPU_OK;
}

int ipu__get_struct(struct ipu__reader *r, const struct ipu__layout *layout,
                    void *value)
{
    int32_t count;
    uint8_t last = 0;

    for (int32_t i = 0; i < layout->nmembers; i++)
        if (layout->members[i].type == IPU__INDEX)
            memset((char *)value + layout->members[i].offset, -1,
                   sizeof(int32_t));
    IPU_TRY(ipu__get_count(r, "members", 5, &count));
    for (int32_t i = 0; i < count; i++)
        IPU_TRY(get_member(r, layout, &last, value));
    return IPU_OK;
}

int ipu__check_amounts(const struct ipu__reader *r,
                       const struct ipu__layout *layout, const void *value)
{
    for (int32_t i = 0; i < layout->nmembers; i++) {
        const struct ipu__layout_member *m = &layout->members[i];
        int64_t amount;

        if (m->type != IPU__INT64)
            continue;
        for (uint32_t at = 0; at < m->bytes; at += sizeof amount) {
            memcpy(&amount, (const char *)value + m->offset + at,
                   sizeof amount);
            if (amount < 0 || amount > MOST_AMOUNT)
                return ipu__damaged(r, "%s: %s is %" PRId64, layout->name,
                                    m->name, amount);
        }
    }
    return IPU_OK;
}
