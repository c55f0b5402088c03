/* SPDX-License-Identifier: Apache-2.0 */
/*
 * by_name.h - the steps of agreement by name, private to this room: announce.c
 * sends what this rank submits, hear.c takes what members say to the
 * coordinator, decide.c sends what it decides, follow.c carries it out.
 */
#ifndef HVD_CORE_BY_NAME_H
#define HVD_CORE_BY_NAME_H

#include "core/agree/agreement.h"
#include "core/agree/message.h"
#include "core/run/engine.h"

/* Driver's. Agrees on a submission by name from now on. Frees it if it was
 * refused. */
int hvd__announce(struct hvd__set *set, struct hvd__submission *submission);
/* Says once that this rank leaves the set. */
int hvd__announce_leave(struct hvd__set *set);

/* The coordinator's. Takes the next record of a message. */
int hvd__hear_record(struct hvd__set *set, int peer, struct hvd__reader *in);

/* The coordinator's, in each step. Goes on with autotuning, if it is active.
 * file: where the result is kept, or "". */
void hvd__tuning_step(struct hvd__set *set, const char *file);

/* The coordinator's, in each step. Sends questions and decisions to the
 * members, and follows them on this rank. */
int hvd__decide(struct hvd__engine *engine, struct hvd__set *set);

/* Follows a whole message of decisions. */
int hvd__follow(struct hvd__engine *engine, struct hvd__set *set,
                const void *data, size_t bytes);

#endif
