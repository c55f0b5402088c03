/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.h - runs tests on several ranks at once under mpirun.
 *
 *     TEST(sums_are_right)
 *     {
 *         ...
 *     }
 *
 *     RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_allreduce")
 *
 * Every rank runs every test, in the same order, in one process: Check's fork
 * is off. After each test the ranks meet. If a rank does not come, because it
 * hangs in a collective that another left by a failed check, the job is
 * aborted after a while instead of hanging; by then, each rank has written its
 * results to stdout as TAP. The exit status of a rank says whether its tests
 * passed.
 */
#ifndef HVD_TESTS_RANKS_H
#define HVD_TESTS_RANKS_H

#include <stdint.h>

#include "checks.h"
#include "hvd.h"
#include "suite.h"

/* Says who initialises MPI before the first test; either way hvd_init follows.
 */
enum ranks_start {
    HVD_STARTS_MPI,
    PROGRAM_STARTS_MPI, /* with MPI_THREAD_MULTIPLE */
    PROGRAM_STARTS_MPI_FUNNELED
};

/* These are rank and size of MPI_COMM_WORLD, whatever state libhvd is in. */
int ranks_rank(void);
int ranks_size(void);

int ranks_test_main(enum ranks_start start, const struct suite *suite);

/* RANKS_TEST_MAIN(start, name, .set_up = ..., ...) has members of struct suite.
 */
#define RANKS_TEST_MAIN(start, ...)                                            \
    int main(void)                                                             \
    {                                                                          \
        return ranks_test_main(start, &(struct suite){.name = __VA_ARGS__});   \
    }

/* Returns memory for tensors: hvd_malloc on all ranks, ordinary memory on all
 * ranks, or a mixture, by turns. It is freed by hvd_free and never NULL. */
void *ranks_memory(size_t bytes);

/* Makes a request for the sum of a vector, or of a number if count is NULL. */
hvd_request ranks_sum(hvd_dtype dtype, const void *in, void *out,
                      const int64_t *count);

/* Submits and waits. Returns the status of whichever fails first. */
int ranks_run(const hvd_request *request);

/* Returns root for a kind that has a root, else 0. */
int ranks_rooted(hvd_kind kind, int root);

/* Checks that the next operation works: earlier failures must leave nothing
 * behind. */
void ranks_check_usable(void);

/* Returns the kernel's number of the thread of this process whose name begins
 * so; 0: there is none. */
int ranks_thread(const char *name);

/* Calls hvd_shutdown, sets the environment variable (NULL: unsets it), and
 * calls hvd_init. */
void ranks_restart_with(const char *variable, const char *value);

/* Fails with the library's text unless status >= 0. */
#define ck_hvd(expression)                                                     \
    do {                                                                       \
        int ck_status_ = (expression);                                         \
        ck_assert_msg(ck_status_ >= 0, "rank %d: %s: %s (%s)", ranks_rank(),   \
                      #expression, hvd_strerror(ck_status_),                   \
                      hvd_last_error());                                       \
    } while (0)

/* Fails unless the call fails with this status. */
#define ck_hvd_fails(expression, status)                                       \
    do {                                                                       \
        int ck_status_ = (expression);                                         \
        ck_assert_msg(ck_status_ == (status),                                  \
                      "rank %d: %s gave %d (%s), not %d; last error: %s",      \
                      ranks_rank(), #expression, ck_status_,                   \
                      hvd_strerror(ck_status_), (status), hvd_last_error());   \
    } while (0)

/* Fails unless the last error contains the text. */
#define ck_error_says(text)                                                    \
    ck_assert_msg(strstr(hvd_last_error(), (text)) != NULL,                    \
                  "rank %d: '%s' is not in: %s", ranks_rank(), (text),         \
                  hvd_last_error())

/* Numbers that both sides of a comparison can make: the same for all. */
uint64_t ranks_random(uint64_t *state);

/* An element of a buffer of any dtype, from and to a number that it can hold
 * exactly. */
void element_put(hvd_dtype dtype, void *buffer, int64_t i, double value);
double element_get(hvd_dtype dtype, const void *buffer, int64_t i);

#endif
