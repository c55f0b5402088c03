/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests texts as numbers, the pieces that each rank trains on, and the learning
 * rate by step.
 */
#include "data/pieces.h"
#include "gpt/sample.h"
#include "output/problem.h"

#include "suite.h"

#include <hvd_schedule.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct text text;

static void set_up(void)
{
    memset(&text, 0, sizeof text);
}

static void tear_down(void)
{
    text_fini(&text);
}

static int from(const char *bytes)
{
    return text_from("t", bytes, strlen(bytes), &text);
}

TEST(the_vocabulary_is_what_occurs)
{
    const uint32_t points[] = {'\n', 'a', 'c', 0xb5, 0x20ac, 0x1f600};
    const int32_t numbers[] = {1, 2, 1, 3, 4, 5, 0};
    const char *bytes = "aca\xc2\xb5\xe2\x82\xac\xf0\x9f\x98\x80\n";
    char *written = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&written, &length);

    ck_assert_int_eq(from(bytes), 0);
    ck_assert_int_eq(text.count, 7);
    ck_assert_int_eq(text.characters, 6);
    ck_assert_mem_eq(text.vocabulary, points, sizeof points);
    ck_assert_mem_eq(text.numbers, numbers, sizeof numbers);
    ck_assert_int_eq(text_find(&text, 'c'), 2);
    ck_assert_int_eq(text_find(&text, 'b'), -1);
    for (int i = 0; i < 7; i++)
        text_write(&text, text.numbers[i], out);
    fclose(out);
    ck_assert_str_eq(written, bytes);
    free(written);
}

static const struct {
    const char *bytes;
    size_t length;
    const char *words;
} broken[] = {
    {"", 0, "t is empty"},
    {"a\0b", 3, "byte 1 is no character of a text: it is 0"},
    {"ab\xff", 3, "byte 2 is no character of a text: this is no UTF-8"},
    {"\xc2", 1, "byte 0"},         /* cut off */
    {"\xc0\xaf", 2, "byte 0"},     /* longer than needed */
    {"\xed\xa0\x80", 3, "byte 0"}, /* half of a pair */
    {"\xf4\x90\x80\x80", 4, "byte 0"},
    {"x\x80", 2, "byte 1"},
    {"\xe2\x28\xa1", 3, "byte 0"},
};

LOOP_TEST(what_is_no_text_is_refused, 0, sizeof broken / sizeof *broken)
{
    ck_assert_int_eq(text_from("t", broken[_i].bytes, broken[_i].length, &text),
                     PROBLEM);
    ck_assert_msg(strstr(problem_text(), broken[_i].words) != NULL, "%s",
                  problem_text());
    ck_assert_ptr_null(text.numbers);
}

/* Writes 1000 characters, number i being i % 50. */
static void count_up(void)
{
    char bytes[1001];

    for (int i = 0; i < 1000; i++)
        bytes[i] = (char)('0' + i % 50);
    bytes[1000] = '\0';
    ck_assert_int_eq(from(bytes), 0);
    ck_assert_int_eq(text.train, 900);
}

enum { CONTEXT = 7, BATCH = 4, MOST = 64 };

TEST(ranks_share_the_pieces_of_one)
{
    int32_t whole[MOST * CONTEXT], labels[MOST * CONTEXT];
    int32_t part[MOST * CONTEXT], part_labels[MOST * CONTEXT];

    count_up();
    for (int n = 1; n <= 5; n++)
        for (int64_t step = 0; step < 3; step++) {
            struct pieces all, mine;

            ck_assert_int_eq(
                pieces_init(&all, &text, CONTEXT, BATCH * n, 0, 1, 9, 0), 0);
            pieces_fill(&all, step, (void *[]){whole, labels});
            for (int rank = 0; rank < n; rank++) {
                pieces_init(&mine, &text, CONTEXT, BATCH, rank, n, 9, 0);
                pieces_fill(&mine, step, (void *[]){part, part_labels});
                for (int row = 0; row < BATCH; row++)
                    ck_assert_mem_eq(part + row * CONTEXT,
                                     whole + (row * n + rank) * CONTEXT,
                                     CONTEXT * sizeof *part);
            }
            for (int i = 0; i < BATCH * n * CONTEXT; i++)
                ck_assert_int_eq(labels[i], (whole[i] + 1) % 50);
        }
}

