/* SPDX-License-Identifier: Apache-2.0 */
/*
 * negotiate_parts.h - what the files of the negotiation share: announce.c
 * (what this rank says), hear.c (what members say to the coordinator),
 * follow.c (what it decided), and negotiate.c (messages, and a step).
 */
#ifndef HVD_CORE_NEGOTIATE_PARTS_H
#define HVD_CORE_NEGOTIATE_PARTS_H

#include "core/agree/agreement.h"
#include "core/run/engine.h"

/* Everything that a message begins with. */
void hvd__message_begin(const struct hvd__set *set, struct hvd__writer *out);
/* Send what was written, if anything; out is empty afterwards. */
int hvd__message_post(struct hvd__set *set, int peer, struct hvd__writer *out);
/* ... to every other member; out stays. */
int hvd__message_tell(struct hvd__set *set, const struct hvd__writer *out);
/* A member sent what cannot be. */
int hvd__message_garbled(const struct hvd__set *set, int peer);

/* Say that this rank leaves the set, once. */
int hvd__announce_leave(struct hvd__set *set);

/* The coordinator's: the next record of a message. */
int hvd__hear_record(struct hvd__set *set, int peer, struct hvd__reader *in);

/* The coordinator's, in each step: goes on with autotuning, if it is active.
 * file: where the result is kept, or "". */
void hvd__tuning_step(struct hvd__set *set, const char *file);

/* A whole message of decisions. */
int hvd__follow(struct hvd__engine *engine, struct hvd__set *set,
                const void *data, size_t bytes);

#endif
