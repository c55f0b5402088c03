/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socket.h - a UDP socket; no call on it blocks. Addresses (IPv4) and ports are
 * in the order of the network.
 */
#ifndef HVD_WATCH_SOCKET_H
#define HVD_WATCH_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A descriptor, bound to a port that the kernel has chosen, on all interfaces;
 * and the addresses of this host, at most max. HVD_ERR_UNSUPPORTED. */
int hvd__socket_open(uint32_t *addresses, int32_t max, int32_t *naddresses,
                     int32_t *port);

/* Only what begins with these two words, the lowest byte first, is let in
 * from now on, if the kernel can tell. */
void hvd__socket_filter(int fd, uint32_t first, uint32_t second);

/* What cannot be sent now is as good as lost on the way. */
void hvd__socket_send(int fd, uint32_t address, int port, const void *data,
                      size_t bytes);

/* How long the next datagram is, which may be more than fitted; -1: there is
 * none. */
int hvd__socket_receive(int fd, void *data, size_t size, uint32_t *address);

/* Whether something that was sent was refused: nobody listens there. */
bool hvd__socket_next_refusal(int fd, uint32_t *address, int *port);

#endif
