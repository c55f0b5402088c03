/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/dissemination.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static int finish(struct hvd__transport *t,
                  const struct hvd__patience *patience,
                  struct hvd__transfer *transfer)
{
    int done = 0;

    for (int looks = 0; (done = t->test(t, transfer)) == 0; looks++) {
        HVD_TRY(patience->asked.ask(patience->asked.context));
        HVD_TRY(patience->rest(t, looks));
    }
    return done;
}

/*
 * The ranks gather in ⌈log₂ n⌉ steps (Bruck and others, 1997): in step k a rank
 * has the blocks of 2^k ranks, its own first, and sends as many of them as are
 * wanted to the rank that is 2^k before it.
 */
int hvd__dissemination_gather(struct hvd__transport *t, int tag,
                              const struct hvd__patience *patience,
                              const void *mine, void *all, size_t bytes,
                              void **abandoned)
{
    const int rank = t->rank, size = t->size;
    char *blocks = malloc((size_t)size * bytes);
    int status = HVD_OK;

    if (!blocks)
        return hvd__fail_memory((size_t)size * bytes);
    memcpy(blocks, mine, bytes);
    for (int have = 1; have < size && status >= 0; have *= 2) {
        size_t part = (size_t)(size - have < have ? size - have : have) * bytes;
        struct hvd__transfer out = {NULL}, in = {NULL};

        status =
            t->send(t, (rank - have + size) % size, tag, blocks, part, &out);
        if (status >= 0)
            status = t->receive(t, (rank + have) % size, tag,
                                blocks + (size_t)have * bytes, part, &in);
        if (status >= 0)
            status = finish(t, patience, &in);
        if (status >= 0)
            status = finish(t, patience, &out);
    }
    for (int i = 0; i < size && status >= 0; i++)
        memcpy((char *)all + (size_t)((rank + i) % size) * bytes,
               blocks + (size_t)i * bytes, bytes);
    if (status < 0) {
        *abandoned = blocks;
        return status;
    }
    free(blocks);
    return HVD_OK;
}

/* A dissemination barrier: in step k a rank hears from the one 2^k before it.
 */
int hvd__dissemination_part(struct hvd__transport *t, int tag,
                            struct hvd__parting *parting)
{
    static const char notice = 1;
    const int rank = t->rank, size = t->size;

    while (1 << parting->step < size) {
        const int distance = 1 << parting->step;

        if (!parting->is_under_way) {
            HVD_TRY(t->send(t, (rank + distance) % size, tag, &notice, 1,
                            &parting->out));
            HVD_TRY(t->receive(t, (rank - distance + size) % size, tag,
                               &parting->byte, 1, &parting->in));
            parting->is_under_way = true;
        }
        for (int i = 0; i < 2; i++) {
            int done = t->test(t, i ? &parting->out : &parting->in);

            if (done <= 0)
                return done;
        }
        parting->is_under_way = false;
        parting->step++;
    }
    return 1;
}
