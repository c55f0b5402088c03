/* SPDX-License-Identifier: Apache-2.0 */
/* Files of costs: what is written is read, and what is wrong is told. */
#include <string.h>

#include "base/status.h"
#include "suite.h"
#include "transport/algo/algo.h"
#include "transport/costs.h"
#include "transport/hosts.h"

static char text[HVD__COSTS_TEXT];

static void write_default(void)
{
    hvd__costs_print(&hvd__default_costs, "default", text, sizeof text);
}

TEST(what_is_written_is_read)
{
    struct hvd__costs costs = {.between = {.step = 1, .message = 2},
                               .within = {.step = 3, .kib_moved = 10000000000},
                               .kib_reduced = 5},
                      found;

    hvd__costs_print(&costs, "from 'x'", text, sizeof text);
    ck_assert(strncmp(text, "# Costs of messages and reductions: from 'x'.\n",
                      40) == 0);
    ck_assert_int_eq(hvd__costs_parse("file", text, &found), HVD_OK);
    ck_assert_mem_eq(&found, &costs, sizeof costs);
    write_default();
    ck_assert_int_eq(hvd__costs_parse("file", text, &found), HVD_OK);
    ck_assert_mem_eq(&found, &hvd__default_costs, sizeof found);
}

/* Returns whether four hosts, of which this is one, sum so many bytes in halves
 * at a rate. */
static bool halves(int64_t kib_ns, int64_t bytes)
{
    struct hvd__costs costs = hvd__costs_at_rate(kib_ns);
    const struct hvd__hosts hosts = {.n = 4, .widest = 1, .narrowest = 1};
    const struct hvd__team team = {.size = 4, .hosts = &hosts, .costs = &costs};

    return hvd__sum_halves(&team, &hosts, bytes, true);
}

/* Returns whether sums of so many bytes wait for a round and a lane on n hosts,
 * instead of going with the round. */
static bool waits(int n, int64_t kib_ns, int64_t bytes)
{
    struct hvd__costs costs = hvd__costs_at_rate(kib_ns);
    const struct hvd__hosts hosts = {.n = n, .widest = 1, .narrowest = 1};
    const struct hvd__team team = {.size = n, .hosts = &hosts, .costs = &costs};

    return hvd__sum_waits(&team, &hosts, bytes);
}

/* Three messages of 16 KiB in a row take longer than three without data and, in
 * two steps, two thirds of that. Four or eight hosts send halves. */
TEST(a_sum_waits_where_hosts_take_part_for_others)
{
    ck_assert(waits(3, 8800, 16 << 10) && waits(5, 8800, 16 << 10));
    ck_assert(waits(7, 8800, 32 << 10));
    ck_assert(!waits(3, 8800, 4 << 10) && !waits(5, 8800, 8 << 10));
    ck_assert(!waits(3, 1000, 16 << 10));
    ck_assert(!waits(4, 8800, 32 << 10) && !waits(8, 8800, 32 << 10));
}

TEST(a_slow_link_makes_bytes_expensive)
{
    struct hvd__costs fast = hvd__costs_at_rate(2500); /* 3.4 Gbit/s */
    struct hvd__costs slow = hvd__costs_at_rate(8800);

    ck_assert_mem_eq(&fast, &hvd__default_costs, sizeof fast);
    ck_assert_int_ge(slow.between.kib_moved, 8400); /* 1 Gbit/s, headers too */
    ck_assert_int_le(slow.between.kib_moved, 9000);
    fast = hvd__costs_at_rate(3400); /* 2.5 Gbit/s */
    ck_assert_mem_eq(&fast, &slow, sizeof fast);
    fast = hvd__costs_at_rate(1000000);
    ck_assert_mem_eq(&fast, &slow, sizeof fast);
    slow.between = hvd__default_costs.between;
    ck_assert_mem_eq(&slow, &hvd__default_costs, sizeof slow);
    ck_assert(!halves(100, 16 << 10) && !halves(1000, 16 << 10));
    ck_assert(!halves(8800, 4 << 10));
    ck_assert(halves(8800, 16 << 10) && halves(8800, 32 << 10));
}

/* Expects that the text is refused, with an error that says why. */
static void refuse(const char *wrong, const char *why)
{
    struct hvd__costs found = {.kib_reduced = 7};

    ck_assert_int_eq(hvd__costs_parse("file", wrong, &found), HVD_ERR_CONFIG);
    ck_assert_msg(strstr(hvd_last_error(), why), "'%s' lacks '%s'",
                  hvd_last_error(), why);
    ck_assert_int_eq(found.kib_reduced, 7);
}

TEST(what_is_wrong_is_told)
{
    char *end;

    refuse("", "'file' lacks between_step_ns");
    refuse("\n# a\nstep=4\n", "'file', line 3: 'step' is not a cost");
    refuse("between_step_ns", "'between_step_ns' is not a cost");
    refuse("between_step_ns=", "line 1: between_step_ns is not a number");
    refuse("between_step_ns=-1", "is not a number of nanoseconds");
    refuse("between_step_ns=1.5", "is not a number of nanoseconds");
    refuse("between_step_ns=10000000001", "is not a number of nanoseconds");
    refuse("between_step_ns=99999999999999999999", "is not a number");
    refuse("between_step_ns=1\nbetween_step_ns=1",
           "line 2: between_step_ns is there twice");
    refuse("between_step_ns=1\n", "lacks between_message_ns");
    write_default();
    end = strstr(text, "reduce_kib_ns");
    ck_assert(end != NULL);
    *end = '\0';
    refuse(text, "lacks reduce_kib_ns");
}

TEST_MAIN("transport_costs")
