/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicated_log.h - a log of slots that is replicated by messages, for ranks
 * that share no memory.
 *
 * Each rank sends to all others what it writes into its own area
 * (transport/shm/shm.h): slots with their data, and which epoch and slots it
 * has accepted and read. The others keep a copy of that area, so code that
 * reads the areas is the same as in shared memory. One message to each rank
 * holds everything that a step of the engine has written. The count of slots
 * read travels with slots, or alone when a quarter of the room is used up.
 *
 * A rank that is done with the set sends a FAREWELL to every other and waits
 * for theirs, so that no message is left under way.
 */
#ifndef HVD_CORE_REPLICATED_LOG_H
#define HVD_CORE_REPLICATED_LOG_H

#include "core/agree/boundary.h"
#include "core/agree/wire.h"
#include "transport/shm/shm.h"

/* The most ranks of a set that uses it: more would send too many messages. */
enum { HVD__REPLICATED_RANKS = 8 };

struct hvd__replicated_log {
    int size;
    struct hvd__area **areas; /* owned, [size]; including this rank's */
    uint64_t *heard; /* owned, [size]: sequence number of the last slot received
                        from each */
    uint64_t nsent;  /* slots of this epoch already sent */
    uint64_t accepted; /* last value of accepted that was sent */
    uint64_t consumed; /* last value of consumed that was sent */
    size_t read_bytes; /* bytes of data next to slots, read since then */
    struct hvd__boundaries boundaries;
    int nfarewells;
    bool said_farewell;
};

/* Makes a log for a set of size ranks. Returns NULL if memory runs out. */
struct hvd__replicated_log *hvd__replicated_log_new(int size);
void hvd__replicated_log_free(struct hvd__replicated_log *log);

/* Only the driver calls the next functions. Begins an epoch: slots are counted
 * from 0. */
void hvd__replicated_log_begin(struct hvd__replicated_log *log);
/* Prepares for running the request in a slot of all ranks on the data next to
 * the slots. Fails with HVD_ERR_INTERNAL if the data does not match the
 * request. */
int hvd__replicated_log_read(struct hvd__set *set,
                             const struct hvd__request *request, uint64_t slot);
/* Sends everything new to the other ranks. */
int hvd__replicated_log_send(struct hvd__set *set);
/* Handles a POST or FAREWELL record of another rank. */
int hvd__replicated_log_hear(struct hvd__set *set, int peer,
                             struct hvd__reader *in);
/* Sends the farewell once. hvd__replicated_log_is_left returns true if all
 * other ranks have sent theirs too. */
int hvd__replicated_log_leave(struct hvd__set *set);
bool hvd__replicated_log_is_left(const struct hvd__replicated_log *log);

#endif
