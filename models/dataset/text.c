/* SPDX-License-Identifier: Apache-2.0 */
/* dataset/text.c - the source of windows of a sequence: all share its units. */
#include "dataset/stage.h"

#include "data/text.h"
#include "files/gz.h"
#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

struct windows {
    const int32_t *units;
    int64_t count, stride;
    void (*release)(void *context);
    void *context;
};

static int64_t count_windows(const hvd_dataset *set, const struct share *share)
{
    (void)share;
    return ((const struct windows *)set->parameters)->count;
}

static int look_window(struct stage *stage, int64_t index, const void **at)
{
    const struct windows *w = stage->set->parameters;

    at[0] = w->units + index * w->stride;
    at[1] = w->units + index * w->stride + 1;
    return 0;
}

static void free_windows(hvd_dataset *set)
{
    const struct windows *w = set->parameters;

    if (w->release)
        w->release(w->context);
}

static const struct kind windows_kind = {.name = "windows",
                                         .count = count_windows,
                                         .look = look_window,
                                         .free = free_windows};

hvd_dataset *hvd_dataset_windows(const int32_t *units, int64_t count,
                                 int64_t window, int64_t stride,
                                 void (*release)(void *context), void *context)
{
    const hvd_component components[] = {{"inputs", HVD_INT32, 1, {window}},
                                        {"labels", HVD_INT32, 1, {window}}};
    hvd_dataset *set =
        node_make(&windows_kind, 0, NULL, sizeof(struct windows));

    if (!set) {
        if (release)
            release(context);
        return NULL;
    }
    struct windows *w = set->parameters;
    *w = (struct windows){units, 0, stride, release, context};
    set->random = true;
    if (window < 1 || stride < 1)
        return node_fail(set, HVD_ERR_ARGUMENT,
                         "data set: windows of %lld units, %lld apart: both "
                         "must be 1 or more",
                         (long long)window, (long long)stride);
    if (!units || count <= window)
        return node_fail(set, HVD_ERR_ARGUMENT,
                         "data set: %lld units, too few for a window of %lld "
                         "and the label of its last",
                         (long long)count, (long long)window);
    w->count = (count - 1 - window) / stride + 1;
    return node_components(set, 2, components);
}

/* Reads the text as numbers; *vocabulary gets how many different ones there
 * may be. */
static int read_numbers(const char *path, hvd_text_unit unit, int32_t **numbers,
                        int64_t *count, int32_t *vocabulary)
{
    char *bytes;
    size_t length;
    int status = gz_read_file(path, &bytes, &length);

    if (status < 0)
        return status;
    if (unit == HVD_TEXT_CHARACTERS) {
        struct text text;

        status = text_from(path, bytes, length, &text) < 0 ? HVD_ERR_FILE : 0;
        if (status == 0) {
            *numbers = text.numbers;
            *count = text.count;
            *vocabulary = text.characters;
            text.numbers = NULL;
        }
        text_fini(&text);
    } else {
        *numbers = malloc((length + 1) * sizeof **numbers);
        if (!*numbers)
            status = problem_fail(
                HVD_ERR_MEMORY, "%s: no memory for %zu numbers", path, length);
        for (size_t i = 0; status == 0 && i < length; i++)
            (*numbers)[i] = (unsigned char)bytes[i];
        *count = (int64_t)length;
        *vocabulary = 256;
    }
    free(bytes);
    return status;
}

hvd_dataset *hvd_dataset_text(const char *path, hvd_text_unit unit,
                              int64_t window, int64_t stride,
                              int32_t *vocabulary)
{
    int32_t *numbers = NULL, units = 0;
    int64_t count = 0;

    if (unit != HVD_TEXT_BYTES && unit != HVD_TEXT_CHARACTERS)
        return node_fail(NULL, HVD_ERR_ARGUMENT,
                         "data set: windows of units of kind %d: expected "
                         "bytes or characters",
                         (int)unit);
    if (read_numbers(path, unit, &numbers, &count, &units) < 0)
        return NULL;
    hvd_dataset *set =
        hvd_dataset_windows(numbers, count, window, stride, free, numbers);
    if (!set)
        return node_fail(NULL, HVD_ERR_FILE, "%s: %s", path, hvd_last_error());
    if (vocabulary)
        *vocabulary = units;
    return set;
}
