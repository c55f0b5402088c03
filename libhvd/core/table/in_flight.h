/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_flight.h - the in-flight table of a process set. It holds the submissions
 * that are not complete, by key and in the order of submission.
 *
 * Every request is looked up, entered and removed once. Keys are fingerprints,
 * so their low bits choose one of many short chains.
 */
#ifndef HVD_CORE_IN_FLIGHT_H
#define HVD_CORE_IN_FLIGHT_H

#include <stdint.h>

struct hvd__submission;

/* A zeroed table is empty. Submissions are borrowed. */
struct hvd__in_flight_table {
    struct hvd__submission *oldest; /* list linked by later */
    struct hvd__submission *youngest;
    struct hvd__submission *
        *chains;      /* owned, [nchains]: lists linked by chained */
    uint32_t nchains; /* a power of two, at least 2 * n */
    uint32_t n;
};

void hvd__in_flight_fini(struct hvd__in_flight_table *flight);

/* Returns the submission of a key, or NULL if there is none. */
struct hvd__submission *hvd__in_flight_find(
    const struct hvd__in_flight_table *flight, uint64_t key);
/* Makes room for one more submission. Fails with HVD_ERR_MEMORY. */
int hvd__in_flight_reserve(struct hvd__in_flight_table *flight);
/* Adds a submission for which there is room. Its key must not be in the table.
 */
void hvd__in_flight_add(struct hvd__in_flight_table *flight,
                        struct hvd__submission *submission);
/* Removes a submission that is in the table. */
void hvd__in_flight_remove(struct hvd__in_flight_table *flight,
                           struct hvd__submission *submission);

#endif
