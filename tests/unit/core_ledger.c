/* SPDX-License-Identifier: Apache-2.0 */
/* The books of a rank: names, handles, the queue; from one thread and from
 * several. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "check_main.h"
#include "core/ledger.h"
#include "core/set.h"

static struct hvd__ledger ledger;
static struct hvd__set set;

static void open_books(void)
{
    ck_assert_int_eq(hvd__ledger_init(&ledger), HVD_OK);
    memset(&set, 0, sizeof set);
}

static void close_books(void)
{
    while (hvd__ledger_take(&ledger))
        ;
    hvd__book_fini(&set.book);
    hvd__ledger_fini(&ledger);
}

static struct hvd__unit *unit_of(int n, const char *name)
{
    struct hvd__unit *unit = hvd__unit_new(n);

    ck_assert(unit != NULL);
    unit->set = &set;
    snprintf(unit->name, sizeof unit->name, "%s", name);
    return unit;
}

/* Submit; on failure the unit is freed. */
static int submit(const char *name, hvd_handle *handle, struct hvd__unit **unit)
{
    int status;

    *unit = unit_of(1, name);
    status = hvd__ledger_submit(&ledger, *unit, handle, NULL);
    if (status < 0)
        hvd__unit_free(*unit);
    return status;
}

/* What the engine does with a unit that is over. */
static void complete(struct hvd__unit *unit)
{
    int n = unit->nentries;

    hvd__ledger_remove(&ledger, unit);
    for (int i = 0; i < n; i++)
        hvd__ledger_finish(&ledger, &unit->entries[i]);
}

/* What hvd_wait does with the handle of what is done: 1, or why not. */
static int consume(hvd_handle handle)
{
    struct hvd__entry *entry;
    int status = hvd__ledger_claim(&ledger, handle, &entry);

    if (status == 1)
        hvd__entry_free(entry);
    return status;
}

START_TEST(from_submission_to_the_end)
{
    struct hvd__unit *unit;
    hvd_handle handle = 0;

    ck_assert_int_eq(submit("a", &handle, &unit), HVD_OK);
    ck_assert(handle != 0);
    ck_assert_int_eq(hvd__ledger_busy(&ledger), 1);
    ck_assert(hvd__ledger_take(&ledger) == unit);
    ck_assert(hvd__ledger_take(&ledger) == NULL);
    ck_assert(hvd__ledger_look(&ledger, &set, unit->key) == unit);
    ck_assert(hvd__ledger_any(&ledger, &set) == unit);
    ck_assert_int_eq(hvd__ledger_poll(&ledger, handle), 0);
    complete(unit);
    ck_assert_int_eq(hvd__ledger_busy(&ledger), 0);
    ck_assert(hvd__ledger_any(&ledger, &set) == NULL);
    ck_assert_int_eq(hvd__ledger_poll(&ledger, handle), 1);
    ck_assert_int_eq(consume(handle), 1);
    ck_assert_int_eq(consume(handle), HVD_ERR_HANDLE);
    ck_assert_int_eq(hvd__ledger_poll(&ledger, handle), HVD_ERR_HANDLE);
    ck_assert(strstr(hvd_last_error(), "already waited for"));
}
END_TEST

/* Who waits before it is done keeps others from it. */
START_TEST(only_one_thread_may_wait)
{
    struct hvd__unit *unit;
    struct hvd__entry *entry;
    hvd_handle handle;

    ck_assert_int_eq(submit("a", &handle, &unit), HVD_OK);
    ck_assert_int_eq(hvd__ledger_claim(&ledger, handle, &entry), 0);
    ck_assert(entry == &unit->entries[0]);
    ck_assert_int_eq(consume(handle), HVD_ERR_HANDLE);
    hvd__ledger_take(&ledger);
    complete(unit);
    ck_assert_int_eq(consume(handle), HVD_ERR_HANDLE);
    hvd__ledger_release(&ledger, entry);
    ck_assert_int_eq(hvd__ledger_poll(&ledger, handle), HVD_ERR_HANDLE);
    hvd__entry_free(entry);
    ck_assert_int_eq(ledger.nfree, ledger.nslots);
}
END_TEST

/* A blocking call may go past the books if they are empty, or be entered when
 * it turns out that it cannot. */
