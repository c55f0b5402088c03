/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speaker.h - ordered mode between hosts. On each host the first member of the
 * set, the speaker, compares the slots of the members of its host and offers
 * the other hosts, in rounds (round.h), what they agree on. It publishes the
 * result of each round in its area, and all members of the host act on it.
 *
 * A round opens an epoch, or agrees on slots: the longest common prefix of what
 * the hosts offer. The data of small tensors travels with the slots; when a
 * round is over, the speaker's slots have the results. A round starts when a
 * host has something to offer and ends when all have joined it, so a small
 * request costs as many messages as an allreduce of a few bytes.
 *
 * Requests that wait for a lane wait here, before they are agreed on: requests
 * that come meanwhile join the same round, and can be fused with them.
 */
#ifndef HVD_CORE_SPEAKER_H
#define HVD_CORE_SPEAKER_H

#include "core/agree/offer.h"

struct hvd__engine;
struct hvd__set;

/* Speaker only. Opens the epoch, refused or impossible if a rank of this host
 * says so: as soon as this rank wants it or a rank of this host has refused it,
 * for such a rank may have requests that are agreed on by name. possible is
 * false if the ranks of this host cannot see each other's areas. */
int hvd__speaker_open(const struct hvd__engine *engine, struct hvd__set *set,
                      bool wanted, bool possible, bool *moved);
/* Speaker only. Starts a round if this host has something to offer, and moves
 * the round that is under way. */
int hvd__speaker_step(struct hvd__set *set, bool *moved);

#endif
