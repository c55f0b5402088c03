/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_messages.h - messages between ranks for fuzzing, good ones and spoilt
 * ones.
 *
 * Messages are made as ranks make them, with keys and fingerprints from a small
 * pool, so that they refer to each other. Then they are spoilt: bits flipped,
 * bytes changed, removed, doubled or inserted from another message, numbers
 * replaced by extreme ones; some become random bytes. The sequence depends on
 * the seed alone, so that a failure occurs again.
 */
#ifndef HVD_TESTS_WIRE_MESSAGES_H
#define HVD_TESTS_WIRE_MESSAGES_H

#include "core/agree/wire.h"
#include "core/request/request.h"

enum { FUZZ_RANKS = 5, FUZZ_KEYS = 5, FUZZ_MOST_BYTES = 8192 };

/* Sets the seed of all that follows; not 0. */
void fuzz_seed(uint64_t seed);

/* Returns a random number less than below. */
uint32_t fuzz_any(uint32_t below);

/* Replaces a message by one of random records of types least to most. Its
 * sender speaks for n places from first on. */
void fuzz_write_message(struct hvd__writer *out, enum hvd__record_type least,
                        enum hvd__record_type most, int first, int n);

/* Writes a spoilt copy of a message to data, which has FUZZ_MOST_BYTES. other
 * is a message whose bytes may be inserted. Returns the size of the copy. */
size_t fuzz_spoil(const struct hvd__writer *message,
                  const struct hvd__writer *other, unsigned char *data);

#endif
