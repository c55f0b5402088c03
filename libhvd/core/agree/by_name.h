/* SPDX-License-Identifier: Apache-2.0 */
/*
 * by_name.h - what the files of the negotiation share: announce.c
 * (what this rank says), hear.c (what members say to the coordinator),
 * follow.c (what it decided), and step.c (messages, and a step).
 */
#ifndef HVD_CORE_BY_NAME_H
#define HVD_CORE_BY_NAME_H

#include "core/agree/agreement.h"
#include "core/agree/message.h"
#include "core/run/engine.h"

/* Driver's: agree on a submission by name, from now on. It is freed if it was
 * refused. */
int hvd__announce(struct hvd__set *set, struct hvd__submission *submission);
/* Say that this rank leaves the set, once. */
int hvd__announce_leave(struct hvd__set *set);

/* The coordinator's: the next record of a message. */
int hvd__hear_record(struct hvd__set *set, int peer, struct hvd__reader *in);

/* The coordinator's, in each step: goes on with autotuning, if it is active.
 * file: where the result is kept, or "". */
void hvd__tuning_step(struct hvd__set *set, const char *file);

/* The coordinator's, in each step: asks, decides, tells the members. */
int hvd__decide(struct hvd__engine *engine, struct hvd__set *set);

/* A whole message of decisions. */
int hvd__follow(struct hvd__engine *engine, struct hvd__set *set,
                const void *data, size_t bytes);

#endif
