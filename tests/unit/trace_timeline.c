/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a timeline is a file of valid JSON at every moment, with any
 * names. */
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "suite.h"
#include "trace/timeline.h"

static char path[] = "/tmp/hvd-timeline.XXXXXX";

static void begin(void)
{
    int fd;

    snprintf(path, sizeof path, "/tmp/hvd-timeline.XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void end(void)
{
    unlink(path);
}

static json_t *load(void)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);

    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    return root;
}

static const char *text_of(json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));

    return text ? text : "";
}

/* Returns a rank's first event of this name, or NULL. */
static json_t *find(json_t *root, const char *name, int rank)
{
    json_t *event;
    size_t i;

    json_array_foreach(json_object_get(root, "traceEvents"), i,
                       event) if (strcmp(text_of(event, "name"), name) == 0 &&
                                  json_integer_value(json_object_get(
                                      event, "pid")) == rank) return event;
    return NULL;
}

static int count(json_t *root, const char *ph)
{
    json_t *event;
    size_t i;
    int n = 0;

    json_array_foreach(json_object_get(root, "traceEvents"), i, event) n +=
        strcmp(text_of(event, "ph"), ph) == 0;
    return n;
}

static struct hvd__span span(const char *name)
{
    struct hvd__span s = {
        .kind = HVD_ALLREDUCE,
        .batch = 2,
        .packed = true,
        .bytes = 64,
        .times = {1000000, 2000000, 3000000, 4000000, 5000000, 6000000}};

    snprintf(s.name, sizeof s.name, "%s", name);
    snprintf(s.shape, sizeof s.shape, "float32 [4,4]");
    return s;
}

static struct hvd__timeline *open_one(int rank, int64_t offset_ns)
{
    struct hvd__timeline *t;

    ck_assert_msg(hvd__timeline_open(path, rank, "host", offset_ns, &t) ==
                      HVD_OK,
                  "%s", hvd_last_error());
    return t;
}

static void check_times(json_t *event, double ts, double dur)
{
    ck_assert(event != NULL);
    ck_assert(json_number_value(json_object_get(event, "ts")) == ts);
    ck_assert(json_number_value(json_object_get(event, "dur")) == dur);
}

TEST(an_empty_one)
{
    json_t *root;

    ck_assert_int_eq(hvd__timeline_create(path, 3), HVD_OK);
    root = load();
    ck_assert_int_eq(json_integer_value(json_object_get(
                         json_object_get(root, "otherData"), "ranks")),
                     3);
    ck_assert_int_eq(count(root, "X"), 0);
    json_decref(root);
}

TEST(phases_of_a_request)
{
    struct hvd__span s = span("w");
    struct hvd__timeline *t;
    json_t *root, *whole;

    ck_assert_int_eq(hvd__timeline_create(path, 1), HVD_OK);
    t = open_one(0, 500000);
    hvd__timeline_record(t, &s);
    hvd__timeline_close(t);
    root = load();
    whole = find(root, "ALLREDUCE", 0);
    check_times(whole, 1500, 5000); /* of rank 0's clock */
    whole = json_object_get(whole, "args");
    ck_assert_str_eq(text_of(whole, "tensor"), "float32 [4,4]");
    ck_assert_str_eq(text_of(whole, "status"), "success");
    check_times(find(root, "NEGOTIATE_ALLREDUCE", 0), 1500, 1000);
    check_times(find(root, "QUEUE", 0), 2500, 1000);
    check_times(find(root, "MEMCPY_IN_FUSION_BUFFER", 0), 3500, 1000);
    check_times(find(root, "MPI_ALLREDUCE", 0), 4500, 1000);
    check_times(find(root, "MEMCPY_OUT_FUSION_BUFFER", 0), 5500, 1000);
    json_decref(root);
}

/* Returns the time of mark number n, in us of rank 0's clock; 0: there is none.
 */
static double mark(json_t *root, int n)
{
    json_t *event;
    size_t i;

    json_array_foreach(
        json_object_get(root, "traceEvents"), i,
        event) if (strcmp(text_of(event, "name"), "CYCLE_START") == 0 &&
                   n-- == 0) return json_number_value(json_object_get(event,
                                                                      "ts"));
    return 0;
}

/* Two requests of one batch, and one of another. */
TEST(cycles_are_marked_once_for_a_batch)
{
    struct hvd__span s = span("w");
    struct hvd__timeline *t;
    json_t *root;

    for (int marks = 0; marks < 2; marks++) {
        ck_assert_int_eq(hvd__timeline_create(path, 1), HVD_OK);
        t = open_one(0, 500000);
        if (marks)
            hvd__timeline_mark_cycles(t);
        for (int i = 0; i < 3; i++) {
            s.times.started_ns = i < 2 ? 3000000 : 4000000;
            hvd__timeline_record(t, &s);
        }
        hvd__timeline_close(t);
        root = load();
        ck_assert_int_eq(count(root, "i"), marks ? 2 : 0);
        ck_assert_double_eq(mark(root, 0), marks ? 3500 : 0);
        ck_assert_double_eq(mark(root, 1), marks ? 4500 : 0);
        json_decref(root);
    }
}

