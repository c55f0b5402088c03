/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agreement.h - the state in which a member of a process set agrees with the
 * others. It is private to this room and belongs to the driver.
 */
#ifndef HVD_CORE_AGREEMENT_H
#define HVD_CORE_AGREEMENT_H

#include "core/agree/coordinator.h"
#include "core/agree/ordered.h"
#include "core/agree/relay.h"
#include "core/agree/tune.h"
#include "core/run/engine.h"
#include "core/run/execute.h"
#include "core/table/set.h"

struct hvd__agreement {
    struct hvd__ordered ordered;
    struct hvd__relay relay;
    struct hvd__coordinator *coordinator; /* owned; only on the first member */
    struct hvd__proposals *heard; /* borrowed: of the members that this rank
                                     speaks for, its own number among them */
    struct hvd__tune
        tune;           /* coordinator only: now holds for the next batches */
    int *scratch;       /* owned, [team.size] */
    bool heard_leaving; /* the driver has seen set->leaving */
    bool said_leave;
    bool heard_close; /* all members have left */
};

/* The steps of agreement by name. hear.c takes in what this rank and others
 * say, and follow.c sends and carries out the coordinator's decisions. */

/* Driver only. Agrees on a submission by name from now on. Frees it if it was
 * refused. */
int hvd__announce(struct hvd__set *set, struct hvd__submission *submission);
/* Announces once that this rank leaves the set. */
int hvd__announce_leave(struct hvd__set *set);

/* Handles a message of a child, from behind the set's id. The read fails if the
 * message makes no sense; likewise below. */
int hvd__hear(struct hvd__set *set, struct hvd__relay_child *child,
              struct hvd__reader *in);
/* Reads the rest of a record that says that this world is broken, and returns
 * its error. */
int hvd__hear_break(struct hvd__engine *engine, struct hvd__reader *in);

/* Coordinator only, in each step: continue autotuning if it is active; send
 * decisions to the members, and follow them on this rank. */
void hvd__tuning_step(struct hvd__set *set);
int hvd__decide(struct hvd__set *set);
/* Sends decisions on, and follows them: a message from behind the set's id. */
int hvd__follow(struct hvd__set *set, struct hvd__reader *in);

#endif
