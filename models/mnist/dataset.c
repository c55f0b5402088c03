/* SPDX-License-Identifier: Apache-2.0 */
#include "mnist/dataset.h"

#include "data/idx.h"
#include "output/problem.h"

#include <stdbool.h>

enum { DRAWN_TRAIN = 40000, DRAWN_TEST = 5000 };

static int load(const struct digits_source *source, int set,
                hvd_progress *progress, struct images *images)
{
    const bool trains = set == DIGITS_TRAIN;
    int64_t count = source->count;
    int status;

    if (source->directory) {
        hvd_progress_phase(progress, "reading images", 0, 0, NULL);
        status = idx_load(source->directory, trains ? "train" : "t10k", count,
                          images);
        hvd_progress_end(progress);
        return status;
    }
    if (count == 0)
        count = trains ? DRAWN_TRAIN : DRAWN_TEST;
    return digits_draw(source->seed, set, count, progress, images);
}

static void free_images(void *images)
{
    images_fini(images);
    free(images);
}

hvd_dataset *digits_dataset(const struct digits_source *source, int set,
                            hvd_progress *progress)
{
    static const hvd_component components[] = {
        {"images", HVD_UINT8, 1, {IMAGE_PIXELS}},
        {"labels", HVD_UINT8, 0, {0}}};
    struct images *images = calloc(1, sizeof *images);
    hvd_dataset *d;

    if (!images || load(source, set, progress, images) < 0) {
        if (!images)
            problem_set("no memory for the digits");
        free(images);
        return NULL;
    }
    const void *const arrays[] = {images->pixels, images->labels};

    d = hvd_dataset_memory(2, components, arrays, images->count, free_images,
                           images);
    d = hvd_dataset_cast(d, "images", HVD_FLOAT32, 255);
    return hvd_dataset_cast(d, "labels", HVD_INT32, 1);
}
