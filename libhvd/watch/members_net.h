/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members_net.h - the members of a job on several hosts write to each other:
 * the protocol of survivors.h over UDP. members.c calls these functions, with a
 * lock; no call blocks.
 */
#ifndef HVD_WATCH_MEMBERS_NET_H
#define HVD_WATCH_MEMBERS_NET_H

#include "watch/heartbeat.h"
#include "watch/letter.h"

struct hvd__members_net;

/* Opens a socket at an address (as of hvd__socket_open) and fills the card of
 * this member. Returns HVD_ERR_UNSUPPORTED or HVD_ERR_MEMORY. */
int hvd__members_net_open(struct hvd__members_net **net, struct hvd__ip own,
                          int n, int self,
                          const struct hvd__survivors_times *times,
                          struct hvd__heartbeat_card *card);
/* Stores the card of a member. The key of member 0's counts. */
void hvd__members_net_introduce(struct hvd__members_net *net, int member,
                                const struct hvd__heartbeat_card *card);
/* All have been introduced. */
void hvd__members_net_start(struct hvd__members_net *net);
/* Accepts NULL. */
void hvd__members_net_close(struct hvd__members_net *net);

/* Returns the protocol's state. */
struct hvd__survivors *hvd__members_net_state(struct hvd__members_net *net);
int hvd__members_net_fd(const struct hvd__members_net *net);

/* Takes what has come, and lets time pass: what passed since the last call, but
 * not time in which this process was stopped. */
void hvd__members_net_receive(struct hvd__members_net *net);
/* Sends what is to be sent. */
void hvd__members_net_send(struct hvd__members_net *net);

#endif
