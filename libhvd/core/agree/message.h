/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - messages between the members of a process set: the id of the set
 * and a run of records (wire.h).
 */
#ifndef HVD_CORE_MESSAGE_H
#define HVD_CORE_MESSAGE_H

#include "core/agree/wire.h"

struct hvd__set;

/* Begins a message with the id of its set. */
void hvd__message_begin(const struct hvd__set *set, struct hvd__writer *out);
/* Sends what was written, if anything, to a member; out is empty afterwards. */
int hvd__message_post(struct hvd__set *set, int peer, struct hvd__writer *out);
/* Sends a copy of what was written to every other member; out stays. */
int hvd__message_tell(struct hvd__set *set, const struct hvd__writer *out);
/* Returns the error for a message of a member that makes no sense. */
int hvd__message_garbled(const struct hvd__set *set, int peer);

#endif
