/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/message.h"

#include "base/status.h"
#include "core/table/set.h"
#include "trace/metrics.h"

/* The id of the set, with which every message begins. */
void hvd__message_begin(const struct hvd__set *set, struct hvd__writer *out)
{
    if (out->bytes == 0)
        hvd__write_int(out, set->id);
}

int hvd__message_garbled(int rank)
{
    return hvd__fail(HVD_ERR_INTERNAL,
                     "rank %d sent a message that makes no sense", rank);
}

int hvd__message_post(struct hvd__set *set, int peer, struct hvd__writer *out)
{
    struct hvd__transport *t = set->team.transport;
    struct hvd__writer message = *out;

    *out = (struct hvd__writer){0};
    if (message.failed) {
        hvd__writer_fini(&message);
        return hvd__fail(HVD_ERR_MEMORY, "out of memory for the negotiation");
    }
    if (message.bytes == 0) {
        hvd__writer_fini(&message);
        return HVD_OK;
    }
    hvd__count_alone(&set->metrics->messages, 1);
    hvd__count_alone(&set->metrics->message_bytes, (int64_t)message.bytes);
    return t->post(t, set->team.world[peer], message.data, message.bytes);
}
