/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank alone can refuse some requests. It is the second of a set of three,
 * whose ranks in the world are 1, 4 and 5.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "core/api/check.h"
#include "core/request/names.h"
#include "core/request/request.h"
#include "core/table/set.h"
#include "suite.h"

enum { N = 3, ROWS = 6, COUNT = ROWS * 2 };

static int world[N] = {1, 4, 5};
static struct hvd__set set = {
    .id = 7, .ranks = world, .team = {.world = world, .rank = 1, .size = N}};

static float in[2 * COUNT], out[N * COUNT];
static int64_t shape[HVD_MAX_DIMS + 1] = {ROWS, 2};

/* An allreduce that is good, to be spoilt. */
static hvd_request good(hvd_kind kind)
{
    hvd_request r;

    hvd_request_init(&r, sizeof r);
    r.kind = kind;
    r.dtype = HVD_FLOAT32;
    if (!hvd_kind_name(kind))
        return r;
    if (hvd__kind_has(kind, HVD__HAS_OP))
        r.op = HVD_SUM;
    if (hvd__kind_has(kind, HVD__HAS_ROOT))
        r.root = 4;
    r.ndim = 2;
    r.shape = shape;
    r.input = in;
    r.output = out;
    return r;
}

/* The submission of a request that was checked; NULL if it was refused. */
static struct hvd__submission *check(const hvd_request *request, int *status)
{
    struct hvd__submission *submission = hvd__submission_new(1);

    ck_assert(submission != NULL);
    *status = hvd__request_check(request, &set, &submission->requests[0]);
    if (*status < 0) {
        hvd__submission_free(submission);
        return NULL;
    }
    return submission;
}

static struct hvd__submission *accepted(const hvd_request *request)
{
    int status;
    struct hvd__submission *submission = check(request, &status);

    ck_assert_msg(status == HVD_OK, "%s", hvd_last_error());
    return submission;
}

/* Checks that the request is refused with that status, and with a word in the
 * text. */
static void refused(const hvd_request *request, int want, const char *word)
{
    int status;

    ck_assert_msg(check(request, &status) == NULL, "accepted: %s", word);
    ck_assert_msg(status == want, "%d: %s", status, hvd_last_error());
    ck_assert_msg(strstr(hvd_last_error(), word) != NULL, "'%s' lacks '%s'",
                  hvd_last_error(), word);
}

#define REFUSED(request_kind, change, status, word)                            \
    do {                                                                       \
        hvd_request r = good(request_kind);                                    \
        change;                                                                \
        refused(&r, status, word);                                             \
    } while (0)

#define ACCEPTED(request_kind, change)                                         \
    do {                                                                       \
        hvd_request r = good(request_kind);                                    \
        change;                                                                \
        hvd__submission_free(accepted(&r));                                    \
    } while (0)

/* ----------------------------------------------------- requests of versions */

TEST(programs_of_other_versions)
{
    struct {
        hvd_request request;
        int64_t more[4]; /* of a later version */
    } later;
    hvd_request r = good(HVD_ALLREDUCE), got;

    ck_assert_int_eq(hvd__request_copy(NULL, &got), HVD_ERR_ARGUMENT);
    ck_assert(strstr(hvd_last_error(), "NULL"));
    r.size = 0; /* never initialised */
    ck_assert_int_eq(hvd__request_copy(&r, &got), HVD_ERR_ARGUMENT);
    ck_assert(strstr(hvd_last_error(), "hvd_request_init"));
    /* A struct of an earlier version is shorter: the fields that it lacks are
     * zero, whatever lies behind it. */
    r.size = offsetof(hvd_request, process_set);
    r.process_set = 99;
    r.capacity = 99;
    ck_assert_int_eq(hvd__request_copy(&r, &got), HVD_OK);
    ck_assert_int_eq(got.process_set, 0);
    ck_assert_int_eq(got.capacity, 0);
    ck_assert(got.input == in && got.prescale == 1);
    /* A later one may leave its new fields alone. */
    hvd_request_init(&later.request, sizeof later);
    ck_assert_uint_eq(later.request.size, sizeof later);
    ck_assert_int_eq(hvd__request_copy(&later.request, &got), HVD_OK);
    later.more[3] = 1;
    ck_assert_int_eq(hvd__request_copy(&later.request, &got),
                     HVD_ERR_UNSUPPORTED);
    ck_assert(strstr(hvd_last_error(), "newer"));
}

