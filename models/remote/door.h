/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door.h - where a server listens, and how it lets clients in: those who prove
 * that they have the key of the party (handshake.h of libhvd).
 *
 * Anybody can connect. A stranger can send two records of fixed size, must do
 * so within five seconds, and is otherwise sent away and counted; a few may be
 * at the door at once, and the one that has stood there longest makes way.
 *
 * Functions that return int return 0, or PROBLEM with the text kept.
 */
#ifndef MODELS_REMOTE_DOOR_H
#define MODELS_REMOTE_DOOR_H

#include "remote/party.h"

#include <poll.h>

enum { DOOR_MOST = 64 };

struct remote_door;

/* Listens at this process's address, and nowhere else. Waits for ten seconds at
 * most for what its name means. */
int door_open(const struct remote_party *party, struct remote_door **door);
void door_close(struct remote_door *door); /* NULL is accepted */

/* Fills in what to wait for; fds has room for DOOR_MOST + 1. Returns how many.
 */
int door_wait(const struct remote_door *door, struct pollfd *fds);

/*
 * Does what the poll has found. Returns the descriptor of a client that has
 * been let in, which is the caller's, with its address in from, of
 * DOOR_ADDRESS bytes; -1: there is none, now.
 */
enum { DOOR_ADDRESS = 80 };
int door_tend(struct remote_door *door, char from[DOOR_ADDRESS]);

/*
 * Reserves a port where the door is, this one or, if it is 0, any. Nobody
 * listens there yet: a worker can, as long as the descriptor *fd is open.
 */
int door_reserve_port(const struct remote_door *door, int port, int *fd,
                      uint32_t *reserved);

#endif
