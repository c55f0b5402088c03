/* SPDX-License-Identifier: Apache-2.0 */
#include "strategy/rows.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

size_t hvd__rows_bytes(int64_t n, int64_t width)
{
    return (size_t)n * (sizeof(int64_t) + (size_t)width * sizeof(float));
}

int hvd__rows_new(struct hvd__rows *rows, int64_t n, int64_t width)
{
    size_t bytes = hvd__rows_bytes(n, width);

    *rows = (struct hvd__rows){.indices = malloc(bytes + 1)};
    if (!rows->indices)
        return hvd__fail_memory(bytes);
    rows->n = n;
    rows->values = (float *)(void *)(rows->indices + n);
    return HVD_OK;
}

void hvd__rows_free(struct hvd__rows *rows)
{
    free(rows->indices);
    *rows = (struct hvd__rows){0};
}

/* ---------------------------------------------------------------- combining */

/* A row, and where it came in the input. */
struct place {
    int64_t index;
    int64_t at;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Writes the places in ascending order; returns how many indices there are. */
static int64_t sort_places(struct place *places, const int64_t *indices,
                           int64_t n)
{
    bool is_sorted = true;
    int64_t distinct = n > 0;

    for (int64_t i = 0; i < n; i++) {
        places[i] = (struct place){indices[i], i};
        is_sorted &= i == 0 || indices[i - 1] <= indices[i];
    }
    if (!is_sorted)
        qsort(places, (size_t)n, sizeof *places, compare_places);
    for (int64_t i = 1; i < n; i++)
        distinct += places[i].index != places[i - 1].index;
    return distinct;
}

static void add_places(struct hvd__rows *rows, const struct place *places,
                       const float *values, int64_t n, int64_t width)
{
    int64_t to = -1;

    for (int64_t i = 0; i < n; i++) {
        bool is_new = to < 0 || rows->indices[to] != places[i].index;
        const float *from;
        float *sum;

        if (is_new)
            rows->indices[++to] = places[i].index;
        if (width == 0)
            continue;
        from = values + places[i].at * width;
        sum = rows->values + to * width;
        if (is_new)
            memcpy(sum, from, (size_t)width * sizeof *from);
        else
            for (int64_t k = 0; k < width; k++)
                sum[k] += from[k];
    }
}

int hvd__rows_combine(struct hvd__rows *rows, const int64_t *indices,
                      const float *values, int64_t n, int64_t width)
{
    struct place *places = malloc((size_t)n * sizeof *places + 1);
    int status;

    if (!places)
        return hvd__fail_memory((size_t)n * sizeof *places);
    status = hvd__rows_new(rows, sort_places(places, indices, n), width);
    if (status >= 0)
        add_places(rows, places, values, n, width);
    free(places);
    return status;
}

/* ----------------------------------------------------------------- sections */

/* Returns how many rows have an index below the bound. */
static int64_t count_below(const struct hvd__rows *rows, int64_t bound)
{
    int64_t low = 0, high = rows->n;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (rows->indices[middle] < bound)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int hvd__rows_slice(struct hvd__rows *slice, const struct hvd__rows *rows,
                    int64_t width, int64_t first, int64_t end)
{
    int64_t from = count_below(rows, first);
    int64_t n = count_below(rows, end) - from;

    HVD_TRY(hvd__rows_new(slice, n, width));
    if (n == 0)
        return HVD_OK;
    memcpy(slice->indices, rows->indices + from,
           (size_t)n * sizeof *slice->indices);
    memcpy(slice->values, rows->values + from * width,
           (size_t)(n * width) * sizeof *slice->values);
    return HVD_OK;
}

int64_t hvd__rows_misplaced(const struct hvd__rows *rows, int64_t first,
                            int64_t end)
{
    for (int64_t i = 0; i < rows->n; i++)
        if (rows->indices[i] < first || rows->indices[i] >= end ||
            (i > 0 && rows->indices[i] <= rows->indices[i - 1]))
            return i;
    return -1;
}

void hvd__rows_gather(struct hvd__rows *rows, const float *value, int64_t width,
                      int64_t first)
{
    for (int64_t i = 0; i < rows->n; i++)
        memcpy(rows->values + i * width,
               value + (rows->indices[i] - first) * width,
               (size_t)width * sizeof *value);
}

void hvd__rows_scatter(const struct hvd__rows *rows, float *value,
                       int64_t width, int64_t first)
{
    for (int64_t i = 0; i < rows->n; i++)
        memcpy(value + (rows->indices[i] - first) * width,
               rows->values + i * width, (size_t)width * sizeof *value);
}
