/* SPDX-License-Identifier: Apache-2.0 */
/* data_mark.c - hashes the elements of a data set in their order. */
#include "command/data_mark.h"

#include "data/fnv1a.h"
#include "output/problem.h"

#include <hvd.h>

static uint64_t hash_element(uint64_t hash, const hvd_batch *element)
{
    for (int32_t i = 0; i < element->ncomponents; i++) {
        const hvd_component *c = &element->components[i];
        int64_t bytes = hvd_dtype_size(c->dtype);

        for (int32_t d = 0; d < c->ndim; d++)
            bytes *= c->shape[d];
        hash = fnv1a(hash, element->data[i], (size_t)bytes);
    }
    return hash;
}

int data_mark(hvd_dataset *data, uint64_t *mark)
{
    hvd_iterator *iterator = NULL;
    hvd_batch element;
    uint64_t hash = FNV1A_START;
    int status = hvd_iterator_new(data, NULL, &iterator);

    while (status == 0) {
        status = hvd_iterator_next(iterator, &element);
        if (status == 0)
            hash = hash_element(hash, &element);
    }
    hvd_iterator_free(iterator);
    if (status < 0)
        return problem_set("the data to train on: %s", hvd_last_error());
    *mark = hash != 0 ? hash : 1;
    return 0;
}
