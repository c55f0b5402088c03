/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of names, numbers and errors of the public interface that need no
 * world. */
#include <pthread.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "suite.h"

TEST(names_and_numbers_are_inverse)
{
    for (hvd_dtype d = 0; d < HVD_NUM_DTYPES; d++) {
        ck_assert_int_eq(hvd_dtype_from_name(hvd_dtype_name(d)), d);
        ck_assert_int_eq(hvd_dtype_size(d), (int)hvd__dtype_bytes(d));
    }
    for (hvd_op o = 0; o < HVD_NUM_OPS; o++)
        ck_assert_int_eq(hvd_op_from_name(hvd_op_name(o)), o);
    ck_assert_int_eq(hvd_kind_from_name("allreduce"), HVD_ALLREDUCE);
    ck_assert_int_eq(hvd_kind_from_name("broadcast"), HVD_BROADCAST);
    ck_assert_int_eq(hvd_kind_from_name("barrier"), HVD_BARRIER);
}

/* Other programs rely on Horovod's numbers. */
TEST(numbers_stay)
{
    ck_assert_str_eq(hvd_dtype_name(0), "uint8");
    ck_assert_str_eq(hvd_dtype_name(5), "int64");
    ck_assert_str_eq(hvd_dtype_name(6), "float16");
    ck_assert_str_eq(hvd_dtype_name(7), "float32");
    ck_assert_str_eq(hvd_dtype_name(9), "bool");
    ck_assert_str_eq(hvd_dtype_name(10), "bfloat16");
    ck_assert_str_eq(hvd_op_name(0), "average");
    ck_assert_str_eq(hvd_op_name(1), "sum");
    ck_assert_str_eq(hvd_op_name(5), "product");
    ck_assert_int_eq(hvd_dtype_size(HVD_BFLOAT16), 2);
    ck_assert_int_eq(hvd_dtype_size(HVD_BOOL), 1);
}

TEST(what_has_no_name)
{
    ck_assert(hvd_dtype_name(-1) == NULL && hvd_dtype_name(11) == NULL);
    ck_assert(hvd_op_name(-1) == NULL && hvd_op_name(6) == NULL);
    ck_assert(hvd_kind_name(4) == NULL && hvd_kind_name(-1) == NULL);
    ck_assert_int_eq(hvd_dtype_size(77), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_dtype_from_name("float33"), HVD_ERR_ARGUMENT);
    ck_assert(strstr(hvd_last_error(), "float33"));
    ck_assert_int_eq(hvd_op_from_name(""), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_kind_from_name(NULL), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_dtype_from_name(NULL), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_op_from_name(NULL), HVD_ERR_ARGUMENT);
}

TEST(every_status_has_a_text_of_its_own)
{
    static const int all[] = {
#define X(constant, text) constant,
        HVD__STATUSES(X)
#undef X
    };
    size_t n = sizeof all / sizeof *all;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(hvd_strerror(all[i]), hvd_strerror(all[j]));
    ck_assert_str_eq(hvd_strerror(3), "success");
    ck_assert_str_eq(hvd_strerror(-99), "unknown status");
}

static void *fail_elsewhere(void *ignored)
{
    (void)ignored;
    ck_assert_str_eq(hvd_last_error(), "");
    hvd__fail(HVD_ERR_MPI, "elsewhere");
    return NULL;
}

TEST(the_last_error_is_the_threads_own)
{
    pthread_t thread;

    ck_assert_int_eq(hvd__fail(HVD_ERR_PEER, "rank %d", 3), HVD_ERR_PEER);
    ck_assert(pthread_create(&thread, NULL, fail_elsewhere, NULL) == 0);
    pthread_join(thread, NULL);
    ck_assert_str_eq(hvd_last_error(), "rank 3");
}

TEST(an_error_is_one_line_and_is_cut)
{
    char longest[3 * HVD__MESSAGE_MAX];

    hvd__fail(HVD_ERR_PEER, "two\nlines\tand a bell\a, \xc3\xa9");
    ck_assert_str_eq(hvd_last_error(), "two?lines?and a bell?, \xc3\xa9");
    /* The text of the last error may be an argument of the next. */
    hvd__fail(HVD_ERR_PEER, "again: %s", hvd_last_error());
    ck_assert_str_eq(hvd_last_error(),
                     "again: two?lines?and a bell?, \xc3\xa9");
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    hvd__fail_text(HVD_ERR_PEER, longest);
    ck_assert_uint_eq(strlen(hvd_last_error()), HVD__MESSAGE_MAX - 1);
    hvd__fail_text(HVD_ERR_PEER, "%n%s"); /* is no format */
    ck_assert_str_eq(hvd_last_error(), "%n%s");
    ck_assert_int_eq(hvd_set_last_error(HVD_ERR_FILE, "%n\tof another library"),
                     HVD_ERR_FILE);
    ck_assert_str_eq(hvd_last_error(), "%n?of another library");
    ck_assert_int_eq(hvd_set_last_error(-3, hvd_last_error() + 3), -3);
    ck_assert_str_eq(hvd_last_error(), "of another library");
    hvd_set_last_error(-3, NULL);
    ck_assert_str_eq(hvd_last_error(), "");
}

TEST_MAIN("base_names")
