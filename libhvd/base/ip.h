/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ip.h - an IP address of either version, as one value that can be compared and
 * sent. It is that of IPv6 in network order; one of IPv4 is mapped
 * (::ffff:a.b.c.d). All zeros, "any", stand for none or for all.
 */
#ifndef HVD_BASE_IP_H
#define HVD_BASE_IP_H

#include <stdbool.h>
#include <stdint.h>

struct hvd__ip {
    uint64_t words[2];
};

static inline bool hvd__ip_is_any(struct hvd__ip ip)
{
    return ip.words[0] == 0 && ip.words[1] == 0;
}

static inline bool hvd__ip_equal(struct hvd__ip a, struct hvd__ip b)
{
    return a.words[0] == b.words[0] && a.words[1] == b.words[1];
}

#endif
