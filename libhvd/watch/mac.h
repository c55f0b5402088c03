/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mac.h - a number that only who has the key can compute for some bytes, so
 * that what strangers send, or what was damaged on the way, is told from what
 * ranks of one's own world send.
 */
#ifndef HVD_WATCH_MAC_H
#define HVD_WATCH_MAC_H

#include <stddef.h>
#include <stdint.h>

/* SipHash-2-4 (Aumasson and Bernstein, SipHash: a fast short-input PRF,
 * 2012). */
uint64_t hvd__mac(const uint64_t key[2], const void *data, size_t bytes);

#endif
