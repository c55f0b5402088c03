/* SPDX-License-Identifier: Apache-2.0 */
/* A collective steps its segments until all are done, in any order. */
#include "suite.h"
#include "transport/algo/algo.h"

enum { SEGMENT = 10, TOTAL = 45 };

static bool may_end[TOTAL / SEGMENT + 1]; /* by the number of a segment */
static int steps_after_end;

static int64_t total(const struct hvd__collective *c)
{
    (void)c;
    return TOTAL;
}

static int start(struct hvd__collective *c, struct hvd__segment *segment)
{
    hvd__segment_take(c, segment, SEGMENT);
    return HVD_OK;
}

/* Uses phase to know what has ended. */
static int step(struct hvd__collective *c, struct hvd__segment *segment,
                const struct hvd__segment *before)
{
    (void)c, (void)before;
    steps_after_end += segment->phase;
    segment->phase = may_end[segment->start / SEGMENT];
    return segment->phase;
}

static const struct hvd__algorithm algorithm = {
    .name = "test", .total = total, .start = start, .step = step};

static struct hvd__collective begin(void)
{
    struct hvd__collective c = {.algorithm = &algorithm, .total = TOTAL};

    for (int i = 0; i <= TOTAL / SEGMENT; i++)
        may_end[i] = false;
    steps_after_end = 0;
    return c;
}

/* Returns true if a step, which must not end the collective, moves anything. */
static bool moves(struct hvd__collective *c)
{
    bool moved = false;

    ck_assert_int_eq(hvd__collective_step(c, &moved), 0);
    return moved;
}

TEST(a_segment_that_ends_before_an_earlier_one_moves_once)
{
    struct hvd__collective c = begin();
    bool moved = false;

    ck_assert(moves(&c)); /* the first three start */
    ck_assert(!moves(&c));
    may_end[1] = true;
    ck_assert(moves(&c));
    for (int i = 0; i < 5; i++)
        ck_assert(!moves(&c));
    ck_assert_int_eq(steps_after_end, 0);
    may_end[0] = true;
    ck_assert(moves(&c)); /* both make room */
    ck_assert_int_eq(c.head, 2);
    ck_assert(moves(&c));
    may_end[2] = may_end[3] = may_end[4] = true;
    ck_assert_int_eq(hvd__collective_step(&c, &moved), 1);
    ck_assert(moved);
    ck_assert_int_eq(steps_after_end, 0);
}

TEST_MAIN("transport_segments")
