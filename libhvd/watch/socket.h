/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socket.h - a UDP socket on which no call blocks. Ports are in network order.
 */
#ifndef HVD_WATCH_SOCKET_H
#define HVD_WATCH_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ip.h"

/* Returns a descriptor, bound to a port that the kernel chooses, at the address
 * own or, if that is "any", on all interfaces, for IPv4 or, on a host that has
 * none, for IPv6; and writes the addresses of this host at which it can be
 * reached, at most max. Returns HVD_ERR_UNSUPPORTED on failure. */
int hvd__socket_open(struct hvd__ip own, struct hvd__ip *addresses, int32_t max,
                     int32_t *naddresses, int32_t *port);

/* Lets in only datagrams that begin with these two words, the lowest byte
 * first, if the kernel has filters. */
void hvd__socket_filter(int fd, uint32_t first, uint32_t second);

/* Sends a datagram. If it cannot be sent now, it is lost like any other, and so
 * is one to an address of the other version of IP. */
void hvd__socket_send(int fd, struct hvd__ip address, int port,
                      const void *data, size_t bytes);

/* Returns the length of the next datagram, which may be more than size; -1:
 * there is none. */
int hvd__socket_receive(int fd, void *data, size_t size,
                        struct hvd__ip *address);

/* Returns whether a datagram was refused since: nobody listens at *address,
 * *port. */
bool hvd__socket_next_refusal(int fd, struct hvd__ip *address, int *port);

#endif
