/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dissemination.h - meetings of all ranks of a transport that are made of its
 * own transfers, in ⌈log₂ n⌉ steps. They need nothing else of the transport, so
 * they can be given up at any moment, whoever is gone.
 */
#ifndef HVD_TRANSPORT_DISSEMINATION_H
#define HVD_TRANSPORT_DISSEMINATION_H

#include "transport/transport.h"

/* A rank that waits has one of these. Between two looks it asks whether to go
 * on, and rests. */
struct hvd__patience {
    struct hvd__asked asked;
    /* Sleeps for a moment or until something moves; looks counts from 0. */
    int (*rest)(struct hvd__transport *self, int looks);
};

/* Gathers bytes from all ranks, as transport->exchange. After a failure
 * *abandoned is memory that transfers may still use, which the caller owns. */
int hvd__dissemination_gather(struct hvd__transport *transport, int tag,
                              const struct hvd__patience *patience,
                              const void *mine, void *all, size_t bytes,
                              void **abandoned);

/* A meeting that is polled, begun with zeros. */
struct hvd__parting {
    int step;
    bool is_under_way; /* the transfers of the step have been started */
    struct hvd__transfer in, out;
    char byte;
};

/* Moves the meeting. Returns 1 when all ranks have come to it, 0 before. */
int hvd__dissemination_part(struct hvd__transport *transport, int tag,
                            struct hvd__parting *parting);

#endif
