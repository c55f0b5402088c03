/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - messages between the members of a process set. A message is the
 * id of the set and a sequence of records (wire.h).
 */
#ifndef HVD_CORE_MESSAGE_H
#define HVD_CORE_MESSAGE_H

#include "core/agree/wire.h"

struct hvd__set;

/* Begins a message with the id of its set. */
void hvd__message_begin(const struct hvd__set *set, struct hvd__writer *out);
/* Sends what is in out, if anything, to a member and empties out. */
int hvd__message_post(struct hvd__set *set, int peer, struct hvd__writer *out);
/* Returns the error for a message of a rank that makes no sense. */
int hvd__message_garbled(int rank);

#endif
