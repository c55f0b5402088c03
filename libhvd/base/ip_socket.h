/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ip_socket.h - turns addresses (ip.h) into those of sockets, and back.
 */
#ifndef HVD_BASE_IP_SOCKET_H
#define HVD_BASE_IP_SOCKET_H

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ip.h"

static inline struct in6_addr hvd__ip_in6(struct hvd__ip ip)
{
    struct in6_addr in6;

    memcpy(&in6, ip.words, sizeof in6);
    return in6;
}

static inline bool hvd__ip_is_v4(struct hvd__ip ip)
{
    const struct in6_addr in6 = hvd__ip_in6(ip);

    return IN6_IS_ADDR_V4MAPPED(&in6);
}

/* Makes one of an IPv4 address in network order. */
static inline struct hvd__ip hvd__ip_of_v4(uint32_t address)
{
    const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct hvd__ip ip;

    memcpy(ip.words, mapped, sizeof mapped);
    memcpy((unsigned char *)ip.words + sizeof mapped, &address, sizeof address);
    return ip;
}

/* Returns the address of a socket; "any" if it is not of IP. */
static inline struct hvd__ip hvd__ip_of(const struct sockaddr *address)
{
    struct hvd__ip ip = {{0, 0}};

    if (address->sa_family == AF_INET)
        ip = hvd__ip_of_v4(((const struct sockaddr_in *)(const void *)address)
                               ->sin_addr.s_addr);
    else if (address->sa_family == AF_INET6)
        memcpy(ip.words,
               &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
               sizeof ip.words);
    return ip;
}

/* Writes the address of a socket, with a port in network order. Returns its
 * length. One of IPv4 is written as that. */
static inline socklen_t hvd__ip_socket(struct hvd__ip ip, in_port_t port,
                                       struct sockaddr_storage *address)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = port,
                              .sin6_addr = hvd__ip_in6(ip)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port};

    memset(address, 0, sizeof *address);
    if (!hvd__ip_is_v4(ip)) {
        memcpy(address, &v6, sizeof v6);
        return sizeof v6;
    }
    memcpy(&v4.sin_addr, (const unsigned char *)ip.words + 12, 4);
    memcpy(address, &v4, sizeof v4);
    return sizeof v4;
}

/* Returns the port of a socket's address, in network order; 0: it has none. */
static inline in_port_t hvd__ip_port(const struct sockaddr_storage *address)
{
    const void *any = address;

    if (address->ss_family == AF_INET)
        return ((const struct sockaddr_in *)any)->sin_port;
    return address->ss_family == AF_INET6
               ? ((const struct sockaddr_in6 *)any)->sin6_port
               : 0;
}

#endif
