/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fuse.h"

bool hvd__fusible(const struct hvd__signature *a,
                  const struct hvd__signature *b)
{
    return a->kind == HVD_ALLREDUCE && b->kind == HVD_ALLREDUCE &&
           a->dtype == b->dtype && a->op == b->op &&
           a->prescale == b->prescale && a->postscale == b->postscale;
}

int hvd__fuse(const struct hvd__signature *const *ready, int n,
              size_t threshold, bool *taken)
{
    size_t total = n > 0 ? hvd__signature_bytes(ready[0]) : 0;
    int ntaken = n > 0;

    for (int i = 0; i < n; i++) {
        size_t bytes = hvd__signature_bytes(ready[i]);

        taken[i] = i == 0;
        if (i == 0 || total > threshold || bytes > threshold - total ||
            !hvd__fusible(ready[0], ready[i]))
            continue;
        taken[i] = true;
        total += bytes;
        ntaken++;
    }
    return ntaken;
}
