/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "transport/transport.h"

/* In a world of one rank the coordinator has no other members and never posts,
 * so nothing moves. */

static int no_transfer(void)
{
    return hvd__fail(HVD_ERR_INTERNAL, "a transfer in a world of one rank");
}

static int self_send(struct hvd__transport *self, int peer, int tag,
                     const void *data, size_t bytes,
                     struct hvd__transfer *transfer)
{
    (void)self, (void)peer, (void)tag, (void)data, (void)bytes, (void)transfer;
    return no_transfer();
}

static int self_receive(struct hvd__transport *self, int peer, int tag,
                        void *data, size_t bytes,
                        struct hvd__transfer *transfer)
{
    (void)self, (void)peer, (void)tag, (void)data, (void)bytes, (void)transfer;
    return no_transfer();
}

static int self_test(struct hvd__transport *self,
                     struct hvd__transfer *transfer)
{
    (void)self, (void)transfer;
    return 1;
}

static int self_post(struct hvd__transport *self, int peer, void *message,
                     size_t bytes)
{
    (void)self, (void)peer, (void)bytes;
    free(message);
    return no_transfer();
}

static int self_poll(struct hvd__transport *self, int *peer, void **message,
                     size_t *bytes)
{
    (void)self, (void)peer, (void)message, (void)bytes;
    return 0;
}

static int self_pending(struct hvd__transport *self)
{
    (void)self;
    return 0;
}

static int self_exchange(struct hvd__transport *self, const void *mine,
                         void *all, size_t bytes)
{
    (void)self;
    memcpy(all, mine, bytes);
    return HVD_OK;
}

static int self_part(struct hvd__transport *self)
{
    (void)self;
    return 1;
}

static void self_close(struct hvd__transport *self)
{
    free(self);
}

int hvd__self_open(struct hvd__transport **transport)
{
    struct hvd__transport *self = calloc(1, sizeof *self);

    if (!self)
        return hvd__fail_memory(sizeof *self);
    *self = (struct hvd__transport){
        .name = "self",
        .size = 1,
        .threads = true,
        .ntags = INT_MAX,
        .send = self_send,
        .receive = self_receive,
        .test = self_test,
        .post = self_post,
        .poll = self_poll,
        .pending = self_pending,
        .exchange = self_exchange,
        .part = self_part,
        .close = self_close,
    };
    *transport = self;
    return HVD_OK;
}
