/* SPDX-License-Identifier: Apache-2.0 */
/* hear.c - passes what members say to the coordinator. */
#include <stdlib.h>

#include "base/status.h"
#include "core/agree/by_name.h"

static int hear_announce(struct hvd__set *set, int peer, struct hvd__reader *in)
{
    struct hvd__announcement a = {0};
    int64_t *numbers = NULL;
    int status;

    a.key = hvd__read_key(in);
    a.fingerprint = hvd__read_key(in);
    a.priority = hvd__read_int(in);
    a.nnumbers = hvd__read_count(in, sizeof *numbers);
    if (a.nnumbers > 0) {
        numbers = malloc((size_t)a.nnumbers * sizeof *numbers);
        if (!numbers)
            return hvd__fail_memory((size_t)a.nnumbers * sizeof *numbers);
    }
    for (int i = 0; i < a.nnumbers; i++) {
        numbers[i] = hvd__read_long(in);
        in->failed |= numbers[i] < 0;
    }
    a.numbers = numbers;
    status = in->failed ? hvd__message_garbled(set, peer)
                        : hvd__coordinator_announce(set->agreement->coordinator,
                                                    peer, &a);
    free(numbers);
    return status;
}

static int hear_detail(struct hvd__set *set, int peer, struct hvd__reader *in)
{
    uint64_t key = hvd__read_key(in);
    int n = hvd__read_count(in, 1), status;
    struct hvd__signature *signatures =
        malloc(((size_t)n + 1) * sizeof *signatures);

    if (!signatures)
        return hvd__fail_memory(((size_t)n + 1) * sizeof *signatures);
    for (int i = 0; i < n; i++)
        hvd__read_signature(in, &signatures[i]);
    status = in->failed ? hvd__message_garbled(set, peer)
                        : hvd__coordinator_detail(set->agreement->coordinator,
                                                  peer, key, signatures, n);
    free(signatures);
    return status;
}

static int hear_join(struct hvd__set *set, int peer, struct hvd__reader *in)
{
    int32_t restores = hvd__read_int(in);

    if (in->failed || restores < 0 || restores > 1)
        return hvd__message_garbled(set, peer);
    return hvd__coordinator_join(set->agreement->coordinator, peer,
                                 restores == 1);
}

int hvd__hear_record(struct hvd__set *set, int peer, struct hvd__reader *in)
{
    struct hvd__coordinator *c = set->agreement->coordinator;
    enum hvd__record_type type = hvd__read_type(in);
    char text[HVD__MESSAGE_MAX];
    uint64_t key = 0;
    int32_t status;

    if (set->agreement->ordered.nheard && type <= HVD__LEAVE &&
        type != HVD__DETAIL)
        set->agreement->ordered.nheard[peer]++;
    switch (type) {
    case HVD__ANNOUNCE: return hear_announce(set, peer, in);
    case HVD__DETAIL: return hear_detail(set, peer, in);
    case HVD__JOIN: return hear_join(set, peer, in);
    case HVD__LEAVE: return hvd__coordinator_leave(c, peer);
    case HVD__REFUSE: key = hvd__read_key(in); /* fall through */
    case HVD__BREAK:
        status = hvd__read_int(in);
        hvd__read_text(in, text, sizeof text);
        if (in->failed || status >= 0)
            return hvd__message_garbled(set, peer);
        if (type == HVD__REFUSE)
            return hvd__coordinator_refuse(c, peer, key, status, text);
        hvd__coordinator_break(c, peer, status, text);
        return HVD_OK;
    default: return hvd__message_garbled(set, peer);
    }
}
