/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and rows between a program and the host: elements taken before the
 * first step, elements given after the last. */
#include "engine/streams.h"

#include "base/error.h"
#include "streams/streams.h"

int ipu__streams_attach(const struct ipu_executable *x, int32_t replicas)
{
    for (int32_t i = 0; i < x->nfeeds; i++) {
        const struct ipu__feed_code *f = &x->feeds[i];
        int status = f->infeed ? ipu__infeed_attach(f->infeed, replicas)
                               : ipu__outfeed_attach(f->outfeed, replicas);

        if (status < 0) {
            ipu__streams_detach(x, i);
            return status;
        }
    }
    return x->nfeeds;
}

void ipu__streams_detach(const struct ipu_executable *x, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (x->feeds[i].infeed)
            ipu__infeed_detach(x->feeds[i].infeed);
        else
            ipu__outfeed_detach(x->feeds[i].outfeed);
}

void ipu__streams_begin(const struct ipu_executable *x)
{
    for (int32_t i = 0; i < x->nfeeds; i++)
        if (x->feeds[i].outfeed)
            ipu__outfeed_begin(x->feeds[i].outfeed);
}

void ipu__streams_end(const struct ipu_executable *x, int status)
{
    for (int32_t i = 0; i < x->nfeeds; i++)
        if (x->feeds[i].outfeed)
            ipu__outfeed_end(x->feeds[i].outfeed, status);
}

/* Finds the addresses of the element's tensors; NULL: nobody wants the
 * tensor. */
static void find_buffers(const struct ipu__memory *memory,
                         const struct ipu__feed_code *f, void **buffers)
{
    for (int32_t k = 0; k < f->count; k++)
        buffers[k] =
            f->values[k] < 0 ? NULL : ipu__memory_of(memory, f->values[k]);
}

int ipu__streams_take(const struct ipu__memory *memory, int32_t replica,
                      int *callback_status)
{
    const struct ipu_executable *x = memory->executable;
    void *buffers[IPU_MAX_FEED_TENSORS];

    for (int32_t i = 0; i < x->nfeeds; i++) {
        if (!x->feeds[i].infeed)
            continue;
        find_buffers(memory, &x->feeds[i], buffers);
        IPU_TRY(ipu__infeed_take(x->feeds[i].infeed, replica, buffers,
                                 callback_status));
    }
    return IPU_OK;
}

int ipu__streams_give(const struct ipu__memory *memory, int32_t replica)
{
    const struct ipu_executable *x = memory->executable;
    void *buffers[IPU_MAX_FEED_TENSORS];

    for (int32_t i = 0; i < x->nfeeds; i++) {
        if (!x->feeds[i].outfeed)
            continue;
        find_buffers(memory, &x->feeds[i], buffers);
        IPU_TRY(ipu__outfeed_put(x->feeds[i].outfeed, replica,
                                 (const void *const *)buffers));
    }
    return IPU_OK;
}
