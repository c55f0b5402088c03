/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.c - an array begins with 0x93 NUMPY, a version, the length of a header of
 * text, and that: a dictionary as Python writes it, with the keys descr,
 * fortran_order and shape in any order.
 */
#include "files/npy.h"

#include "output/problem.h"

#include <ctype.h>
#include <hvd.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6, MOST_HEADER = 10000, ALIGNMENT = 64 };

static const struct {
    const char *name; /* without the order of bytes */
    enum safetensors_dtype dtype;
} descriptions[] = {
    {"b1", SAFETENSORS_BOOL}, {"u1", SAFETENSORS_U8},  {"i1", SAFETENSORS_I8},
    {"u2", SAFETENSORS_U16},  {"i2", SAFETENSORS_I16}, {"u4", SAFETENSORS_U32},
    {"i4", SAFETENSORS_I32},  {"u8", SAFETENSORS_U64}, {"i8", SAFETENSORS_I64},
    {"f2", SAFETENSORS_F16},  {"f4", SAFETENSORS_F32}, {"f8", SAFETENSORS_F64},
    {"c8", SAFETENSORS_C64},
};
enum { DESCRIPTIONS = sizeof descriptions / sizeof *descriptions };

/* ------------------------------------------------------------------ reading */

/* The header's text, which ends with a zero. */
struct cursor {
    const char *at;
};

static bool take(struct cursor *c, const char *word)
{
    while (isspace((unsigned char)*c->at))
        c->at++;
    if (strncmp(c->at, word, strlen(word)) != 0)
        return false;
    c->at += strlen(word);
    return true;
}

/* Takes a text in quotes. */
static bool take_text(struct cursor *c, char *text, size_t room)
{
    const char quote = take(c, "'") ? '\'' : take(c, "\"") ? '"' : '\0';
    const char *end = quote ? strchr(c->at, quote) : NULL;

    if (!end || (size_t)(end - c->at) >= room)
        return false;
    memcpy(text, c->at, (size_t)(end - c->at));
    text[end - c->at] = '\0';
    c->at = end + 1;
    return true;
}

static bool take_shape(struct cursor *c, struct npy *npy)
{
    npy->ndim = 0;
    if (!take(c, "("))
        return false;
    while (!take(c, ")")) {
        char *end;

        while (isspace((unsigned char)*c->at))
            c->at++;
        if (!isdigit((unsigned char)*c->at) ||
            npy->ndim == (int32_t)(sizeof npy->shape / sizeof *npy->shape))
            return false;
        npy->shape[npy->ndim++] = strtoll(c->at, &end, 10);
        c->at = end;
        if (*c->at == 'L') /* a long of Python 2 */
            c->at++;
        if (!take(c, ",") && *c->at != ')' && !isspace((unsigned char)*c->at))
            return false;
    }
    return true;
}

static bool take_description(struct cursor *c, struct npy *npy)
{
    char text[16];

    if (!take_text(c, text, sizeof text) || !strchr("<>|=", text[0]))
        return false;
    for (int i = 0; i < DESCRIPTIONS; i++)
        if (strcmp(text + 1, descriptions[i].name) == 0) {
            npy->dtype = descriptions[i].dtype;
            npy->swapped = text[0] == '>' && text[2] != '1';
            return true;
        }
    return false;
}

/* Reads the dictionary: each key once. Returns false if it is none of
 * numbers. */
static bool take_dictionary(struct cursor *c, struct npy *npy)
{
    unsigned seen = 0;
    char key[16];

    if (!take(c, "{"))
        return false;
    while (!take(c, "}")) {
        unsigned bit;
        bool good;

        if (!take_text(c, key, sizeof key) || !take(c, ":"))
            return false;
        if (strcmp(key, "descr") == 0) {
            bit = 1;
            good = take_description(c, npy);
        } else if (strcmp(key, "shape") == 0) {
            bit = 2;
            good = take_shape(c, npy);
        } else {
            bit = 4;
            npy->fortran = take(c, "True");
            good = strcmp(key, "fortran_order") == 0 &&
                   (npy->fortran || take(c, "False"));
        }
        if (!good || seen & bit || (!take(c, ",") && *c->at != '}'))
            return false;
        seen |= bit;
    }
    return seen == 7;
}

static int refuse(const char *name, const char *what)
{
    return problem_fail(HVD_ERR_FILE, "%s: %s", name, what);
}