TEST(defaults)
{
    hvd_request r;

    memset(&r, 0xff, sizeof r);
    hvd_request_init(&r, sizeof r);
    ck_assert_int_eq(r.op, HVD_AVERAGE);
    ck_assert(r.prescale == 1 && r.postscale == 1);
    ck_assert(!r.name && !r.input && !r.output && !r.callback && !r.counts);
    /* hvd_request_init writes no byte that an earlier version's struct
     * lacks. */
    memset(&r, 0xff, sizeof r);
    hvd_request_init(&r, offsetof(hvd_request, process_set));
    ck_assert_int_eq(r.process_set, -1);
    hvd_request_init(NULL, sizeof r);
}

/* -------------------------------------------------------------------- names */

TEST(names)
{
    char longest[HVD_MAX_NAME + 2];

    ck_assert_int_eq(hvd__name_check(""), HVD_OK);
    ck_assert_int_eq(hvd__name_check("layer 1/weights\xc3\xa4"), 17);
    memset(longest, 'x', sizeof longest);
    longest[HVD_MAX_NAME] = '\0';
    ck_assert_int_eq(hvd__name_check(longest), HVD_MAX_NAME);
    longest[HVD_MAX_NAME] = 'x';
    longest[HVD_MAX_NAME + 1] = '\0';
    ck_assert_int_eq(hvd__name_check(longest), HVD_ERR_ARGUMENT);
    ck_assert(strstr(hvd_last_error(), "longer than 255"));
    for (char c = 1; c < 0x20; c++) {
        char name[] = {'a', c, '\0'};
        ck_assert_int_eq(hvd__name_check(name), HVD_ERR_ARGUMENT);
    }
    ck_assert(strstr(hvd_last_error(), "byte 1"));
    ck_assert(strstr(hvd_last_error(), "0x1f"));
    ck_assert_int_eq(hvd__name_check("\x7f"), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd__name_check(HVD__JOIN_NAME), HVD_ERR_ARGUMENT);
}

/* Every control character is refused in a name, wherever it is and whatever is
 * around it. */
TEST(control_characters)
{
    static const char around[] = {'x', ' ', '~', '\x80', '\xff'};
    char name[20], wanted[32];

    for (size_t i = 0; i < sizeof around; i++)
        for (int at = 0; at < 18; at++)
            for (int byte = 1; byte < 256; byte++) {
                bool control = byte < 0x20 || byte == 0x7f;
                int got;

                memset(name, around[i], sizeof name);
                name[18] = '\0';
                name[at] = (char)byte;
                got = hvd__name_check(name);
                ck_assert_int_eq(got, control ? HVD_ERR_ARGUMENT : 18);
                snprintf(wanted, sizeof wanted, "byte %d of the name", at);
                ck_assert(!control || strstr(hvd_last_error(), wanted));
            }
}

TEST(names_for_people)
{
    char buffer[64];
    struct hvd__text text = hvd__text_at(buffer, sizeof buffer);

    hvd__text_add_name(&text, "w");
    hvd__text_add_name(&text, "\1"
                              "7");
    hvd__text_add_name(&text, HVD__JOIN_NAME);
    ck_assert_str_eq(buffer, "'w'unnamed operation 7'join'");
}

/* ------------------------------------------------------------------- shapes */

TEST(kinds_and_types)
{
    REFUSED(-1, , HVD_ERR_UNSUPPORTED, "kind -1");
    REFUSED(4, , HVD_ERR_UNSUPPORTED, "kind 4");
    REFUSED(HVD_NUM_KINDS, , HVD_ERR_UNSUPPORTED, "kind 10");
    REFUSED(HVD_ALLREDUCE, r.dtype = -1, HVD_ERR_ARGUMENT, "dtype -1");
    REFUSED(HVD_BROADCAST, r.dtype = HVD_NUM_DTYPES, HVD_ERR_ARGUMENT,
            "dtype 11");
}

