/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ucx.h - the state of the transport over UCX. ucx.c moves it; open.c, with the
 * help of configure.c and devices.c, makes and ends it. transport.h is the
 * door.
 */
#ifndef HVD_TRANSPORT_UCX_UCX_H
#define HVD_TRANSPORT_UCX_UCX_H

#include "transport/fault.h"
#include "transport/transport.h"
#include "transport/ucx/library.h"

struct hvd__ucx;

struct hvd__ucx_peer {
    ucp_ep_h endpoint;    /* NULL: never sent to */
    struct hvd__ucx *ucx; /* for UCX's handler of errors */
};

/* A request under way; UCX keeps this memory for each of its requests. */
struct hvd__ucx_request {
    struct hvd__ucx_request *next, **link;
    void *message; /* owned: what a message consists of; NULL: a transfer */
};

/* The message that is being received. */
struct hvd__ucx_incoming {
    void *message; /* owned; NULL: none */
    void *request; /* NULL: all of it is there */
    size_t bytes;
    int peer;
};

struct hvd__ucx {
    struct hvd__transport base;
    struct hvd__transport *below; /* owned; ranks meet on it */
    const struct hvd__ucx_library *library;
    ucp_context_h context;
    ucp_worker_h worker;
    unsigned char *addresses;           /* owned, [size][address_bytes] */
    size_t address_bytes;               /* of the longest */
    struct hvd__ucx_peer *peers;        /* owned, [size] */
    struct hvd__ucx_request *transfers; /* under way */
    struct hvd__ucx_request *messages;  /* being sent */
    struct hvd__ucx_incoming incoming;
    struct hvd__fault fault;
};

/* Lists the network devices that lead to other hosts, as UCX_NET_DEVICES does.
 * Returns false if UCX finds them by itself. */
bool hvd__ucx_devices(char *text, size_t size);

int hvd__ucx_configure(const struct hvd__ucx *ucx, ucp_config_t *config);

/* Sets the last error: what a call of UCX returned. */
int hvd__ucx_fail(const struct hvd__ucx *ucx, const char *call,
                  ucs_status_t status);

/* Makes the transport's table of functions. below is owned from now on. */
void hvd__ucx_fill(struct hvd__ucx *ucx, struct hvd__transport *below);

#endif
