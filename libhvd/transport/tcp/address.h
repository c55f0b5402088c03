/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.h - addresses as people write them, host:port or [IPv6]:port, and
 * what the system makes of them.
 */
#ifndef HVD_TRANSPORT_TCP_ADDRESS_H
#define HVD_TRANSPORT_TCP_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Looks up an address, which may take as long as a name server does (lookup.h),
 * or only takes numbers and asks nobody. The caller frees *found with
 * freeaddrinfo. Returns NULL, or a static text that says why there is none. */
const char *hvd__address_find(const char *address, bool only_numbers,
                              struct addrinfo **found);

/* Returns whether an address leads to this host and never leaves it. */
bool hvd__address_is_loopback(const struct sockaddr *address);

/* Writes "127.0.0.1:4711" for people. */
void hvd__address_print(const struct sockaddr *address, char *text,
                        size_t size);

#endif
