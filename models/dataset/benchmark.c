/* SPDX-License-Identifier: Apache-2.0 */
/* benchmark.c - measures how fast an iterator gives elements or batches. */
#include "output/clock.h"
#include "output/problem.h"

#include <hvd_dataset.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>

static size_t batch_bytes(const hvd_batch *batch)
{
    size_t bytes = 0;

    for (int32_t i = 0; i < batch->ncomponents; i++) {
        const hvd_component *c = &batch->components[i];
        size_t count = 1;

        for (int32_t k = 0; k < c->ndim; k++)
            count *= (size_t)c->shape[k];
        bytes += count * (size_t)hvd_dtype_size(c->dtype);
    }
    return bytes;
}

/* Gets the elements of one epoch. bytes gets what they have. */
static int read_elements(hvd_iterator *iterator, int64_t elements,
                         double *bytes)
{
    bool ended = false;
    hvd_batch batch;

    *bytes = 0;
    for (int64_t done = 0; done < elements;) {
        int status = hvd_iterator_next(iterator, &batch);

        if (status < 0)
            return status;
        if (status == HVD_END_OF_DATA && ended)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "data set: nothing to measure: it is empty, or "
                                "does not fill a batch");
        ended = status == HVD_END_OF_DATA;
        if (!ended) {
            *bytes += (double)batch_bytes(&batch);
            done++;
        }
    }
    return 0;
}

/* Single-precision numbers, as the form has them. */
static int add_epoch(json_t *epochs, double elements, double bytes,
                     double seconds)
{
    json_t *epoch = json_pack(
        "{s:f, s:f, s:f, s:f, s:f}", "bandwidth",
        (double)(float)(bytes / (1e9 * seconds)), "elements_per_second",
        (double)(float)(elements / seconds), "elements_processed",
        (double)(float)elements, "time_elapsed", (double)(float)seconds,
        "total_bytes_processed", (double)(float)bytes);

    return json_array_append_new(epochs, epoch);
}

static int measure(hvd_iterator *iterator, int32_t epochs, int64_t elements,
                   json_t *list)
{
    for (int32_t i = 0; i < epochs; i++) {
        double bytes, begun = clock_seconds();
        int status = read_elements(iterator, elements, &bytes);
        double seconds = clock_seconds() - begun;

        if (status < 0)
            return status;
        if (add_epoch(list, (double)elements, bytes,
                      seconds > 0 ? seconds : 1e-9) < 0)
            return problem_fail(HVD_ERR_MEMORY, "data set: no memory");
    }
    return 0;
}

int hvd_dataset_benchmark(hvd_dataset *dataset, int32_t epochs,
                          int64_t elements, char **json)
{
    hvd_iterator *iterator;

    if (dataset && (!json || epochs < 1 || elements < 1))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "data set: %d epochs of %lld elements to measure: "
                            "both must be 1 or more, with a place for the text",
                            (int)epochs, (long long)elements);
    int status = hvd_iterator_new(dataset, NULL, &iterator);
    if (status < 0)
        return status;
    json_t *list = json_array(), *whole = json_pack("{s:o}", "epochs", list);
    if (!whole)
        status = problem_fail(HVD_ERR_MEMORY, "data set: no memory");
    if (status == 0)
        status = measure(iterator, epochs, elements, list);
    hvd_iterator_free(iterator);
    char *text = status < 0 ? NULL
                            : json_dumps(whole, JSON_COMPACT | JSON_SORT_KEYS |
                                                    JSON_REAL_PRECISION(17));
    json_decref(whole);
    if (status == 0 && !text)
        status = problem_fail(HVD_ERR_MEMORY, "data set: no memory");
    if (status == 0)
        *json = text;
    return status;
}