START_TEST(past_the_books)
{
    struct hvd__unit *unit = unit_of(1, ""), *other;
    hvd_handle handle;
    uint64_t number, key;

    ck_assert(hvd__ledger_number(&ledger, unit, &number));
    ck_assert_uint_eq(number, 0);
    ck_assert(hvd__ledger_any(&ledger, &set) == NULL);
    ck_assert_int_eq(hvd__ledger_adopt(&ledger, unit, number, &handle), HVD_OK);
    ck_assert_str_eq(unit->name, "\1"
                                 "0");
    ck_assert(hvd__ledger_look(&ledger, &set, unit->key) == unit);
    ck_assert(hvd__ledger_take(&ledger) == NULL); /* nor is it announced */
    other = unit_of(1, "");
    /* One is in flight. */
    ck_assert(!hvd__ledger_number(&ledger, other, &number));
    complete(unit);
    ck_assert_int_eq(consume(handle), 1);
    ck_assert(hvd__ledger_number(&ledger, other, &number));
    ck_assert_uint_eq(number, 1);
    /* On every rank its key is that of the second, whichever way it goes. */
    key = other->key;
    set.book.nunnamed = 1;
    ck_assert_int_eq(submit("", NULL, &unit), HVD_OK);
    ck_assert_uint_eq(unit->key, key);
    hvd__ledger_take(&ledger);
    complete(unit);
    hvd__unit_reset(other);
    other->set = &set;
    hvd__ledger_close(&ledger, &set, HVD_ERR_SHUTDOWN, "over");
    ck_assert(!hvd__ledger_number(&ledger, other, &number));
    hvd__unit_free(other);
}
END_TEST

START_TEST(names_in_flight_are_taken)
{
    struct hvd__unit *first, *second;
    hvd_handle handle;

    ck_assert_int_eq(submit("w", NULL, &first), HVD_OK);
    ck_assert_int_eq(submit("w", &handle, &second), HVD_ERR_DUPLICATE);
    ck_assert(strstr(hvd_last_error(), "'w' was submitted again"));
    ck_assert_int_eq(submit("v", NULL, &second), HVD_OK);
    hvd__ledger_take(&ledger);
    complete(first);
    complete(second);
    ck_assert_int_eq(submit("w", NULL, &first), HVD_OK);
    hvd__ledger_take(&ledger);
    complete(first);
}
END_TEST

/* Unnamed ones count on, whether refused or not; a join begins anew. */
START_TEST(unnamed_units_are_numbered)
{
    struct hvd__unit *units[3], *refused = unit_of(1, ""), *join, *other;
    char name[HVD__NAME_SIZE];

    ck_assert_int_eq(submit("", NULL, &units[0]), HVD_OK);
    refused->status = HVD_ERR_ARGUMENT;
    hvd__ledger_refuse(&ledger, refused);
    ck_assert_int_eq(submit("", NULL, &units[1]), HVD_OK);
    ck_assert_str_eq(units[0]->name, "\1"
                                     "0");
    ck_assert_str_eq(refused->name, "\1"
                                    "1");
    ck_assert_str_eq(units[1]->name, "\1"
                                     "2");
    ck_assert(units[0]->key != units[1]->key);

    join = unit_of(1, HVD__JOIN_NAME);
    join->entries[0].signature.kind = HVD_JOIN;
    ck_assert_int_eq(hvd__ledger_submit(&ledger, join, NULL, NULL), HVD_OK);
    ck_assert_int_eq(submit("x", NULL, &other), HVD_ERR_JOINED);
    ck_assert_int_eq(hvd__ledger_submit(&ledger, join, NULL, NULL),
                     HVD_ERR_JOINED);
    /* In the order of submission. */
    ck_assert(hvd__ledger_take(&ledger) == units[0]);
    ck_assert(units[0]->next == refused && refused->next == units[1]);
    ck_assert(units[1]->next == join && join->next == NULL);
    hvd__unit_free(refused);
    complete(join);
    ck_assert_int_eq(submit("", NULL, &units[2]), HVD_OK);
    snprintf(name, sizeof name, "%c0 after join 1", HVD__UNNAMED);
    ck_assert_str_eq(units[2]->name, name);
    hvd__ledger_take(&ledger);
    for (int i = 0; i < 3; i++)
        complete(units[i]);
    ck_assert_int_eq(hvd__ledger_busy(&ledger), 0);
}
END_TEST

START_TEST(a_closed_book_refuses)
{
    struct hvd__unit *unit, *refused = unit_of(1, "late");

    hvd__ledger_close(&ledger, &set, HVD_ERR_SHUTDOWN, "rank 1 has left");
    hvd__ledger_close(&ledger, &set, HVD_ERR_MPI, "something later");
    ck_assert_int_eq(submit("a", NULL, &unit), HVD_ERR_SHUTDOWN);
    ck_assert_str_eq(hvd_last_error(), "rank 1 has left");
    refused->status = HVD_ERR_ARGUMENT;
    hvd__ledger_refuse(&ledger, refused); /* is freed: nobody listens */
    ck_assert(hvd__ledger_take(&ledger) == NULL);
}
END_TEST

