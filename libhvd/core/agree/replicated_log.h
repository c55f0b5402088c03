/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicated_log.h - a log of slots that is replicated by messages, for ranks
 * that share no memory.
 *
 * Each rank sends to all others what it writes into its own area
 * (transport/shm/shm.h): slots with their data, and what it has accepted and
 * read. The others keep a copy of that area, so whoever looks at the areas need
 * not know how they came. One message to each rank holds all that a step of the
 * engine has written. What was read travels with slots, or by itself when a
 * quarter of the room is used up.
 *
 * A rank that is done with the set says farewell to every other and waits for
 * their farewells, so that no message is left on its way.
 */
#ifndef HVD_CORE_REPLICATED_LOG_H
#define HVD_CORE_REPLICATED_LOG_H

#include "core/agree/boundary.h"
#include "core/agree/wire.h"
#include "transport/shm/shm.h"

/* The most ranks that use it: more would send too many messages. */
enum { HVD__REPLICATED_RANKS = 8 };

struct hvd__replicated_log {
    int size;
    struct hvd__area **areas; /* owned, [size]; ours among them */
    uint64_t *heard;   /* owned, [size]: sequence numbers of their last slots */
    uint64_t nsent;    /* slots of this epoch that are sent */
    uint64_t accepted; /* the others have been told that we have */
    uint64_t consumed; /* likewise */
    size_t read_bytes; /* beside slots that we have read since then */
    struct hvd__boundaries boundaries;
    int nfarewells;
    bool said_farewell;
};

/* Makes a log for a set of size ranks. NULL: out of memory. */
struct hvd__replicated_log *hvd__replicated_log_new(int size);
void hvd__replicated_log_free(struct hvd__replicated_log *log);

/* Driver's, as all that follow. An epoch begins: slots are counted from 0. */
void hvd__replicated_log_begin(struct hvd__replicated_log *log);
/* The request in a slot of all ranks is about to be run, with the data next to
 * the slots. HVD_ERR_INTERNAL: the data is not what the request says. */
int hvd__replicated_log_read(struct hvd__set *set,
                             const struct hvd__request *request, uint64_t slot);
/* Sends the others what is new. */
int hvd__replicated_log_send(struct hvd__set *set);
/* Takes a record of another rank: POST or FAREWELL. */
int hvd__replicated_log_hear(struct hvd__set *set, int peer,
                             struct hvd__reader *in);
/* Says farewell, once. hvd__replicated_log_is_left returns true if all others
 * have, too. */
int hvd__replicated_log_leave(struct hvd__set *set);
bool hvd__replicated_log_is_left(const struct hvd__replicated_log *log);

#endif
