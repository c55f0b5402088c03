/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.h - how the ranks of a process set agree on what to run next and in
 * which order: the door of the room core/agree.
 *
 * The room owns set->agreement: what this rank has announced or written into
 * its slots, what it has heard of the others, and on the set's first member the
 * coordinator. Two ways lead to a decision. In ordered mode (ordered.h) every
 * rank compares the slots of all ranks. By name (step.c) the coordinator
 * decides and all members follow. All members run the same batches in the same
 * order. A submission goes one way at a time, and only an epoch that all ranks
 * accept leads from names back to order.
 *
 * The engine (core/world) calls hvd__agree_step and hvd__agree_post, a blocking
 * call (core/api/quick.c) the functions hvd__quick_*; all with the role of the
 * driver. Decided requests go to core/run.
 */
#ifndef HVD_CORE_AGREE_H
#define HVD_CORE_AGREE_H

#include <stdbool.h>
#include <stdint.h>

struct hvd__engine;
struct hvd__set;
struct hvd__settings;
struct hvd__submission;

/* Allocates set->agreement. shares: all members see each other's slots in
 * set->shm. HVD_ERR_MEMORY; then hvd__agreement_free gives back what is there.
 */
int hvd__agreement_new(struct hvd__set *set,
                       const struct hvd__settings *settings, bool shares);
/* Accepts a set without an agreement. */
void hvd__agreement_free(struct hvd__set *set);

/* Starts autotuning, if the settings ask for it and this rank coordinates the
 * set: from the sizes that are set, or with those of an earlier run, which
 * stay. HVD_ERR_CONFIG. */
int hvd__agree_tune(struct hvd__set *set, const struct hvd__settings *settings);

/* Driver's. Returns true if all members have left, and no message of theirs is
 * under way. */
bool hvd__agree_is_over(const struct hvd__set *set);
/* Driver's. Forgets what is submitted and not decided: nothing moves any more.
 */
void hvd__agree_drop(struct hvd__set *set);

/* Driver's. Announces what was submitted, takes in what others say, decides (on
 * the coordinator's rank) and follows decisions. Returns how many messages are
 * still on their way out, or an error after which nothing can go on. */
int hvd__agree_step(struct hvd__engine *engine, bool *moved);

/* Driver's. Posts what was submitted to sets in ordered mode. submission: that
 * one alone, which is not in the queue; NULL: the queue. */
int hvd__agree_post(struct hvd__engine *engine,
                    struct hvd__submission *submission);

/* Driver's, best effort. Tells the other ranks that this world is broken. */
void hvd__agree_break(struct hvd__engine *engine, int status, const char *text);

/* A blocking request on its shortest way: the calling thread, with the role of
 * the driver, posts the request and looks for the slots of the others. */
struct hvd__quick {
    int pauses; /* that are left */
    int yields;
    int64_t since_ns; /* of the first yield; 0: none yet */
};

enum hvd__quick_result {
    HVD__QUICK_NOT_POSTED,
    HVD__QUICK_POSTED, /* not decided, or not reduced everywhere */
    HVD__QUICK_DONE
};

/* Returns true if ordered mode is open in shared memory and nothing of this
 * rank is under way in it. */
bool hvd__quick_is_possible(const struct hvd__set *set);
/* Starts the time of a submission to such a set. */
struct hvd__quick hvd__quick_begin(struct hvd__submission *submission,
                                   bool may_spin);
enum hvd__quick_result hvd__quick_post(struct hvd__engine *engine,
                                       struct hvd__set *set,
                                       struct hvd__submission *submission,
                                       struct hvd__quick *quick);
/* Ends a quick request that is done. Returns its latency, as far as it is
 * known. */
int64_t hvd__quick_end(const struct hvd__submission *submission,
                       const struct hvd__quick *quick);
/* Queues a submission that was not posted: it is agreed on by order as others
 * are. */
void hvd__quick_queue(struct hvd__submission *submission);

#endif
