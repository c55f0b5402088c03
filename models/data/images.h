/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images.h - labelled grey images in the format of MNIST: 28 rows of 28 bytes,
 * in which 0 is paper and 255 is ink, and a digit 0 to 9 for each image.
 */
#ifndef MODELS_IMAGES_H
#define MODELS_IMAGES_H

#include <stdint.h>
#include <stdlib.h>

enum { IMAGE_SIDE = 28, IMAGE_PIXELS = IMAGE_SIDE * IMAGE_SIDE, CLASSES = 10 };

struct images {
    int64_t count;
    uint8_t *pixels; /* [count, 28, 28], owned */
    uint8_t *labels; /* [count], owned */
};

/* Accepts zeroed and half-built ones. */
static inline void images_fini(struct images *images)
{
    free(images->pixels);
    free(images->labels);
    *images = (struct images){0};
}

#endif
