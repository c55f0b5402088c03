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

static int next_of_model(void *context, void *const *buffers)
{
    struct model_feed *source = context;
    int status =
        source->fill(source->context, source->next, buffers[0], buffers[1]);

    if (source->numbered)
        *(int32_t *)buffers[2] = (int32_t)source->next;
    source->next++;
    return status < 0 ? status : 1;
}

struct feed model_feed_of(const struct model *m, struct model_feed *source)
{
    struct feed feed = {
        .ntensors = source->numbered ? 3 : 2,
        .tensors = {{.name = m->input_name,
                     .dtype = m->input_dtype,
                     .ndim = m->input_ndim},
                    {m->label_name, IPU_INT32, 1, {m->rows}},
                    {"number", IPU_INT32, 0, {0}}},
        .next = next_of_model,
        .context = source,
    };

    memcpy(feed.tensors[0].shape, m->input_shape, sizeof m->input_shape);
    return feed;
}
