/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - finds where a value stands in a text. The JSON library gives line
 * and column of what is not JSON, but not of the values of a text that is. So
 * that an error can point to a wrong value, this file goes through the text
 * again, which must be known to be JSON.
 */
#include <string.h>

#include "cluster/parts.h"

struct scan {
    const char *at, *end;
};

/* Returns the next character; NUL at the end. */
static char next(const struct scan *s)
{
    return s->at < s->end ? *s->at : '\0';
}

static bool next_is(const struct scan *s, const char *characters)
{
    return next(s) && strchr(characters, next(s));
}

static void skip_space(struct scan *s)
{
    while (next_is(s, " \t\r\n"))
        s->at++;
}

static void skip_string(struct scan *s)
{
    for (s->at++; next(s) && next(s) != '"'; s->at++)
        s->at += next(s) == '\\';
    s->at++;
}

static void skip_value(struct scan *s)
{
    int depth = 0;

    do {
        if (next(s) == '"') {
            skip_string(s);
            continue;
        }
        depth += next_is(s, "{[") ? 1 : next_is(s, "}]") ? -1 : 0;
        s->at++;
    } while (next(s) && (depth > 0 || !next_is(s, ",]} \t\r\n")));
}

/* Goes past a key and its colon. Returns whether it is this key. */
static bool skip_key(struct scan *s, const char *key)
{
    const char *start = s->at + 1;
    size_t bytes;

    skip_string(s);
    bytes = (size_t)(s->at - 1 - start);
    skip_space(s);
    s->at++;
    skip_space(s);
    return bytes == strlen(key) && memcmp(start, key, bytes) == 0;
}

/* Goes from an object to the value of a key or, without a key, from a list to
 * the element of an index. Returns false if there is none. */
static bool enter(struct scan *s, const char *key, int64_t index)
{
    if (next(s) != (key ? '{' : '['))
        return false;
    for (s->at++;; index--) {
        skip_space(s);
        if (!next(s) || next_is(s, "]}"))
            return false;
        if (key ? skip_key(s, key) : index == 0)
            return true;
        skip_value(s);
        skip_space(s);
        s->at += next(s) == ',';
    }
}

bool hvd__place_find(const char *text, size_t bytes,
                     struct hvd__json_place place, int *line, int *column)
{
    struct scan s = {text, text + bytes};

    skip_space(&s);
    if ((place.outer && !enter(&s, place.outer, 0)) ||
        (place.inner && !enter(&s, place.inner, 0)) ||
        (place.index >= 0 && !enter(&s, NULL, place.index)))
        return false;
    *line = *column = 1;
    for (const char *at = text; at < s.at; at++) {
        *line += *at == '\n';
        *column =
            *at == '\n' ? 1 : *column + (((unsigned char)*at & 0xc0) != 0x80);
    }
    return true;
}
