/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.h - looks up what an address means without waiting for it, or for a
 * stated time: a server of names that does not answer holds getaddrinfo up for
 * half a minute or more.
 */
#ifndef HVD_TRANSPORT_TCP_LOOKUP_H
#define HVD_TRANSPORT_TCP_LOOKUP_H

#include <netdb.h>
#include <stdint.h>

/* A name that is not found in this time counts as unknown for now. */
#define HVD__LOOKUP_LIMIT_NS INT64_C(10000000000)

struct hvd__lookup;

/* Begins to look up "host:port", which is copied. A numeric address, or one of
 * HVD_HOSTS_FILE, takes no thread. Returns NULL with the last error set if
 * there is no memory or no thread. */
struct hvd__lookup *hvd__lookup_start(const char *address);

/* Returns 1 when it is done, or has taken too long: then *found is the
 * caller's, for freeaddrinfo, or NULL with *problem saying why, a static text.
 * Returns 0 before. */
int hvd__lookup_poll(struct hvd__lookup *lookup, struct addrinfo **found,
                     const char **problem);

/* Looks up an address and waits for that, for HVD__LOOKUP_LIMIT_NS at most. The
 * caller frees *found with freeaddrinfo. Returns NULL, or a static text that
 * says why there is none. */
const char *hvd__lookup_wait(const char *address, struct addrinfo **found);

/* Lets go of it: what is still under way ends by itself. Accepts NULL. */
void hvd__lookup_free(struct hvd__lookup *lookup);

#endif
