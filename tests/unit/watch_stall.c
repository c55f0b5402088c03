/* SPDX-License-Identifier: Apache-2.0 */
/* A request that other ranks keep waiting is reported, with the ranks from the
 * status page. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "suite.h"
#include "watch/process.h"
#include "watch/stall.h"

enum { N = 6 };
#define SECOND INT64_C(1000000000)

static struct hvd__in_flight flights[N];
static struct hvd__view views[N];

static struct hvd__watch_request request(uint64_t key, const char *name,
                                         const char *what)
{
    struct hvd__watch_request r = {.key = key, .since_ns = 40 * SECOND};

    snprintf(r.name, sizeof r.name, "%s", name);
    snprintf(r.what, sizeof r.what, "%s", what);
    return r;
}

static void has(int rank, struct hvd__watch_request r)
{
    struct hvd__in_flight *f = &flights[rank];

    f->keys[f->nkeys++] = r.key;
    if (f->nrequests < HVD__PAGE_REQUESTS)
        f->requests[f->nrequests++] = r;
}

static bool everyone(void *context, int32_t set, int rank)
{
    (void)context;
    return set == 0 || rank < 2;
}

static void begin(void)
{
    memset(flights, 0, sizeof flights);
    for (int rank = 0; rank < N; rank++)
        views[rank] = (struct hvd__view){.state = HVD__VIEW_ALIVE};
}

static bool waits(void *context, int rank, uint64_t key)
{
    (void)context;
    for (int i = 0; i < flights[rank].nkeys; i++)
        if (flights[rank].keys[i] == key)
            return true;
    return false;
}

static void look(void *context, int rank, struct hvd__view *view)
{
    (void)context;
    *view = views[rank];
    view->requests = flights[rank].requests;
    view->nrequests = flights[rank].nrequests;
}

static struct hvd__scene scene(int nranks)
{
    return (struct hvd__scene){NULL, nranks, everyone, waits, look};
}

static const char *say(const struct hvd__watch_request *r, int nranks)
{
    static char text[1024];
    const struct hvd__scene all = scene(nranks);

    return hvd__stall_print(&all, r, 101 * SECOND, text, sizeof text);
}

TEST(who_is_missing_and_what_it_does)
{
    struct hvd__watch_request r = request(7, "'w'", "allreduce sum int32 [4]");

    begin();
    has(0, r);
    has(1, r);
    views[2].doing.since_ns = 98 * SECOND;
    strcpy(views[2].doing.text, "allreduce 'v'");
    ck_assert_str_eq(say(&r, 3),
                     "'w' (allreduce sum int32 [4]) has waited 61 s for rank "
                     "2; rank 2 is alive, last operation: allreduce 'v', 3.0 "
                     "s ago");
    views[2].state = HVD__VIEW_SILENT;
    views[2].silent_ns = 5 * SECOND;
    ck_assert(strstr(say(&r, 3), "rank 2 has been silent for 5.0 s, last"));
    views[2].state = HVD__VIEW_LEFT;
    ck_assert(strstr(say(&r, 3), "rank 2 has shut down"));
    views[2].state = HVD__VIEW_ELSEWHERE;
    ck_assert(strstr(say(&r, 3), "rank 2 is on another host"));
}

TEST(what_is_similar)
{
    struct hvd__watch_request r = request(7, "'w'", "allreduce sum int32 [4]");

    begin();
    has(0, r);
    has(1, request(8, "'other'", "allreduce sum int32 [5]"));
    has(1, request(9, "'w2'", "allreduce sum int32 [4]"));
    has(2, request(7 + 1, "'w'", "broadcast int32 [4] from root 0"));
    ck_assert(strstr(say(&r, 3), "rank 1,2"));
    ck_assert(strstr(say(&r, 3), "has 'w2' of the same shape in flight"));
    ck_assert(strstr(say(&r, 3),
                     "has 'w' in flight as broadcast int32 [4] from root 0"));
}

TEST(only_members_and_not_too_many)
{
    struct hvd__watch_request r = request(7, "'w'", "barrier");

    begin();
    r.set = 3; /* ranks 0 and 1 */
    has(0, r);
    ck_assert(strstr(say(&r, N), "for rank 1;"));
    ck_assert(!strstr(say(&r, N), "rank 2"));
    r.set = 0;
    ck_assert(strstr(say(&r, N), "for rank 1,2,3,4,5;"));
    ck_assert(strstr(say(&r, N), "; and 1 more"));
    for (int rank = 1; rank < N; rank++)
        has(rank, r);
    ck_assert(strstr(say(&r, N), "although all ranks have submitted it"));
}

/* -------------------------------------------------------------------- page */

