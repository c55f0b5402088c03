/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mac.h - the message authentication code of a datagram: a number that only an
 * owner of the key can compute. It distinguishes the datagrams of this world
 * from foreign and from damaged ones.
 */
#ifndef HVD_WATCH_MAC_H
#define HVD_WATCH_MAC_H

#include <stddef.h>
#include <stdint.h>

/* Computes SipHash-2-4 (Aumasson and Bernstein, SipHash: a fast short-input
 * PRF, 2012). */
uint64_t hvd__mac(const uint64_t key[2], const void *data, size_t bytes);

#endif
