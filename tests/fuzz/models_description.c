/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models_description.c - gives spoilt descriptions of trainings to the reader
 * that a server has (remote/description.h). A refusal is one line; whatever is
 * accepted obeys the rules, and reads the same after it was written again. The
 * text has a block of memory of its own size, so a sanitized build (make
 * sanitize) sees a byte read too far.
 */
#include "remote/description.h"

#include "output/problem.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

static const char good[] =
    "{\"format\":1,\"program\":\"mnist\",\"options\":{\"seed\":\"7\","
    "\"global-batch\":\"128\",\"serial\":true,\"data\":\"/data/mnist\"},"
    "\"files\":{\"training.ipu\":9120,\"evaluation.ipu\":4310,\"weights\":"
    "407432,\"text\":12},\"results\":[\"summary\",\"losses\"],\"terminal\":"
    "{\"columns\":80,\"colour\":true}}";

static const char *const words[] = {"\"",
                                    "{",
                                    "}",
                                    "[",
                                    "]",
                                    ",",
                                    ":",
                                    "\\u0000",
                                    "\\",
                                    "null",
                                    "true",
                                    "-1",
                                    "0",
                                    "1e99",
                                    "4294967297",
                                    "99999999999999999999",
                                    "\"text\"",
                                    "\"format\"",
                                    "\"seed\"",
                                    "\"strategy\"",
                                    "\"x\"",
                                    "\xff",
                                    "\xc3\xa4",
                                    "%s%n",
                                    "\n",
                                    "\"lr\":\"1\",",
                                    "\"trained\"",
                                    "\"../x\"",
                                    "\"char_gpt\"",
                                    "\"/bin/sh\"",
                                    "[[[[",
                                    "2"};

static uint64_t state = 20261123;

static size_t any(size_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % below;
}

/* Replaces, takes out, doubles or inserts a piece. Returns the new length. */
static size_t spoil(char *text, size_t length, size_t most)
{
    const char *word = words[any(sizeof words / sizeof *words)];
    size_t at = any(length + 1), rest = length - at, cut = 0,
           add = strlen(word);

    switch (any(4)) {
    case 0:
        cut = any(rest + 1) % 12;
        add = 0;
        break;
    case 1: cut = any(rest + 1) % 12; break;
    case 2:
        if (rest > 0)
            text[at] = (char)any(256);
        return length;
    default: break;
    }
    if (length - cut + add > most)
        return length;
    memmove(text + at + add, text + at + cut, rest - cut);
    memcpy(text + at, word, add);
    return length - cut + add;
}

static void check(const struct remote_description *d)
{
    ck_assert(strcmp(d->program, "mnist") == 0 ||
              strcmp(d->program, "char_gpt") == 0);
    ck_assert_int_ge(d->noptions, 0);
    ck_assert_int_le(d->noptions, REMOTE_MOST_OPTIONS);
    for (int i = 0; i < d->noptions; i++) {
        ck_assert(remote_option_is_sent(d->options[i].name));
        ck_assert(!d->options[i].value || strlen(d->options[i].value) <= 4096);
    }
    for (int i = 0; i < REMOTE_FILES; i++)
        ck_assert(d->files[i] > 0 ||
                  (d->files[i] == -1 && i == REMOTE_FILE_TEXT));
    ck_assert(d->columns >= 0 && d->columns <= 10000);
}

/* Reads what was accepted once more, from the text that it is written as. */
static void check_again(const struct remote_description *d)
{
    char *text = remote_description_write(d);
    struct remote_description again;

    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(remote_description_read(text, strlen(text), &again), 0);
    ck_assert_str_eq(again.program, d->program);
    ck_assert_int_eq(again.noptions, d->noptions);
    ck_assert_mem_eq(again.files, d->files, sizeof d->files);
    ck_assert_mem_eq(again.results, d->results, sizeof d->results);
    ck_assert_int_eq(again.columns, d->columns);
    remote_description_fini(&again);
    free(text);
}

TEST(a_description_is_refused_or_obeys_the_rules)
{
    enum { MOST = 2048 };
    int n = getenv("HVD_TEST_FULL") ? 5000000 : 100000, accepted = 0;

    for (int round = 0; round < n; round++) {
        struct remote_description d;
        char text[MOST], *exact;
        size_t length = sizeof good - 1;

        memcpy(text, good, length);
        for (size_t times = any(4); times > 0; times--)
            length = spoil(text, length, MOST);
        exact = malloc(length + (length == 0));
        memcpy(exact, text, length);
        if (remote_description_read(exact, length, &d) == 0) {
            accepted++;
            check(&d);
            check_again(&d);
            remote_description_fini(&d);
        } else {
            ck_assert_ptr_null(d.root);
            ck_assert_ptr_null(strchr(problem_text(), '\n'));
            ck_assert_ptr_nonnull(strstr(problem_text(), "the description"));
        }
        free(exact);
    }
    /* Every fourth is not spoilt. */
    ck_assert_int_gt(accepted, n / 5);
    ck_assert_int_lt(accepted, n / 2);
}

TEST_MAIN("fuzz_models_description", .seconds = 600)