/* A group is one name and several handles, which are over one by one. */
START_TEST(groups)
{
    struct hvd__unit *group = unit_of(5, "g");
    hvd_handle handles[5];

    ck_assert_int_eq(hvd__ledger_submit(&ledger, group, handles, NULL), HVD_OK);
    ck_assert_int_eq(hvd__ledger_busy(&ledger), 5);
    hvd__ledger_take(&ledger);
    hvd__ledger_remove(&ledger, group);
    for (int i = 4; i >= 0; i--) {
        ck_assert_int_eq(hvd__ledger_poll(&ledger, handles[i]), 0);
        hvd__ledger_finish(&ledger, &group->entries[i]);
        ck_assert_int_eq(hvd__ledger_poll(&ledger, handles[i]), 1);
        ck_assert_int_eq(consume(handles[i]), 1);
    }
    ck_assert_int_eq(hvd__ledger_busy(&ledger), 0);
}
END_TEST

START_TEST(handles_that_never_were)
{
    static const hvd_handle wrong[] = {
        0, -1, 1, 64, INT64_MAX, INT64_MIN, INT64_C(1) << 32};
    struct hvd__unit *unit;
    hvd_handle handle;
    int bad = 0;

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            bad += hvd__ledger_poll(&ledger, wrong[i]) != HVD_ERR_HANDLE;
            bad += consume(wrong[i]) != HVD_ERR_HANDLE;
        }
        ck_assert_int_eq(bad, 0);
        if (round == 0)
            ck_assert_int_eq(submit("a", &handle, &unit), HVD_OK);
    }
    hvd__ledger_take(&ledger);
    complete(unit);
}
END_TEST

/* Slots are used again, handles are not. */
START_TEST(stale_handles_stay_stale)
{
    hvd_handle first = 0;

    for (int i = 0; i < 1000; i++) {
        struct hvd__unit *unit;
        hvd_handle handle;

        ck_assert_int_eq(submit("a", &handle, &unit), HVD_OK);
        ck_assert(handle != first);
        if (i == 0)
            first = handle;
        else
            ck_assert_int_eq(hvd__ledger_poll(&ledger, first), HVD_ERR_HANDLE);
        hvd__ledger_take(&ledger);
        complete(unit);
        ck_assert_int_eq(consume(handle), 1);
    }
    ck_assert_int_le(ledger.nslots, 64);
}
END_TEST

/* What was never waited for, or never over, goes with the books; a sanitizer
 * sees what does not. */
START_TEST(the_end_frees_everything)
{
    struct hvd__unit *unit, *refused = unit_of(1, "r");
    hvd_handle handles[3];

    ck_assert_int_eq(submit("done", &handles[0], &unit), HVD_OK);
    complete(unit);
    ck_assert_int_eq(submit("waited for", &handles[0], &unit), HVD_OK);
    ck_assert_int_eq(submit("by nobody", NULL, &unit), HVD_OK);
    ck_assert_int_eq(
        hvd__ledger_submit(&ledger, unit_of(3, "group"), handles, NULL),
        HVD_OK);
    ck_assert_int_eq(
        hvd__ledger_submit(&ledger, unit_of(3, "callbacks"), NULL, NULL),
        HVD_OK);
    hvd__ledger_take(&ledger);
    refused->status = HVD_ERR_ARGUMENT;
    hvd__ledger_refuse(&ledger, refused);
    hvd__book_fini(&set.book);
    hvd__ledger_fini(&ledger);
    open_books();
}
END_TEST

enum { THREADS = 4, EACH = 5000 };

static hvd_handle taken[THREADS][EACH];

static void *submit_many(void *which)
{
    int thread = *(const int *)which;

    for (int i = 0; i < EACH; i++) {
        char name[32];
        struct hvd__unit *unit;

        snprintf(name, sizeof name, "%d/%d", thread, i);
        if (submit(name, &taken[thread][i], &unit) < 0)
            taken[thread][i] = 0;
    }
    return NULL;
}