TEST(shapes)
{
    static const int64_t negative[] = {4, -1}, empty[] = {INT64_MAX, 0, 9},
                         huge[] = {INT64_C(1) << 40, INT64_C(1) << 40},
                         wide[] = {INT64_MAX / 4};

    REFUSED(HVD_ALLREDUCE, r.ndim = -1, HVD_ERR_ARGUMENT, "-1 dimensions");
    REFUSED(HVD_ALLREDUCE, r.ndim = HVD_MAX_DIMS + 1, HVD_ERR_ARGUMENT,
            "17 dimensions");
    REFUSED(HVD_ALLREDUCE, r.shape = NULL, HVD_ERR_ARGUMENT, "is NULL");
    REFUSED(HVD_ALLREDUCE, r.shape = negative, HVD_ERR_ARGUMENT,
            "dimension 1 is -1");
    REFUSED(HVD_ALLREDUCE, r.shape = huge, HVD_ERR_ARGUMENT, "up to number 1");
    /* One tensor fits into memory, one of every rank does not. */
    REFUSED(HVD_ALLGATHER, r.shape = wide;
            r.ndim = 1, HVD_ERR_ARGUMENT, "of every rank");
    ACCEPTED(HVD_ALLREDUCE, r.ndim = 0; r.shape = NULL);
    ACCEPTED(HVD_ALLREDUCE, r.shape = empty; r.ndim = 3;
             r.input = r.output = NULL);
    REFUSED(HVD_ALLGATHER, r.ndim = 0, HVD_ERR_ARGUMENT, "scalar");
    REFUSED(HVD_GATHER, r.ndim = 0, HVD_ERR_ARGUMENT, "scalar");
    REFUSED(HVD_ALLTOALL, r.ndim = 0, HVD_ERR_ARGUMENT, "scalar");
    REFUSED(HVD_REDUCESCATTER, r.ndim = 0, HVD_ERR_ARGUMENT, "scalar");
}

TEST(what_is_kept_of_a_shape)
{
    int64_t mine[] = {5, 2};
    hvd_request r = good(HVD_REDUCESCATTER);
    struct hvd__submission *submission;

    r.shape = mine;
    r.dtype = HVD_FLOAT64;
    submission = accepted(&r);
    mine[0] = mine[1] = 77; /* copied */
    ck_assert_int_eq(submission->requests[0].count, 10);
    ck_assert_uint_eq(submission->requests[0].bytes, 80);
    ck_assert_int_eq(submission->requests[0].rows, 5);
    ck_assert_int_eq(submission->requests[0].signature.shape[1], 2);
    ck_assert_int_eq(submission->requests[0].signature.shape[2], 0);
    hvd__submission_free(submission);
}

/* Equal requests have equal signatures: what a kind has no use for is left
 * out. */
/* Every kind refuses unknown flags, the library's own flags, and whatever it
 * does not use. */
TEST(what_means_nothing_is_refused)
{
    static const int32_t strange[] = {2,       1 << 15, 1 << 16, 1 << 17,
                                      1 << 18, 1 << 19, 1 << 30, INT32_MIN};

    for (hvd_kind kind = 0; kind < HVD_NUM_KINDS; kind++) {
        bool reduces, rooted;

        if (!hvd_kind_name(kind))
            continue;
        for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
            char words[32];

            sprintf(words, "flags 0x%x", (unsigned)strange[i]);
            REFUSED(kind, r.flags = strange[i];
                    hvd__request_distrust(&r), HVD_ERR_UNSUPPORTED, words);
        }
        REFUSED(kind, r.flags = 1 | 1 << 16; hvd__request_distrust(&r),
                                             HVD_ERR_UNSUPPORTED,
                                             "flags 0x10000");
        reduces = hvd__kind_has(kind, HVD__HAS_OP);
        rooted = hvd__kind_has(kind, HVD__HAS_ROOT);
        if (!reduces) {
            REFUSED(kind, r.prescale = 2, HVD_ERR_ARGUMENT, "scales nothing");
            REFUSED(kind, r.postscale = 0, HVD_ERR_ARGUMENT, "scales nothing");
            REFUSED(kind, r.flags = HVD_AVERAGE_CONTRIBUTORS, HVD_ERR_ARGUMENT,
                    "for averages");
        }
        if (!rooted)
            REFUSED(kind, r.root = 4, HVD_ERR_ARGUMENT, "has no root");
    }
    REFUSED(HVD_ALLREDUCE, r.flags = HVD_AVERAGE_CONTRIBUTORS, HVD_ERR_ARGUMENT,
            "for averages");
    REFUSED(HVD_BARRIER, r.root = 1, HVD_ERR_ARGUMENT, "barrier has no root");
}

static bool varies(const hvd_request *r)
{
    struct hvd__submission *submission = accepted(r);
    bool answer = hvd__signature_varies(&submission->requests[0].signature);

    hvd__submission_free(submission);
    return answer;
}

TEST(which_rows_may_differ)
{
    hvd_request r = good(HVD_ALLGATHER);

    ck_assert(!varies(&r)); /* the output's size gives the number */
    r.capacity = N * COUNT;
    ck_assert(varies(&r));
    r.capacity = 0;
    r.output = NULL;
    ck_assert(varies(&r));
    r = good(HVD_GATHER);
    r.root = 1; /* this rank has no output here; the root has one */
    r.output = NULL;
    ck_assert(!varies(&r));
    r.capacity = N * COUNT;
    ck_assert(varies(&r));
    r = good(HVD_ALLREDUCE);
    ck_assert(!varies(&r));
}

