/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - messages between the members of a process set: the id of the set
 * and a run of records (wire.h).
 */
#ifndef HVD_CORE_MESSAGE_H
#define HVD_CORE_MESSAGE_H

#include "core/agree/wire.h"

struct hvd__set;

/* Everything that a message begins with. */
void hvd__message_begin(const struct hvd__set *set, struct hvd__writer *out);
/* Send what was written, if anything; out is empty afterwards. */
int hvd__message_post(struct hvd__set *set, int peer, struct hvd__writer *out);
/* ... to every other member; out stays. */
int hvd__message_tell(struct hvd__set *set, const struct hvd__writer *out);
/* A member sent what cannot be. */
int hvd__message_garbled(const struct hvd__set *set, int peer);

#endif