static struct hvd__page *page;
static atomic_bool done;

static void *write_much(void *argument)
{
    struct hvd__doing doing = {0};

    (void)argument;
    for (int i = 0; i < 40000; i++) {
        memset(doing.text, 'a' + i % 26, sizeof doing.text - 1);
        doing.since_ns = i % 26 + 1;
        hvd__page_write_doing(&page->lines[1], &doing);
        if (i % 8 == 0) /* nobody writes without end */
            usleep(1);
    }
    atomic_store(&done, true);
    return NULL;
}

TEST(readers_never_see_half)
{
    int fd;
    struct hvd__doing doing;
    struct hvd__segment_address address;
    struct hvd__page *same;
    pthread_t thread;
    int64_t reads = 0;

    page = hvd__page_create((struct hvd__page_shape){3, 3}, &fd);
    ck_assert(page != NULL);
    address = hvd__segment_address_of(fd);
    same = hvd__page_attach(&address, (struct hvd__page_shape){3, 3});
    ck_assert(same != NULL && same != page);
    close(fd);
    ck_assert(hvd__page_attach(&address, (struct hvd__page_shape){3, 3}) ==
              NULL);
    atomic_store(&done, false);
    pthread_create(&thread, NULL, write_much, NULL);
    while (!atomic_load(&done)) {
        hvd__page_read_doing(&same->lines[1], &doing);
        for (size_t i = 0; doing.since_ns && i + 1 < sizeof doing.text; i++)
            if (doing.text[i] != 'a' + (int)doing.since_ns - 1)
                ck_abort_msg("half of another text after %lld reads",
                             (long long)reads);
        reads++;
    }
    pthread_join(thread, NULL);
    hvd__page_unmap(same, (struct hvd__page_shape){3, 3});
    hvd__page_unmap(page, (struct hvd__page_shape){3, 3});
}

static bool ends(int finder, int status, const char *text, int64_t now,
                 int64_t settle)
{
    struct hvd__cause cause = {.finder = finder, .status = status};

    snprintf(cause.text, sizeof cause.text, "%s", text);
    return hvd__page_end(page, &cause, now, settle);
}

TEST(the_first_end_counts)
{
    struct hvd__cause cause;
    int fd;

    page = hvd__page_create((struct hvd__page_shape){1, 1}, &fd);
    close(fd);
    ck_assert(!hvd__page_has_ended(page, 1, 0, &cause));
    ck_assert(!hvd__page_is_ending(page));
    ck_assert(ends(5, HVD_ERR_LOST, "rank 1 is gone", 1, 0));
    ck_assert(!ends(3, HVD_ERR_STALLED, "later", 1, 0));
    ck_assert(hvd__page_has_ended(page, 1, 0, &cause));
    ck_assert_int_eq(cause.status, HVD_ERR_LOST);
    ck_assert_str_eq(cause.text, "rank 1 is gone");
    hvd__page_unmap(page, (struct hvd__page_shape){1, 1});
}

TEST(while_an_end_settles_that_of_the_lowest_finder_counts)
{
    struct hvd__cause cause;
    int fd;

    page = hvd__page_create((struct hvd__page_shape){1, 1}, &fd);
    close(fd);
    ck_assert(ends(5, HVD_ERR_LOST, "5", 100, 10));
    ck_assert(!ends(5, HVD_ERR_LOST, "5 again", 101, 10));
    ck_assert(!ends(6, HVD_ERR_LOST, "6", 101, 10));
    ck_assert(ends(3, HVD_ERR_STALLED, "3", 102, 10));
    ck_assert(hvd__page_is_ending(page));
    ck_assert(!hvd__page_has_ended(page, 109, 10, &cause));
    ck_assert(!ends(2, HVD_ERR_LOST, "late", 110, 10));
    ck_assert(hvd__page_has_ended(page, 110, 10, &cause));
    ck_assert_int_eq(cause.finder, 3);
    ck_assert_int_eq(cause.status, HVD_ERR_STALLED);
    hvd__page_unmap(page, (struct hvd__page_shape){1, 1});
}

TEST(more_causes_than_there_is_room_for)
{
    struct hvd__cause cause;
    int fd;

    page = hvd__page_create((struct hvd__page_shape){1, 1}, &fd);
    close(fd);
    for (int i = 0; i < 3 * HVD__PAGE_CAUSES; i++)
        ck_assert(ends(100 - i, HVD_ERR_LOST, "x", 1, 10) ==
                  (i < HVD__PAGE_CAUSES));
    ck_assert(hvd__page_has_ended(page, 11, 10, &cause));
    ck_assert_int_eq(cause.finder, 100 - HVD__PAGE_CAUSES + 1);
    hvd__page_unmap(page, (struct hvd__page_shape){1, 1});
}