/* ------------------------------------------------------------------ buffers */

TEST(buffers)
{
    REFUSED(HVD_ALLREDUCE, r.input = NULL, HVD_ERR_ARGUMENT,
            "input of 12 elements is NULL");
    REFUSED(HVD_ALLREDUCE, r.output = NULL, HVD_ERR_ARGUMENT,
            "output of 12 elements is NULL");
    REFUSED(HVD_BROADCAST, r.output = NULL, HVD_ERR_ARGUMENT, "output");
    REFUSED(HVD_REDUCE, r.output = NULL, HVD_ERR_ARGUMENT, "output");
    ACCEPTED(HVD_REDUCE, r.output = NULL; r.root = 5);
    ACCEPTED(HVD_BROADCAST, r.input = NULL);
    ACCEPTED(HVD_ALLGATHER, r.output = NULL);
    ACCEPTED(HVD_REDUCESCATTER, r.output = NULL);
    REFUSED(HVD_ALLGATHER, r.capacity = -1, HVD_ERR_ARGUMENT, "capacity -1");
}

/* The result has all of the input, or this rank's share of it. */
TEST(capacities)
{
    static const hvd_kind kinds[] = {HVD_ALLREDUCE, HVD_REDUCE, HVD_BROADCAST};

    for (int i = 0; i < 3; i++) {
        REFUSED(kinds[i], r.capacity = COUNT - 1, HVD_ERR_ARGUMENT,
                "capacity 11 is too small: the output needs 12 elements");
        REFUSED(kinds[i], r.capacity = 1, HVD_ERR_ARGUMENT, "needs 12");
        ACCEPTED(kinds[i], r.capacity = COUNT);
        ACCEPTED(kinds[i], r.capacity = INT64_MAX);
        REFUSED(kinds[i], r.capacity = -1, HVD_ERR_ARGUMENT, "capacity -1");
    }
    REFUSED(HVD_REDUCESCATTER, r.capacity = COUNT / N - 1, HVD_ERR_ARGUMENT,
            "output needs");
    ACCEPTED(HVD_REDUCESCATTER, r.capacity = COUNT / N);
    /* The output is another rank's, or the library's. */
    ACCEPTED(HVD_REDUCE, r.capacity = 1; r.root = 5);
    ACCEPTED(HVD_REDUCESCATTER, r.output = NULL; r.capacity = 1);
}

TEST(overlap)
{
    REFUSED(HVD_ALLREDUCE, r.input = out + 1, HVD_ERR_ARGUMENT, "overlap");
    REFUSED(HVD_ALLREDUCE, r.output = in;
            r.input = in + 1, HVD_ERR_ARGUMENT, "overlap");
    ACCEPTED(HVD_ALLREDUCE, r.input = out);
    ACCEPTED(HVD_ALLREDUCE, r.input = out + COUNT); /* beside it */
    /* A gather's input may be this rank's part of the output, alone. */
    ACCEPTED(HVD_ALLGATHER, r.input = out + COUNT);
    REFUSED(HVD_ALLGATHER, r.input = out, HVD_ERR_ARGUMENT, "element 12");
    REFUSED(HVD_ALLGATHER, r.input = out + COUNT;
            r.capacity = N * COUNT, HVD_ERR_ARGUMENT, "its own number of rows");
    REFUSED(HVD_ALLTOALL, r.input = out;
            r.capacity = COUNT, HVD_ERR_ARGUMENT, "overlap");
    ACCEPTED(HVD_ALLTOALL, r.input = out);
    ACCEPTED(HVD_REDUCESCATTER, r.input = out);
}

/* --------------------------------------------------------- roots and splits */

TEST(roots)
{
    for (int root = -1; root <= 6; root++) {
        bool member = root == 1 || root == 4 || root == 5;

        if (member)
            ACCEPTED(HVD_BROADCAST, r.root = root);
        else
            REFUSED(HVD_BROADCAST, r.root = root, HVD_ERR_ARGUMENT,
                    "not a rank of process set 7");
    }
    REFUSED(HVD_GATHER, r.root = 2, HVD_ERR_ARGUMENT, "root 2");
    REFUSED(HVD_REDUCE, r.root = 2, HVD_ERR_ARGUMENT, "root 2");
}

