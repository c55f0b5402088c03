/* SPDX-License-Identifier: Apache-2.0 */
/* batches.c - the batches that the network learns from, and its first
 * weights. */
#include "memory/parts.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the next number of a sequence, in [-1, 1). */
static float random_float(struct random *r)
{
    return (float)(int32_t)(random_bits(r) >> 40) / 8388608.0f - 1.0f;
}

static int nearest_direction(const struct training *t, const float *x)
{
    const int width = t->settings->width;
    int best = 0;
    float most = 0;

    for (int c = 0; c < CLASSES; c++) {
        float sum = 0;

        for (int i = 0; i < width; i++)
            sum += x[i] * t->directions[c * width + i];
        if (c == 0 || sum > most) {
            best = c;
            most = sum;
        }
    }
    return best;
}

static void draw_batch(struct training *t)
{
    const int width = t->settings->width;

    for (int r = 0; r < t->settings->rows; r++) {
        float *x = t->x + (ptrdiff_t)r * width;

        for (int i = 0; i < width; i++)
            x[i] = random_float(&t->random);
        t->labels[r] = nearest_direction(t, x);
    }
}

/* Fills the next part of a batch; draws a new batch after the last. */
static int next_part(void *context, void *const *buffers)
{
    struct training *t = context;
    const size_t rows = (size_t)t->rows, width = (size_t)t->settings->width;

    if (t->next == 0)
        draw_batch(t);
    memcpy(buffers[0], t->labels + (size_t)t->next * rows,
           rows * sizeof *t->labels);
    memcpy(buffers[1], t->x + (size_t)t->next * rows * width,
           rows * width * sizeof *t->x);
    t->next = (t->next + 1) % t->parts;
    return 1;
}

struct feed training_feed(struct training *t)
{
    return (struct feed){
        .ntensors = 2,
        .tensors = {{"labels", IPU_INT32, 1, {t->rows}},
                    {"x", IPU_FLOAT32, 2, {t->rows, t->settings->width}}},
        .next = next_part,
        .context = t};
}

bool training_allocate(struct training *t)
{
    const struct training_settings *s = t->settings;
    size_t rows = (size_t)s->rows, width = (size_t)s->width;

    t->x = malloc(rows * width * sizeof *t->x);
    t->labels = malloc(rows * sizeof *t->labels);
    t->directions = malloc(CLASSES * width * sizeof *t->directions);
    if (!t->x || !t->labels || !t->directions)
        return false;
    t->random.state = s->seed;
    for (size_t i = 0; i < CLASSES * width; i++)
        t->directions[i] = random_float(&t->random);
    return true;
}

size_t training_layer_bytes(const struct training *t, int i)
{
    const struct training_settings *s = t->settings;

    return sizeof(float) * (size_t)s->width *
           (size_t)(i == s->layers - 1 ? CLASSES : s->width);
}

int training_write_weights(struct training *t)
{
    float *w = malloc(training_layer_bytes(t, 0) +
                      training_layer_bytes(t, t->settings->layers - 1));
    struct random r = {t->settings->seed + 1};
    int status = 0;

    for (int i = 0; w && i < t->settings->layers && status >= 0; i++) {
        size_t bytes = training_layer_bytes(t, i);
        char name[16];

        snprintf(name, sizeof name, "w%d", i);
        /* He's uniform distribution: spread sqrt(6 / width) */
        for (size_t k = 0; k < bytes / sizeof *w; k++)
            w[k] = random_float(&r) * 2.4495f /
                   __builtin_sqrtf((float)t->settings->width);
        status = t->backend->functions->write(t->backend, name, w, bytes);
    }
    free(w);
    return status;
}

int training_read_weights(const struct training *t, float *w)
{
    int status = 0;

    for (int i = 0; i < t->settings->layers && status >= 0; i++) {
        size_t bytes = training_layer_bytes(t, i);
        char name[16];

        snprintf(name, sizeof name, "w%d", i);
        status = t->backend->functions->read(t->backend, name, w, bytes);
        w += bytes / sizeof *w;
    }
    return status;
}