TEST(pieces_come_from_the_training_text)
{
    int32_t characters[MOST * CONTEXT], labels[MOST * CONTEXT];
    struct text small;
    struct pieces p;
    char bytes[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaZZZZZZZZZZ";

    ck_assert_int_eq(text_from("t", bytes, 100, &small), 0);
    ck_assert_int_eq(small.train, 90);
    ck_assert_int_eq(pieces_init(&p, &small, CONTEXT, MOST, 0, 1, 1, 0), 0);
    for (int64_t step = 0; step < 50; step++) {
        pieces_fill(&p, step, (void *[]){characters, labels});
        for (int i = 0; i < MOST * CONTEXT; i++) {
            ck_assert_int_eq(characters[i], text_find(&small, 'a'));
            ck_assert_int_eq(labels[i], text_find(&small, 'a'));
        }
    }
    text_fini(&small);
}

/* 99 characters have a label: 14 pieces of 7, each used once, on any number of
 * ranks. */
TEST(validation_counts_each_piece_once)
{
    count_up();
    for (int n = 1; n <= 17; n++) {
        int seen[14] = {0}, total = 0;

        for (int rank = 0; rank < n; rank++) {
            struct pieces p;
            int32_t characters[MOST * CONTEXT], labels[MOST * CONTEXT];

            pieces_init(&p, &text, CONTEXT, BATCH, rank, n, 1, 0);
            ck_assert_int_eq(p.evaluated, 14);
            for (int64_t step = 0;; step++) {
                int rows = (int)pieces_fill_test(
                               &p, step, (void *[]){characters, labels}) /
                           CONTEXT;

                if (rows == 0)
                    break;
                total += rows;
                for (int r = 0; r < rows; r++)
                    for (int i = 0; i < 14; i++)
                        seen[i] += memcmp(characters + r * CONTEXT,
                                          text.numbers + 900 + i * CONTEXT,
                                          CONTEXT * sizeof *characters) == 0;
            }
        }
        ck_assert_int_eq(total, 14);
        for (int i = 0; i < 14; i++)
            ck_assert_int_ge(seen[i], 1);
    }
}

TEST(a_text_must_be_longer_than_a_piece)
{
    struct pieces p;

    count_up();
    ck_assert_int_eq(pieces_init(&p, &text, 99, 1, 0, 1, 1, 0), 0);
    ck_assert_int_eq(p.evaluated, 1);
    ck_assert_int_eq(pieces_init(&p, &text, 100, 1, 0, 1, 1, 0), PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "--context 100"));
    ck_assert_int_eq(pieces_init(&p, &text, 10, 1, 0, 1, 1, 3), 0);
    ck_assert_int_eq(p.evaluated, 3);
}

TEST(prompts_are_of_the_text)
{
    struct options o = {.prompt = "0"};

    count_up();
    ck_assert_int_eq(sample_check(&o, &text), 0);
    o.prompt = NULL;
    ck_assert_int_eq(sample_check(&o, &text), 0);
    o.prompt = "0~";
    ck_assert_int_eq(sample_check(&o, &text), PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "has no '~'"));
    o.prompt = "";
    ck_assert_int_eq(sample_check(&o, &text), PROBLEM);
    o.prompt = "\xff";
    ck_assert_int_eq(sample_check(&o, &text), PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "no UTF-8"));
}

static double gpt_rate(double rate, int64_t step, int64_t steps, int64_t warmup)
{
    const struct options o = {.program = OPTIONS_CHAR_GPT,
                              .learning_rate = rate,
                              .steps = steps,
                              .schedule = HVD_SCHEDULE_COSINE,
                              .warmup = warmup};

    return options_rate(&o, steps, step);
}

TEST(the_rate_rises_and_falls)
{
    ck_assert_double_eq_tol(gpt_rate(1, 0, 100, 10), 0.1, 1e-12);
    ck_assert_double_eq_tol(gpt_rate(1, 9, 100, 10), 1, 1e-12);
    ck_assert_double_eq_tol(gpt_rate(2, 10, 100, 10), 2, 1e-12);
    ck_assert_double_eq_tol(gpt_rate(1, 99, 100, 10), 0.1, 1e-12);
    for (int64_t i = 11; i < 100; i++)
        ck_assert(gpt_rate(1, i, 100, 10) < gpt_rate(1, i - 1, 100, 10));
    ck_assert_double_eq_tol(gpt_rate(1, 0, 1, 0), 1, 1e-12);
    ck_assert_double_eq_tol(gpt_rate(1, 3, 4, 10), 0.4, 1e-12);
}

TEST_MAIN("models_text", .set_up = set_up, .tear_down = tear_down)