TEST(splits)
{
    static const int64_t negative[] = {1, -1, 1}, many[] = {3, 3, 1},
                         wrapping[] = {INT64_MAX, INT64_MAX, 2},
                         fewer[] = {1, 0, 2}, seven[] = {7};
    int64_t mine[] = {1, 2, 3};
    hvd_request whole = good(HVD_ALLTOALL);
    struct hvd__submission *submission;

    REFUSED(HVD_ALLTOALL, r.splits = negative, HVD_ERR_ARGUMENT,
            "split 1 is -1");
    REFUSED(HVD_ALLTOALL, r.splits = many, HVD_ERR_ARGUMENT, "up to number 2");
    REFUSED(HVD_ALLTOALL, r.splits = wrapping, HVD_ERR_ARGUMENT,
            "more than the 6 rows");
    REFUSED(HVD_ALLTOALL, r.shape = seven;
            r.ndim = 1, HVD_ERR_ARGUMENT, "no multiple of 3");
    ACCEPTED(HVD_ALLTOALL, r.splits = fewer); /* the rest stays */
    whole.splits = mine;
    submission = accepted(&whole);
    mine[0] = 99; /* copied */
    ck_assert_int_eq(submission->requests[0].splits[0], 1);
    ck_assert_int_eq(submission->requests[0].splits[2], 3);
    hvd__submission_free(submission);
}

/* --------------------------------------------------------------- operations */

TEST(operations)
{
    REFUSED(HVD_ALLREDUCE, r.op = -1, HVD_ERR_ARGUMENT, "op -1");
    REFUSED(HVD_REDUCE, r.op = HVD_NUM_OPS, HVD_ERR_ARGUMENT, "op 6");
    REFUSED(HVD_ALLREDUCE, r.op = HVD_AVERAGE;
            r.dtype = HVD_BOOL, HVD_ERR_ARGUMENT,
            "bool has no average, which is the default op: the "
            "logical or is sum or max");
    REFUSED(HVD_ALLREDUCE, r.op = HVD_ADASUM;
            r.dtype = HVD_INT32, HVD_ERR_ARGUMENT, "not int32");
    REFUSED(HVD_REDUCE, r.op = HVD_ADASUM, HVD_ERR_UNSUPPORTED, "allreduce");
    REFUSED(HVD_ALLREDUCE, r.flags = 2, HVD_ERR_UNSUPPORTED, "0x2");
    ACCEPTED(HVD_ALLREDUCE, r.op = HVD_ADASUM);
    ACCEPTED(HVD_ALLREDUCE, r.op = HVD_AVERAGE;
             r.flags = HVD_AVERAGE_CONTRIBUTORS);
}

TEST(scales)
{
    REFUSED(HVD_ALLREDUCE, r.prescale = NAN, HVD_ERR_ARGUMENT, "finite");
    REFUSED(HVD_REDUCE, r.postscale = -INFINITY, HVD_ERR_ARGUMENT, "finite");
    REFUSED(HVD_ALLREDUCE, r.dtype = HVD_BOOL;
            r.prescale = 2, HVD_ERR_ARGUMENT, "bool cannot be scaled");
    ACCEPTED(HVD_ALLREDUCE, r.dtype = HVD_INT8; r.prescale = 0.5);
    ACCEPTED(HVD_ALLREDUCE, r.prescale = 0; r.postscale = -1e300);
}

TEST(compressions)
{
    REFUSED(HVD_ALLREDUCE, r.compression = 15, HVD_ERR_ARGUMENT,
            "compression 15");
    REFUSED(HVD_ALLREDUCE, r.compression = -1, HVD_ERR_ARGUMENT,
            "compression -1");
    REFUSED(HVD_ALLREDUCE, r.compression = HVD_COMPRESSION_FP16;
            r.op = HVD_MAX, HVD_ERR_UNSUPPORTED, "sum or average");
    REFUSED(HVD_REDUCE, r.compression = HVD_COMPRESSION_FP16,
            HVD_ERR_UNSUPPORTED, "allreduces");
    REFUSED(HVD_ALLREDUCE, r.compression = HVD_COMPRESSION_BF16;
            r.dtype = HVD_INT32, HVD_ERR_ARGUMENT, "int32");
    REFUSED(HVD_ALLREDUCE, r.compression = HVD_COMPRESSION_TOPK;
            r.dtype = HVD_FLOAT64, HVD_ERR_ARGUMENT, "topk");
    ACCEPTED(HVD_ALLREDUCE, r.compression = HVD_COMPRESSION_TOPK);
    ACCEPTED(HVD_ALLREDUCE, r.compression = HVD_COMPRESSION_FP16;
             r.dtype = HVD_FLOAT64);
}

TEST_MAIN("core_request")
