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
 * order. A submission takes one way at a time. Agreement by name gives way to
 * ordered mode only when all ranks accept an epoch.
 *
 * The engine (core/world) calls hvd__agree_step and hvd__agree_post*, and a
 * blocking call (core/api/quick.c) calls the functions hvd__quick_*. The caller
 * always has the role of the driver. Decided requests go to core/run.
 */
#ifndef HVD_CORE_AGREE_H
#define HVD_CORE_AGREE_H

#include <stdbool.h>
#include <stdint.h>

struct hvd__engine;
struct hvd__set;
struct hvd__submission;

/* Allocates set->agreement. On HVD_ERR_MEMORY, hvd__agreement_free frees what
 * was allocated. */
int hvd__agreement_new(struct hvd__set *set);
/* Accepts a set without an agreement. */
void hvd__agreement_free(struct hvd__set *set);

/* Starts autotuning if the settings ask for it and this rank coordinates the
 * set. The search starts at the configured sizes, as powers of two; sizes that
 * an earlier run found are used unchanged. Fails with HVD_ERR_CONFIG. */
int hvd__agree_tune(struct hvd__set *set);

/* Returns true if all members have left and none of their messages is under
 * way. */
bool hvd__agree_is_over(const struct hvd__set *set);
/* Drops all undecided submissions: nothing moves any more. */
void hvd__agree_drop(struct hvd__set *set);

/* Announces new submissions, receives messages, decides (on the coordinator's
 * rank) and follows decisions. Returns how many messages are still being sent,
 * or an error that breaks the world. */
int hvd__agree_step(struct hvd__engine *engine, bool *moved);

/* Posts the submissions in the queue to sets in ordered mode. */
int hvd__agree_post(struct hvd__engine *engine);
/* Posts a submission that is not in the queue, if its set is in ordered mode
 * and there is room. Returns whether it did; otherwise the caller queues the
 * submission. Takes no lock. */
bool hvd__agree_post_one(struct hvd__submission *submission);

/* Tells the other ranks, if possible, that this world is broken. */
void hvd__agree_break(struct hvd__engine *engine, int status, const char *text);

/* A quick request is a blocking request that takes the shortest way: the
 * calling thread, with the role of the driver, posts the request and polls the
 * slots of the others. */
struct hvd__quick {
    int pauses; /* pauses left */
    int yields;
    int64_t since_ns; /* time of the first yield; 0: none yet */
};

enum hvd__quick_result {
    HVD__QUICK_NOT_POSTED,
    HVD__QUICK_POSTED, /* not decided, or not reduced everywhere */
    HVD__QUICK_DONE
};

/* Returns true if ordered mode is open and this rank has nothing under way in
 * it. */
bool hvd__quick_is_possible(const struct hvd__set *set);
/* Starts the clock of a submission to a set for which hvd__quick_is_possible
 * returned true. */
struct hvd__quick hvd__quick_begin(struct hvd__submission *submission,
                                   bool may_spin);
enum hvd__quick_result hvd__quick_post(struct hvd__submission *submission,
                                       struct hvd__quick *quick);
/* Ends a quick request that is done. Returns its latency, measured or estimated
 * (sampling.h). */
int64_t hvd__quick_end(const struct hvd__submission *submission,
                       const struct hvd__quick *quick);
/* Queues a submission that was not posted. It is then agreed on in ordered mode
 * like any other. */
void hvd__quick_queue(struct hvd__submission *submission);

#endif