int npy_parse(const char *name, const void *bytes, size_t length, size_t whole,
              struct npy *npy)
{
    const unsigned char *b = bytes;
    const size_t prefix = length > MAGIC && b[MAGIC] > 1 ? 12 : 10;
    size_t header = 0;
    char text[MOST_HEADER + 1];
    struct cursor cursor = {text};
    struct safetensors_tensor t;

    *npy = (struct npy){.ndim = 0};
    if (length < prefix || memcmp(b, magic, MAGIC) != 0 || b[MAGIC] < 1 ||
        b[MAGIC] > 3)
        return refuse(name, "this is no array of numpy");
    for (size_t i = prefix; i-- > MAGIC + 2;)
        header = header << 8 | b[i];
    if (header > MOST_HEADER || header > length - prefix)
        return refuse(name, "its header is too long: is it truncated?");
    memcpy(text, b + prefix, header);
    text[header] = '\0';
    if (!take_dictionary(&cursor, npy))
        return refuse(name, "its header is not that of an array of numbers");
    t = (struct safetensors_tensor){.name = name,
                                    .dtype = npy->dtype,
                                    .ndim = npy->ndim,
                                    .shape = npy->shape};
    if (safetensors_measure(&t) < 0)
        return refuse(name, "its shape is larger than any file");
    if (t.bytes > whole - prefix - header)
        return refuse(name, "it has fewer elements than its header says: is it "
                            "truncated?");
    npy->fortran = npy->fortran && npy->ndim > 1;
    npy->first = prefix + header;
    npy->bytes = t.bytes;
    npy->count = t.count;
    return 0;
}

/* Copies an element of so many bytes, perhaps turned round. A complex number is
 * two. */
static void copy_element(const struct npy *npy, const unsigned char *in,
                         unsigned char *out, size_t bytes)
{
    const size_t part = npy->dtype == SAFETENSORS_C64 ? bytes / 2 : bytes;

    for (size_t i = 0; i < bytes; i++)
        out[i] = in[npy->swapped ? i / part * part + part - 1 - i % part : i];
}

void npy_copy(const struct npy *npy, const void *in, void *out)
{
    const size_t bytes = safetensors_bits(npy->dtype) / 8;
    int64_t index[32] = {0};

    if (!npy->fortran && !npy->swapped) {
        if (npy->bytes > 0)
            memcpy(out, in, npy->bytes);
        return;
    }
    for (int64_t i = 0; i < npy->count; i++) {
        int64_t from = i;

        if (npy->fortran) {
            from = 0;
            for (int32_t k = npy->ndim; k-- > 0;)
                from = from * npy->shape[k] + index[k];
            for (int32_t k = npy->ndim; k-- > 0;) {
                if (++index[k] < npy->shape[k])
                    break;
                index[k] = 0;
            }
        }
        copy_element(npy, (const unsigned char *)in + (size_t)from * bytes,
                     (unsigned char *)out + (size_t)i * bytes, bytes);
    }
}

/* ------------------------------------------------------------------ writing */

char *npy_header(const struct safetensors_tensor *t, size_t *bytes)
{
    char shape[1024] = "", *header = NULL;
    size_t n = 0;
    int k = 0, length;

    while (k < DESCRIPTIONS && descriptions[k].dtype != t->dtype)
        k++;
    if (k == DESCRIPTIONS || t->ndim > 32) {
        problem_fail(HVD_ERR_UNSUPPORTED,
                     "'%.80s' is of dtype %s and %d dimensions, which numpy "
                     "does not have",
                     t->name, safetensors_name(t->dtype), t->ndim);
        return NULL;
    }
    for (int32_t i = 0; i < t->ndim; i++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" PRId64 "%s",
                              i > 0 ? " " : "", t->shape[i],
                              i + 1 < t->ndim || t->ndim == 1 ? "," : "");
    length =
        asprintf(&header,
                 "%s%c%c%c%c{'descr': '%c%s', 'fortran_order': False, "
                 "'shape': (%s), }",
                 magic, 1, 1, 1, 1, safetensors_bits(t->dtype) == 8 ? '|' : '<',
                 descriptions[k].name, shape);
    *bytes = ((size_t)length + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    header = length < 0 ? NULL : realloc(header, *bytes);
    if (!header) {
        problem_fail(HVD_ERR_MEMORY, "out of memory for an array");
        return NULL;
    }
    memset(header + length, ' ', *bytes - (size_t)length);
    header[*bytes - 1] = '\n';
    header[MAGIC + 1] = 0;
    header[MAGIC + 2] = (char)((*bytes - 10) & 255);
    header[MAGIC + 3] = (char)((*bytes - 10) >> 8);
    return header;
}