/* ---------------------------------------------------------------- processes */

TEST(the_fate_of_a_process)
{
    char text[128], state;
    pid_t child = fork();

    if (child == 0)
        _exit(5);
    ck_assert(hvd__process_start_time(getpid(), &state) > 0);
    ck_assert(hvd__process_start_time(child, NULL) > 0);
    while (strstr(hvd__process_fate(child, text, sizeof text), "is gone"))
        usleep(1000); /* until it is a zombie */
    ck_assert_str_eq(text, "exited with status 5 without hvd_shutdown");
    waitpid(child, NULL, 0);
    ck_assert_str_eq(hvd__process_fate(child, text, sizeof text), "is gone");
    ck_assert(hvd__process_start_time(child, NULL) == 0);
    child = fork();
    if (child == 0)
        for (;;)
            pause();
    kill(child, SIGKILL);
    while (strstr(hvd__process_fate(child, text, sizeof text), "is gone"))
        usleep(1000);
    ck_assert_str_eq(text, "was killed by signal 9 (Killed)");
    waitpid(child, NULL, 0);
}

/* A rank's operation is written as text or as a number: the later one counts,
 * also if it is shorter. */
TEST(what_a_rank_does)
{
    static const struct hvd__doing longer = {3, "allreduce 'gradient of 1'"};
    static const struct hvd__doing shorter = {9, "join ''"};
    int fd;
    struct hvd__line *line;
    struct hvd__doing doing;

    page = hvd__page_create((struct hvd__page_shape){1, 1}, &fd);
    close(fd);
    line = &page->lines[0];
    hvd__page_read_doing(line, &doing);
    ck_assert_int_eq(doing.since_ns, 0);
    hvd__page_write_doing(line, &longer);
    hvd__page_read_doing(line, &doing);
    ck_assert_int_eq(doing.since_ns, 3);
    ck_assert_str_eq(doing.text, longer.text);
    hvd__page_write_quick(line, HVD_BROADCAST, UINT64_C(1) << 40, 5);
    hvd__page_read_doing(line, &doing);
    ck_assert_int_eq(doing.since_ns, 5);
    ck_assert_str_eq(doing.text, "broadcast '1099511627776'");
    hvd__page_write_doing(line, &shorter);
    hvd__page_read_doing(line, &doing);
    ck_assert_int_eq(doing.since_ns, 9);
    ck_assert_str_eq(doing.text, shorter.text);
    hvd__page_unmap(page, (struct hvd__page_shape){1, 1});
}

/* A hundred requests that wait for the same ranks are one line, whatever their
 * order; those that wait for others are another. */
TEST(one_line_for_all_that_wait_alike)
{
    static struct hvd__watch_request r[100];
    const struct hvd__scene three = scene(3);
    struct hvd__stall stalls[2];
    char text[1024], name[16];
    int n = 0;

    begin();
    for (int i = 0; i < 100; i++) {
        sprintf(name, "'g%d'", i);
        r[i] = request((uint64_t)i, name, "allreduce sum int32 [4]");
        r[i].since_ns += (i == 60 ? -1 : i) * SECOND / 100;
        if (i < 50)
            has(0, r[i]);
        if (i == 7)
            has(1, r[i]);
        n = hvd__stall_add(stalls, n, 2, &r[i],
                           hvd__stall_missing(&three, &r[i]));
    }
    ck_assert_int_eq(n, 2); /* the stall of ranks 0, 1 and 2 found no room */
    ck_assert_int_eq(stalls[0].n, 49);
    ck_assert_int_eq(stalls[1].n, 1);
    hvd__stall_print(&three, stalls[0].oldest, 101 * SECOND, text, sizeof text);
    ck_assert(strstr(text, "'g0' (allreduce") == text);
    hvd__stall_print_others(&stalls[0], text, sizeof text);
    ck_assert_msg(strstr(text, "; so do 48 more: 'g1', 'g2', 'g3', ..."), "%s",
                  text);
    hvd__stall_print_others(&stalls[1], strcpy(text, "x"), sizeof text);
    ck_assert_str_eq(text, "x");
    /* The oldest request is the one reported, though it came last. */
    n = hvd__stall_add(stalls, 0, 2, &r[1], 5);
    n = hvd__stall_add(stalls, n, 2, &r[60], 5);
    ck_assert_int_eq(n, 1);
    ck_assert(stalls[0].oldest == &r[60]);
    hvd__stall_print_others(&stalls[0], strcpy(text, "x"), sizeof text);
    ck_assert_str_eq(text, "x; so does 1 more: 'g1'");
}

TEST_MAIN("watch_stall", .seconds = 60)
