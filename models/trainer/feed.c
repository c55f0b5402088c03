/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/feed.h"

#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

size_t feed_tensor_bytes(const struct feed *feed, int tensor)
{
    const ipu_feed_tensor *t = &feed->tensors[tensor];
    size_t bytes = sizeof(float);

    for (int32_t i = 0; i < t->ndim; i++)
        bytes *= (size_t)t->shape[i];
    return bytes;
}

int feed_fill(const struct feed *feed, void *const *buffers)
{
    void *at[FEED_MOST_TENSORS];
    int status;

    memcpy(at, buffers, (size_t)feed->ntensors * sizeof *at);
    status = feed->next(feed->context, at);
    for (int i = 0; i < feed->ntensors && status >= 0; i++)
        if (at[i] != buffers[i])
            memcpy(buffers[i], at[i], feed_tensor_bytes(feed, i));
    return status;
}

int feed_allocate(const struct feed *feed, int count, void **buffers)
{
    for (int i = 0; i < feed->ntensors; i++) {
        buffers[i] = model_memory((size_t)count * feed_tensor_bytes(feed, i));
        if (!buffers[i])
            return problem_set("no memory for a batch");
    }
    return 0;
}

void feed_free_buffers(void **buffers)
{
    for (int i = 0; i < FEED_MOST_TENSORS; i++) {
        free(buffers[i]);
        buffers[i] = NULL;
    }
}

static int next_of_model(void *context, void **buffers)
{
    struct model_feed *source = context;
    int status = source->fill(source->context, source->next, buffers);

    if (source->numbered)
        *(int32_t *)buffers[source->ninputs] = (int32_t)source->next;
    source->next++;
    return status < 0 ? status : 1;
}

struct feed model_feed_of(const struct model *m, struct model_feed *source)
{
    struct feed feed = {
        .ntensors = m->ninputs + source->numbered,
        .next = next_of_model,
        .context = source,
    };

    source->ninputs = m->ninputs;
    for (int i = 0; i < m->ninputs; i++) {
        const struct model_tensor *t = &m->inputs[i];

        feed.tensors[i] = (ipu_feed_tensor){
            .name = t->name, .dtype = t->dtype, .ndim = t->ndim};
        memcpy(feed.tensors[i].shape, t->shape, sizeof t->shape);
    }
    if (source->numbered)
        feed.tensors[m->ninputs] =
            (ipu_feed_tensor){"number", IPU_INT32, 0, {0}};
    return feed;
}