START_TEST(many_from_several_threads)
{
    pthread_t threads[THREADS];
    int which[THREADS], announced = 0, consumed = 0;

    for (int i = 0; i < THREADS; i++) {
        which[i] = i;
        pthread_create(&threads[i], NULL, submit_many, &which[i]);
    }
    while (announced < THREADS * EACH) {
        struct hvd__unit *unit = hvd__ledger_take(&ledger), *next;

        for (; unit; unit = next, announced++) {
            next = unit->next;
            complete(unit);
        }
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(hvd__ledger_busy(&ledger), 0);
    for (int i = 0; i < THREADS * EACH; i++)
        consumed += consume(taken[i % THREADS][i / THREADS]) == 1;
    ck_assert_int_eq(consumed, THREADS * EACH);
    ck_assert_int_eq(ledger.nfree, ledger.nslots);
}
END_TEST

/* What is posted at once does not queue, unless something came before it. */
START_TEST(past_the_queue)
{
    struct hvd__unit *first = unit_of(1, "a"), *second = unit_of(1, "b");
    struct hvd__unit *third = unit_of(1, "c"), *queue;
    bool direct = true;

    ck_assert_int_eq(hvd__ledger_submit(&ledger, first, NULL, &direct), HVD_OK);
    ck_assert(direct);
    ck_assert(hvd__ledger_take(&ledger) == NULL);
    direct = false;
    ck_assert_int_eq(hvd__ledger_submit(&ledger, second, NULL, &direct),
                     HVD_OK);
    ck_assert(!direct);
    direct = true;
    ck_assert_int_eq(hvd__ledger_submit(&ledger, third, NULL, &direct), HVD_OK);
    ck_assert(!direct);
    queue = hvd__ledger_take(&ledger);
    ck_assert(queue == second && second->next == third && !third->next);
    ck_assert_int_eq(hvd__ledger_busy(&ledger), 3);
    complete(first);
    complete(second);
    complete(third);
}
END_TEST

/* A list of entries is struck at once; names whose last it is are free. */
START_TEST(a_list_of_what_is_over)
{
    struct hvd__unit *pair = unit_of(2, "pair"), *one = unit_of(1, "one");

    ck_assert_int_eq(hvd__ledger_submit(&ledger, pair, NULL, NULL), HVD_OK);
    ck_assert_int_eq(hvd__ledger_submit(&ledger, one, NULL, NULL), HVD_OK);
    ck_assert(hvd__ledger_take(&ledger) != NULL);
    pair->entries[0].next = &one->entries[0];
    hvd__ledger_remove_all(&ledger, &pair->entries[0]);
    ck_assert(hvd__ledger_look(&ledger, &set, one->key) == NULL);
    ck_assert(hvd__ledger_look(&ledger, &set, pair->key) == pair);
    pair->entries[1].next = NULL;
    hvd__ledger_remove_all(&ledger, &pair->entries[1]);
    ck_assert(hvd__ledger_any(&ledger, &set) == NULL);
    hvd__ledger_finish(&ledger, &one->entries[0]);
    hvd__ledger_finish(&ledger, &pair->entries[0]);
    hvd__ledger_finish(&ledger, &pair->entries[1]);
}
END_TEST

/* A unit that is over comes back as if it were new; groups do not, nor more
 * than there is room for. */
START_TEST(spare_units)
{
    enum { SOME = HVD__SPARES_MOST + 3 };
    static struct hvd__unit *units[SOME];
    struct hvd__spares spares = {.taken = ATOMIC_FLAG_INIT};
    struct hvd__unit *group = hvd__unit_new(2), *again;

    for (int i = 0; i < SOME; i++) {
        units[i] = hvd__spares_take(&spares);
        ck_assert(units[i] != NULL);
        strcpy(units[i]->name, "used");
        units[i]->priority = 7;
        units[i]->entries[0].own_input = malloc(8);
    }
    for (int i = 0; i < SOME; i++)
        hvd__spares_give(&spares, &units[i]->entries[0]);
    ck_assert_int_eq(spares.n, HVD__SPARES_MOST);
    hvd__spares_give(&spares, &group->entries[0]);
    hvd__spares_give(&spares, &group->entries[1]);
    ck_assert_int_eq(spares.n, HVD__SPARES_MOST);
    again = hvd__spares_take(&spares);
    ck_assert(again == units[HVD__SPARES_MOST - 1]);
    ck_assert_str_eq(again->name, "");
    ck_assert_int_eq(again->priority, 0);
    ck_assert(again->entries[0].own_input == NULL);
    ck_assert(again->entries[0].unit == again && again->nleft == 1);
    hvd__spares_give(&spares, &again->entries[0]);
    hvd__spares_fini(&spares);
    ck_assert(spares.list == NULL && spares.n == 0);
}
END_TEST

static TCase *tcase_ledger(void)
{
    TCase *tcase = tcase_create("ledger");

    tcase_add_checked_fixture(tcase, open_books, close_books);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, from_submission_to_the_end);
    tcase_add_test(tcase, only_one_thread_may_wait);
    tcase_add_test(tcase, past_the_books);
    tcase_add_test(tcase, past_the_queue);
    tcase_add_test(tcase, a_list_of_what_is_over);
    tcase_add_test(tcase, spare_units);
    tcase_add_test(tcase, names_in_flight_are_taken);
    tcase_add_test(tcase, unnamed_units_are_numbered);
    tcase_add_test(tcase, a_closed_book_refuses);
    tcase_add_test(tcase, groups);
    tcase_add_test(tcase, handles_that_never_were);
    tcase_add_test(tcase, stale_handles_stay_stale);
    tcase_add_test(tcase, the_end_frees_everything);
    tcase_add_test(tcase, many_from_several_threads);
    return tcase;
}

HVD_TEST_MAIN("core_ledger", tcase_ledger)
