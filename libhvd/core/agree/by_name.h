/* SPDX-License-Identifier: Apache-2.0 */
/*
 * by_name.h - the steps of agreement by name, private to this room: announce.c
 * sends this rank's submissions, hear.c passes members' messages to the
 * coordinator, decide.c sends its decisions, and follow.c carries them out.
 */
#ifndef HVD_CORE_BY_NAME_H
#define HVD_CORE_BY_NAME_H

#include "core/agree/agreement.h"
#include "core/agree/message.h"
#include "core/run/engine.h"

/* Driver only. Agrees on a submission by name from now on. Frees it if it was
 * refused. */
int hvd__announce(struct hvd__set *set, struct hvd__submission *submission);
/* Announces once that this rank leaves the set. */
int hvd__announce_leave(struct hvd__set *set);

/* Coordinator only. Handles the next record of a message. */
int hvd__hear_record(struct hvd__set *set, int peer, struct hvd__reader *in);

/* Coordinator only, in each step. Continues autotuning if it is active. file is
 * the path for the result, or "". */
void hvd__tuning_step(struct hvd__set *set, const char *file);

/* Coordinator only, in each step. Sends questions and decisions to the members,
 * and follows them on this rank. */
int hvd__decide(struct hvd__engine *engine, struct hvd__set *set);

/* Follows a whole message of decisions. */
int hvd__follow(struct hvd__engine *engine, struct hvd__set *set,
                const void *data, size_t bytes);

#endif
