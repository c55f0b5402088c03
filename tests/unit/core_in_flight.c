/* SPDX-License-Identifier: Apache-2.0 */
/* The in-flight table is compared with a list that is searched from end to
 * end. */
#include <stdlib.h>

#include "checks.h"
#include "core/request/request.h"
#include "core/table/in_flight.h"
#include "suite.h"

enum { MOST = 700, MOVES = 40000 };

static struct hvd__in_flight_table flight;
static struct hvd__submission *list[MOST]; /* in the order of submission */
static int nlist;

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static struct hvd__submission *search(uint64_t key)
{
    for (int i = 0; i < nlist; i++)
        if (list[i]->key == key)
            return list[i];
    return NULL;
}

static void add(uint64_t key)
{
    struct hvd__submission *submission = hvd__submission_new(1);

    ck_assert(submission != NULL);
    submission->key = key;
    ck_assert_int_eq(hvd__in_flight_reserve(&flight), HVD_OK);
    hvd__in_flight_add(&flight, submission);
    list[nlist++] = submission;
}

static void strike(int i)
{
    hvd__in_flight_remove(&flight, list[i]);
    hvd__submission_free(list[i]);
    nlist--;
    for (; i < nlist; i++)
        list[i] = list[i + 1];
}

static void is_the_list(void)
{
    const struct hvd__submission *submission = flight.oldest, *before = NULL;

    ck_assert_int_eq(flight.n, nlist);
    for (int i = 0; i < nlist;
         i++, before = submission, submission = submission->later) {
        ck_assert(submission == list[i]);
        ck_assert(submission->earlier == before);
        ck_assert(hvd__in_flight_find(&flight, submission->key) == submission);
    }
    ck_assert(submission == NULL);
    ck_assert(flight.youngest == before);
}

static void empty(void)
{
    while (nlist > 0)
        strike(nlist / 2);
    is_the_list();
    hvd__in_flight_fini(&flight);
}

/* mask: its few low bits and many high ones crowd the keys into few chains, the
 * last one included. */
static void go_through(uint64_t mask, int most)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

    for (int i = 0; i < MOVES; i++) {
        uint64_t key = next(&state) & mask;

        ck_assert(hvd__in_flight_find(&flight, key) == search(key));
        if (nlist > 0 && (nlist == most || next(&state) % 5 < 2))
            strike((int)(next(&state) % (uint64_t)nlist));
        else if (!search(key))
            add(key);
        if (i % 64 == 0)
            is_the_list();
    }
    is_the_list();
    empty();
}

TEST(scattered)
{
    go_through(UINT64_MAX, MOST);
}

TEST(crowded)
{
    go_through(UINT64_C(0xff0000000000003e), 60);
}

TEST(few_and_the_same)
{
    go_through(3, 4);
}

/* Three keys share the last chain, and one has the first. */
TEST(around_the_end)
{
    add(63);
    add(127);
    add(191);
    add(64);
    is_the_list();
    strike(0);
    is_the_list();
    add(63);
    strike(1);
    is_the_list();
    empty();
}

TEST(nothing_is_in_nothing)
{
    ck_assert(hvd__in_flight_find(&flight, 0) == NULL);
    hvd__in_flight_fini(&flight);
}

TEST_MAIN("core_in_flight", .seconds = 120)
