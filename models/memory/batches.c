/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/batches.h"

#include "data/random.h"
#include "output/problem.h"

#include <hvd_dataset.h>
#include <stdlib.h>

/* The context of a generator. */
struct rows {
    struct random random;
    int width;
};

static int draw_row(void *context, void *const *out)
{
    struct rows *rows = context;
    int32_t *label = out[0];
    float *x = out[1];

    *label = 0;
    for (int i = 0; i < rows->width; i++) {
        x[i] = (float)random_range(&rows->random, -1, 1);
        if (i < CLASSES && x[i] > x[*label])
            *label = i;
    }
    return 0;
}

int batches_open(int rows, int width, uint64_t seed, hvd_iterator **iterator)
{
    const hvd_component components[] = {{"labels", HVD_INT32, 0, {0}},
                                        {"x", HVD_FLOAT32, 1, {width}}};
    struct rows *context = malloc(sizeof *context);
    const hvd_generator generator = {
        .next = draw_row, .release = free, .context = context};
    hvd_dataset *d;
    int status;

    if (!context)
        return problem_set("no memory for the data");
    *context = (struct rows){{seed}, width};
    d = hvd_dataset_generate(2, components, &generator);
    d = hvd_dataset_batch(d, rows, 1);
    status = hvd_iterator_new(d, NULL, iterator);
    hvd_dataset_free(d);
    return status;
}

void batches_close(hvd_iterator *iterator)
{
    hvd_iterator_free(iterator);
}

int batches_next(void *iterator, void **buffers)
{
    hvd_batch batch;

    return hvd_iterator_next_into(iterator, buffers, &batch) < 0 ? -1 : 1;
}
