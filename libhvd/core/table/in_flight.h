/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_flight.h - the submissions that are in flight in one process set: by key,
 * and in the order in which they were submitted.
 *
 * Every request is looked up, entered and struck once. Keys are fingerprints,
 * so their low bits say in which of many short chains a submission is.
 */
#ifndef HVD_CORE_IN_FLIGHT_H
#define HVD_CORE_IN_FLIGHT_H

#include <stdint.h>

struct hvd__submission;

/* Zeroed is none in flight. Units are borrowed. */
struct hvd__in_flight {
    struct hvd__submission *oldest; /* list by later */
    struct hvd__submission *youngest;
    struct hvd__submission **chains; /* owned, [nchains]: lists by chained */
    uint32_t nchains; /* a power of two, twice as many as submissions */
    uint32_t n;
};

void hvd__in_flight_fini(struct hvd__in_flight *flight);

/* The submission of that key; NULL: none. */
struct hvd__submission *hvd__in_flight_find(const struct hvd__in_flight *flight,
                                            uint64_t key);
/* Its key is that of no other there. HVD_ERR_MEMORY. */
int hvd__in_flight_add(struct hvd__in_flight *flight,
                       struct hvd__submission *submission);
/* It is there. */
void hvd__in_flight_remove(struct hvd__in_flight *flight,
                           struct hvd__submission *submission);

#endif
