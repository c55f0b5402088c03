/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.h - the guard finds the ranks that keep hvd_init or MPI_Finalize from
 * ending. It watches before the status page (page.h) exists and after it is
 * gone.
 *
 * The guard is a thread that never calls MPI. It knows the ranks of its host,
 * with their processes, by their calls (roll.h); of other ranks it knows only
 * that they did not call. When it comes to a verdict, it logs it and sends it
 * to the ranks of its host at once. A rank that reads the verdict
 * (hvd__guard_verdict) can give up in an orderly way. If a rank is inside a
 * blocking call of MPI or does not read it, the guard ends the process with
 * status 70.
 *
 * All times are the thread's own (own_time.h), as in the watchdog.
 */
#ifndef HVD_WATCH_GUARD_H
#define HVD_WATCH_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* The stages of a rank: X(constant, words, whether it is a blocking call). */
#define HVD__STAGES(X)                                                         \
    X(HVD__STAGE_MPI, "MPI_Init", true)                                        \
    X(HVD__STAGE_GROUP, "MPI_Comm_create_group", true)                         \
    X(HVD__STAGE_COMM, "MPI_Comm_idup", false)                                 \
    X(HVD__STAGE_MEET, "the first meeting of the ranks", false)                \
    X(HVD__STAGE_SHARE, "setting up what the ranks share", false)              \
    X(HVD__STAGE_TRANSPORT, "choosing the transport", false)                   \
    X(HVD__STAGE_PREPARE, "the last meeting of the ranks", false)              \
    X(HVD__STAGE_FINALIZE, "MPI_Finalize", true)

enum hvd__stage {
#define X(constant, words, blocks) constant,
    HVD__STAGES(X)
#undef X
};

struct hvd__guard_options {
    int64_t heartbeat_ns;  /* stopped for so long: lost; 0: never */
    int64_t limit_ns;      /* time that hvd_init may take; 0: any */
    int64_t report_ns;     /* time between reports of who is missing; 0: none */
    int64_t exit_grace_ns; /* from a verdict to the end of the process; 0: it
                              goes on */
};

struct hvd__guard;

/* Begins to watch a call of hvd_init. Returns NULL, with the last error set, if
 * it cannot; then nothing is watched. The functions below accept NULL. */
struct hvd__guard *hvd__guard_start(const struct hvd__guard_options *options,
                                    enum hvd__stage stage);

/* Sets the options that rank 0 has decided. */
void hvd__guard_set(struct hvd__guard *guard,
                    const struct hvd__guard_options *options);

/* Records that this rank has come to a stage and informs the other ranks of its
 * host. */
void hvd__guard_enter(struct hvd__guard *guard, enum hvd__stage stage);

/* Sets the ranks that take part: their ranks in MPI_COMM_WORLD in the order of
 * their new ranks, negative for those of other jobs. */
void hvd__guard_choose(struct hvd__guard *guard, const int *ranks, int n);

/* Leaves the other ranks to the watchdog. The guard still enforces the
 * limit. */
void hvd__guard_hand_over(struct hvd__guard *guard);

/* Returns HVD_OK, or the verdict's status with the last error set. Any thread
 * may call it as often as it likes. */
int hvd__guard_verdict(const struct hvd__guard *guard);

/* Stops the guard and sends the others the result of hvd_init: status and, if
 * it is negative, the last error. The processes that have called are remembered
 * for MPI_Finalize. */
void hvd__guard_stop(struct hvd__guard *guard, int status);

/*
 * Watches MPI_Finalize, which waits for all ranks: the guard judges those that
 * called in the last hvd_init. text, if not NULL, says why MPI_Finalize cannot
 * succeed; then the process is ended after the grace. is_last: the process
 * exits as soon as MPI_Finalize is over, so a rank that has been gone for long
 * and still blocks this one is lost even if it had come.
 */
void hvd__guard_watch_finalize(const struct hvd__guard_options *options,
                               const char *text, bool is_last);
/* Stops the guard of MPI_Finalize: if is_last was true, when MPI_Finalize has
 * returned, which it tells the others; otherwise when the process exits.
 * Answers the calls that have arrived. */
void hvd__guard_leave_finalize(void);

#endif