/* A request that failed before it was agreed on has only that phase. */
TEST(a_request_that_failed)
{
    struct hvd__span s = span("w");
    struct hvd__timeline *t;
    json_t *root;

    s.status = HVD_ERR_MISMATCH;
    s.packed = false;
    s.times = (struct hvd__times){.submitted_ns = 1000, .done_ns = 3000};
    ck_assert_int_eq(hvd__timeline_create(path, 1), HVD_OK);
    t = open_one(0, 0);
    hvd__timeline_record(t, &s);
    hvd__timeline_close(t);
    root = load();
    ck_assert_int_eq(count(root, "X"), 2);
    check_times(find(root, "NEGOTIATE_ALLREDUCE", 0), 1, 2);
    ck_assert_str_eq(
        text_of(json_object_get(find(root, "ALLREDUCE", 0), "args"), "status"),
        hvd_strerror(HVD_ERR_MISMATCH));
    json_decref(root);
}

/* Names are the program's: quotes, backslashes, bytes that are no text. */
TEST(names_of_every_kind)
{
    static const char *const names[][2] = {
        {"plain", "plain"},
        {"q\"uote", "q\"uote"},
        {"back\\slash", "back\\slash"},
        {"umlaut \xc3\xa4 \xf0\x9f\x98\x80",
         "umlaut \xc3\xa4 \xf0\x9f\x98\x80"},
        {"\x01\x1f\x7f", "\x01\x1f\x7f"},
        {"bad \xff", "bad \xef\xbf\xbd"},
        {"cut \xc3", "cut \xef\xbf\xbd"},
        {"overlong \xc0\xaf", "overlong \xef\xbf\xbd\xef\xbf\xbd"},
        {"surrogate \xed\xa0\x80",
         "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"</script>", "</script>"},
    };
    const size_t n = sizeof names / sizeof *names;
    struct hvd__timeline *t;
    json_t *root, *event;
    size_t i, found = 0;

    ck_assert_int_eq(hvd__timeline_create(path, 1), HVD_OK);
    t = open_one(0, 0);
    for (size_t k = 0; k < n; k++) {
        struct hvd__span s = span(names[k][0]);
        hvd__timeline_record(t, &s);
    }
    hvd__timeline_close(t);
    root = load();
    json_array_foreach(
        json_object_get(root, "traceEvents"), i,
        event) if (strcmp(text_of(event, "name"), "thread_name") == 0)
    {
        ck_assert_str_eq(text_of(json_object_get(event, "args"), "name"),
                         names[found][1]);
        found++;
    }
    ck_assert_uint_eq(found, n);
    json_decref(root);
}

/* The file is valid between any two flushes, with several ranks that do not
 * wait for each other. */
enum { RANKS = 3, FLUSHES = 50 };

static void *write_much(void *given)
{
    struct hvd__timeline *t = given;

    for (int i = 0; i < FLUSHES; i++) {
        struct hvd__span s = span(i % 2 ? "odd" : "even");

        hvd__timeline_record(t, &s);
        hvd__timeline_flush(t);
    }
    return NULL;
}

TEST(several_write_one_file)
{
    struct hvd__timeline *ranks[RANKS];
    pthread_t threads[RANKS];
    json_t *root;

    ck_assert_int_eq(hvd__timeline_create(path, RANKS), HVD_OK);
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = open_one(i, 0);
        json_decref(load());
    }
    for (int i = 0; i < RANKS; i++)
        pthread_create(&threads[i], NULL, write_much, ranks[i]);
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    root = load(); /* nobody has closed it */
    ck_assert_int_eq(count(root, "X"), RANKS * FLUSHES * 6);
    for (int i = 0; i < RANKS; i++)
        ck_assert(find(root, "ALLREDUCE", i) != NULL);
    json_decref(root);
    for (int i = 0; i < RANKS; i++)
        hvd__timeline_close(ranks[i]);
    json_decref(load());
}

/* Events come faster than they are written: some are dropped, and the file
 * stays whole. */
TEST(too_many_at_once)
{
    struct hvd__span s = span("w");
    struct hvd__timeline *t;
    json_t *root;
    int n;

    ck_assert_int_eq(hvd__timeline_create(path, 1), HVD_OK);
    t = open_one(0, 0);
    for (int i = 0; i < 40000; i++)
        hvd__timeline_record(t, &s);
    hvd__timeline_close(t);
    root = load();
    n = count(root, "X");
    ck_assert_int_gt(n, 6 * 10000);
    ck_assert_int_lt(n, 6 * 40000);
    ck_assert_int_eq(n % 6, 0);
    json_decref(root);
}

TEST(files_that_cannot_be)
{
    struct hvd__timeline *t;

    ck_assert_int_eq(hvd__timeline_create("/nowhere/t.json", 1), HVD_ERR_FILE);
    ck_assert(strstr(hvd_last_error(), "/nowhere/t.json"));
    ck_assert_int_eq(hvd__timeline_open("/nowhere/t.json", 0, "host", 0, &t),
                     HVD_ERR_FILE);
    ck_assert(t == NULL);
    ck_assert(strstr(hvd_last_error(), "No such file"));
    hvd__timeline_close(NULL);
}

/* The exchange with the shortest way sets the clock's offset. */
TEST(clocks)
{
    static const int64_t before[] = {100, 1000, 2000},
                         theirs[] = {5500, 6050, 9000},
                         after[] = {900, 1100, 2800};

    ck_assert_int_eq(hvd__clock_offset(before, theirs, after, 3), 5000);
    ck_assert_int_eq(hvd__clock_offset(before, theirs, after, 1), 5000);
    ck_assert_int_eq(hvd__clock_offset(before + 2, theirs + 2, after + 2, 1),
                     6600);
}

TEST_MAIN("trace_timeline", .set_up = begin, .tear_down = end, .seconds = 120)
