/* SPDX-License-Identifier: Apache-2.0 */
#include "chapter/digits_source.h"

#include "data/digits.h"
#include "data/idx.h"
#include "output/problem.h"

enum { SEED = 1, DRAWN = 4096 };

int digits_source_init(struct digits_source *source, const char *directory,
                       int batch)
{
    int64_t count = batch > DRAWN ? batch : DRAWN;
    int status;

    *source = (struct digits_source){.batch = batch};
    status = directory ? idx_load(directory, "train", 0, &source->images)
                       : digits_draw(SEED, DIGITS_TRAIN, count, NULL,
                                     &source->images);
    if (status == 0 && source->images.count < batch)
        status = problem_set("%lld images do not fill a batch of %d",
                             (long long)source->images.count, batch);
    if (status < 0)
        digits_source_fini(source);
    source->tensors[0] = (ipu_feed_tensor){.name = "pixels",
                                           .dtype = IPU_FLOAT32,
                                           .ndim = 2,
                                           .shape = {batch, IMAGE_PIXELS}};
    source->tensors[1] = (ipu_feed_tensor){
        .name = "labels", .dtype = IPU_INT32, .ndim = 1, .shape = {batch}};
    return status;
}

void digits_source_fini(struct digits_source *source)
{
    images_fini(&source->images);
}

static int next_batch(void *context, void *const *buffers)
{
    struct digits_source *s = context;
    const uint8_t *from = s->images.pixels + s->next * IMAGE_PIXELS;
    float *pixels = buffers[0];
    int32_t *labels = buffers[1];

    if (s->next + s->batch > s->images.count)
        return 0;
    for (int64_t i = 0; i < (int64_t)s->batch * IMAGE_PIXELS; i++)
        pixels[i] = (float)from[i] / 255;
    for (int i = 0; i < s->batch; i++)
        labels[i] = s->images.labels[s->next + i];
    s->next += s->batch;
    return 1;
}

static int rewind_source(void *context)
{
    struct digits_source *s = context;

    s->next = 0;
    return 0;
}

ipu_infeed_options digits_source_options(struct digits_source *source,
                                         const char *name)
{
    ipu_infeed_options o;

    ipu_infeed_options_init(&o, sizeof o);
    o.name = name;
    o.ntensors = 2;
    o.tensors = source->tensors;
    o.source = (ipu_source){
        .next = next_batch, .rewind = rewind_source, .context = source};
    o.repeat = 1;
    return o;
}
