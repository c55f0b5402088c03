/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests texts as numbers, prompts, and the learning rate by step.
 */
#include "data/text.h"
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
    struct options o = {.program = OPTIONS_CHAR_GPT,
                        .learning_rate = rate,
                        .steps = steps,
                        .schedule = HVD_SCHEDULE_COSINE,
                        .warmup = warmup};
    const hvd_schedule schedule = options_schedule(&o, steps);

    return hvd_schedule_rate(&schedule, step);
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
