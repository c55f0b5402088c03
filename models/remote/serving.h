/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serving.h - the service of one client: a training on this server, from the
 * client's description to the end of the worker. It is tended in a loop:
 * whenever serving_wait's descriptors are ready, and now and then.
 */
#ifndef MODELS_REMOTE_SERVING_H
#define MODELS_REMOTE_SERVING_H

#include "remote/door.h"

#include <poll.h>

struct serving;

enum { SERVING_MOST_WAITS = 3 };

/* Begins with a client that has been let in, whose descriptor is taken over.
 * NULL: no memory. party and door are borrowed until serving_free; from is
 * copied. */
struct serving *serving_new(const struct remote_party *party,
                            const struct remote_door *door, int port, int fd,
                            const char *from);

/* Ends the worker at once. NULL is accepted. */
void serving_free(struct serving *serving);

/* Fills in what to wait for; fds has room for SERVING_MOST_WAITS. Returns how
 * many. */
int serving_wait(const struct serving *serving, struct pollfd *fds);

/* Does what can be done now, without waiting. Returns whether it is over.
 */
bool serving_tend(struct serving *serving);

/* Has the training end, without its client. */
void serving_abandon(struct serving *serving, const char *why);

/* Returns whether there is still a client to serve; without one, it only waits
 * for the worker to end, or for the client to read the last words. */
bool serving_has_client(const struct serving *serving);

/* Writes for whom it trains, and since when: "127.0.0.1:4711 since 12 s". */
void serving_describe(const struct serving *serving, char *text, size_t size);

#endif
