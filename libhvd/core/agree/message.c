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

int hvd__message_garbled(const struct hvd__set *set, int peer)
{
    return hvd__fail(HVD_ERR_INTERNAL,
                     "rank %d sent a message that makes no sense",
                     set->team.world[peer]);
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

/* Each member gets its own copy. */
int hvd__message_tell(struct hvd__set *set, const struct hvd__writer *out)
{
    for (int i = 1; i < set->team.size; i++) {
        struct hvd__writer copy = {.failed = out->failed};

        hvd__write_bytes(&copy, out->data, out->bytes);
        HVD_TRY(hvd__message_post(set, (set->team.rank + i) % set->team.size,
                                  &copy));
    }
    return HVD_OK;
}
