/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.h - who keeps hvd_init, or MPI_Finalize, from ending: watched from the
 * first moment, before there is a status page (page.h), and after.
 *
 * A thread that never calls MPI. It knows the ranks of its host by their calls
 * (roll.h), with their processes; of others, only that they have not been
 * heard of. What it finds is a verdict, which it tells on stderr, and to the
 * ranks of its host, at once. Where this rank looks (hvd__guard_verdict) it
 * can give up in an orderly way; where it is inside a blocking call of MPI, or
 * does not look, the guard ends the process, with status 70.
 *
 * All times are the thread's own, as the watchdog's.
 */
#ifndef HVD_WATCH_GUARD_H
#define HVD_WATCH_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* Where a rank is: X(constant, words, whether it is a blocking call). */
#define HVD__STAGES(X)                                                         \
    X(HVD__STAGE_MPI, "MPI_Init", true)                                        \
    X(HVD__STAGE_GROUP, "MPI_Comm_create_group", true)                         \
    X(HVD__STAGE_COMM, "MPI_Comm_idup", false)                                 \
    X(HVD__STAGE_MEET, "the first meeting of the ranks", false)                \
    X(HVD__STAGE_SHARE, "setting up what the ranks share", false)              \
    X(HVD__STAGE_PREPARE, "the last meeting of the ranks", false)              \
    X(HVD__STAGE_FINALIZE, "MPI_Finalize", true)

enum hvd__stage {
#define X(constant, words, blocks) constant,
    HVD__STAGES(X)
#undef X
};

struct hvd__guard_options {
    int64_t heartbeat_ns;  /* stopped for so long: lost; 0: never */
    int64_t limit_ns;      /* hvd_init may take so long; 0: as it likes */
    int64_t report_ns;     /* it is told so often whom it waits for; 0: never */
    int64_t exit_grace_ns; /* from a verdict to the end of the process; 0: it
                              is left alone */
};

struct hvd__guard;

/* Begin to watch a call of hvd_init. NULL, with the last error set: it is not
 * watched. NULL is accepted below. */
struct hvd__guard *hvd__guard_start(const struct hvd__guard_options *options,
                                    enum hvd__stage stage);

/* Others count from now on: what rank 0 has told. */
void hvd__guard_set(struct hvd__guard *guard,
                    const struct hvd__guard_options *options);

/* This rank has come to a stage; the others of its host are told. */
void hvd__guard_enter(struct hvd__guard *guard, enum hvd__stage stage);

/* Who takes part: ranks of MPI_COMM_WORLD, by their new rank, or negative for
 * those of other jobs. */
void hvd__guard_choose(struct hvd__guard *guard, const int *ranks, int n);

/* The watchdog watches the others from now on; the limit is still ours. */
void hvd__guard_hand_over(struct hvd__guard *guard);

/* HVD_OK, or what is wrong, with the last error set. Cheap; any thread. */
int hvd__guard_verdict(const struct hvd__guard *guard);

/* The others are told how it went: status, and if negative the last error. The
 * processes that were heard of are kept in mind, for what follows. */
void hvd__guard_stop(struct hvd__guard *guard, int status);

/*
 * Watch MPI_Finalize, which waits for all ranks: those that were heard of in
 * the last hvd_init. text, if not NULL, says why it cannot succeed: the process
 * is ended after the grace. is_last: the process exits as soon as it is over,
 * so that who is gone for long, and yet keeps us, is lost even if it had come.
 */
void hvd__guard_watch_finalize(const struct hvd__guard_options *options,
                               const char *text, bool is_last);
/* The process exits: those that have called are answered. */
void hvd__guard_leave_finalize(void);

#endif
