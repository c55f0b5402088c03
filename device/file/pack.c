/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c - converts numbers, texts and arrays to bytes and back.
 *
 * Nothing is aligned, and there is no padding. A text is stored as its length,
 * 4 bytes, and its bytes without the 0; the length NO_TEXT means NULL. A block
 * is stored as its length, 8 bytes, and its bytes.
 *
 * Reading never trusts a length: it is compared with the bytes that are left,
 * and with the expected length if that is known, before memory is allocated. So
 * a file takes no more memory than a small multiple of its own length.
 */
#include "file/pack.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* The length of a text that is NULL. */
#define NO_TEXT UINT32_MAX

/* ------------------------------------------------------------------ writing */

static bool grow(struct ipu__writer *w, size_t bytes)
{
    size_t wanted, more = w->capacity ? w->capacity : 4096;
    unsigned char *grown;

    if (__builtin_add_overflow(w->bytes, bytes, &wanted))
        return false;
    if (wanted <= w->capacity)
        return true;
    while (more < wanted)
        if (__builtin_mul_overflow(more, (size_t)2, &more))
            return false;
    grown = realloc(w->data, more);
    if (!grown)
        return false;
    w->data = grown;
    w->capacity = more;
    return true;
}

void ipu__put(struct ipu__writer *w, const void *data, size_t bytes)
{
    if (bytes == 0 || w->failed)
        return;
    if (!grow(w, bytes)) {
        w->failed = true;
        return;
    }
    memcpy(w->data + w->bytes, data, bytes);
    w->bytes += bytes;
}

void ipu__put_int(struct ipu__writer *w, int32_t value)
{
    ipu__put(w, &value, sizeof value);
}

void ipu__put_long(struct ipu__writer *w, int64_t value)
{
    ipu__put(w, &value, sizeof value);
}

void ipu__put_ints(struct ipu__writer *w, const int32_t *values, int32_t count)
{
    ipu__put_int(w, count);
    ipu__put(w, values, (size_t)count * sizeof *values);
}

void ipu__put_text(struct ipu__writer *w, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    uint32_t kept = text ? (uint32_t)length : NO_TEXT;

    if (length >= NO_TEXT) {
        w->failed = true;
        return;
    }
    ipu__put(w, &kept, sizeof kept);
    ipu__put(w, text, length);
}

void ipu__put_block(struct ipu__writer *w, const void *data, size_t bytes)
{
    ipu__put_long(w, (int64_t)bytes);
    ipu__put(w, data, bytes);
}

void ipu__writer_fini(struct ipu__writer *w)
{
    free(w->data);
    *w = (struct ipu__writer){0};
}

/* ------------------------------------------------------------------ reading */

int ipu__damaged(const struct ipu__reader *reader, const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return ipu__fail(IPU_ERR_DATA, "%s: damaged at byte %zu: %s", reader->path,
                     reader->at, text);
}

int ipu__get(struct ipu__reader *r, void *data, size_t bytes)
{
    if (bytes > r->bytes - r->at)
        return ipu__damaged(r, "it ends within something of %zu bytes", bytes);
    if (bytes > 0)
        memcpy(data, r->data + r->at, bytes);
    r->at += bytes;
    return IPU_OK;
}

int ipu__get_int(struct ipu__reader *r, int32_t *value)
{
    return ipu__get(r, value, sizeof *value);
}

int ipu__get_long(struct ipu__reader *r, int64_t *value)
{
    return ipu__get(r, value, sizeof *value);
}

int ipu__get_index(struct ipu__reader *r, const char *what, int32_t least,
                   int32_t most, int32_t *value)
{
    IPU_TRY(ipu__get_int(r, value));
    if (*value >= least && *value <= most)
        return IPU_OK;
    return ipu__damaged(r, "%s is %d, not %d to %d", what, (int)*value,
                        (int)least, (int)most);
}

int ipu__get_count(struct ipu__reader *r, const char *what, size_t each,
                   int32_t *count)
{
    IPU_TRY(ipu__get_int(r, count));
    if (*count >= 0 && (size_t)*count <= (r->bytes - r->at) / each)
        return IPU_OK;
    return ipu__damaged(r, "%d %s in the %zu bytes that are left", (int)*count,
                        what, r->bytes - r->at);
}

int ipu__get_ints(struct ipu__reader *r, const char *what, int32_t **values,
                  int32_t *count)
{
    *values = NULL;
    IPU_TRY(ipu__get_count(r, what, sizeof **values, count));
    IPU_TRY(ipu__new_array(values, (size_t)*count, sizeof **values));
    return ipu__get(r, *values, (size_t)*count * sizeof **values);
}

int ipu__get_text(struct ipu__reader *r, const char *what, bool or_null,
                  char **text)
{
    uint32_t length = 0;
    char *copy;

    *text = NULL;
    IPU_TRY(ipu__get(r, &length, sizeof length));
    if (length == NO_TEXT && or_null)
        return IPU_OK;
    if (length > r->bytes - r->at)
        return ipu__damaged(r, "%s of %" PRIu32 " bytes", what, length);
    if (memchr(r->data + r->at, '\0', length))
        return ipu__damaged(r, "%s has a 0 in it", what);
    copy = malloc((size_t)length + 1);
    if (!copy)
        return ipu__fail_memory((size_t)length + 1);
    copy[length] = '\0';
    if (length > 0)
        memcpy(copy, r->data + r->at, length);
    r->at += length;
    *text = copy;
    return IPU_OK;
}

int ipu__get_block(struct ipu__reader *r, const char *what, size_t bytes,
                   void **data)
{
    int64_t kept = 0;

    *data = NULL;
    IPU_TRY(ipu__get_long(r, &kept));
    if (kept < 0 || (uint64_t)kept != bytes || bytes > r->bytes - r->at)
        return ipu__damaged(r,
                            "%s of %" PRId64 " bytes, of %zu that there must "
                            "be and %zu that are left",
                            what, kept, bytes, r->bytes - r->at);
    *data = malloc(bytes ? bytes : 1);
    if (!*data)
        return ipu__fail_memory(bytes);
    return ipu__get(r, *data, bytes);
}

int ipu__get_end(const struct ipu__reader *r)
{
    return r->at == r->bytes
               ? IPU_OK
               : ipu__damaged(r, "%zu bytes too many", r->bytes - r->at);
}
