/* SPDX-License-Identifier: Apache-2.0 */
#include "strategy/parts.h"

#include <string.h>

static int64_t count_of(int32_t ndim, const int64_t *shape)
{
    int64_t count = 1;

    for (int32_t i = 0; i < ndim; i++)
        count *= shape[i];
    return count;
}

int64_t hvd__parts_of(int32_t ndim, const int64_t *shape, int64_t part_bytes)
{
    int64_t count = count_of(ndim, shape), row_bytes, rows;

    if (count == 0)
        return 0;
    if (part_bytes == 0 || ndim == 0)
        return 1;
    row_bytes = count / shape[0] * (int64_t)sizeof(float);
    rows = part_bytes / row_bytes ? part_bytes / row_bytes : 1;
    return shape[0] / rows + (shape[0] % rows > 0);
}

void hvd__parts_split(int32_t variable, int32_t ndim, const int64_t *shape,
                      int64_t n, struct hvd__part *parts)
{
    int64_t count = count_of(ndim, shape), offset = 0;
    int64_t rows = ndim > 0 ? shape[0] : 1;

    for (int64_t i = 0; i < n; i++) {
        int64_t mine = rows / n + (i < rows % n);

        parts[i] = (struct hvd__part){.variable = variable,
                                      .number = (int32_t)i,
                                      .offset = offset,
                                      .count = count / rows * mine};
        offset += parts[i].count;
    }
}

void hvd__parts_place(struct hvd__part *parts, int64_t n, int32_t servers,
                      hvd_placement placement, int64_t *loads)
{
    memset(loads, 0, (size_t)servers * sizeof *loads);
    for (int64_t i = 0; i < n; i++) {
        int32_t best = (int32_t)(i % servers);

        if (placement == HVD_PLACE_BY_BYTES) {
            best = 0;
            for (int32_t k = 1; k < servers; k++)
                if (loads[k] < loads[best])
                    best = k;
        }
        parts[i].server = best;
        loads[best] += parts[i].count;
    }
}
