/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - a text to learn, as numbers of characters.
 *
 * Characters are those of UTF-8. The vocabulary has the characters that occur
 * in the text, in the order of Unicode, so that ranks with the same text have
 * the same numbers. The first nine tenths are trained on; the rest is for
 * validation.
 */
#ifndef MODELS_TEXT_H
#define MODELS_TEXT_H

#include <stdint.h>
#include <stdio.h>

struct text {
    int32_t *numbers; /* [count], owned: 0 to characters - 1 */
    int64_t count;
    int64_t train;        /* characters at the begin that are trained on */
    uint32_t *vocabulary; /* [characters], owned: sorted code points */
    int characters;
    uint64_t hash; /* hash of the text */
};

/* Loads a file; path NULL: all of hvd's own documentation. PROBLEM with the
 * text kept if it is unreadable, empty, or not a text. */
int text_load(const char *path, struct text *text);

/* Does the same from memory; messages call it what. */
int text_from(const char *what, const char *bytes, size_t length,
              struct text *text);

void text_fini(struct text *text); /* accepts zeroed and half-built ones */

/* Returns the number of a character; -1 if it does not occur. */
int text_find(const struct text *text, uint32_t character);

/* Returns the character at *bytes and moves *bytes behind it, at most to end;
 * -1 if the bytes are not UTF-8. */
int64_t text_decode(const char **bytes, const char *end);

/* Writes a character by its number. */
void text_write(const struct text *text, int number, FILE *out);

#endif
