/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/ready.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static void item_free(struct hvd__item *item)
{
    free(item->absent);
    free(item->numbers);
    free(item);
}

void hvd__ready_init(struct hvd__ready *ready, int nranks)
{
    *ready = (struct hvd__ready){.nranks = nranks};
}

void hvd__ready_fini(struct hvd__ready *ready)
{
    struct hvd__item *item;

    while ((item = ready->first)) {
        ready->first = item->next;
        item_free(item);
    }
}

/* ------------------------------------------------------------------- adding */

/* Inserts the item behind all items of its priority. Usually all priorities are
 * equal, and the item goes to the end at once. */
static void insert_item(struct hvd__ready *ready, struct hvd__item *item)
{
    struct hvd__item **link = &ready->first;

    if (ready->last && ready->last->priority >= item->priority)
        link = &ready->last->next;
    while (*link && (*link)->priority >= item->priority)
        link = &(*link)->next;
    item->next = *link;
    *link = item;
    if (!item->next)
        ready->last = item;
}

int hvd__ready_add(struct hvd__ready *ready, const struct hvd__item *item,
                   const int *submitted, const int64_t *numbers, int stride)
{
    struct hvd__item *copy = malloc(sizeof *copy);
    size_t n = (size_t)ready->nranks;
    int64_t rows = 0;

    if (!copy)
        return hvd__fail_memory(sizeof *copy);
    *copy = *item;
    copy->absent = submitted ? malloc(n * sizeof *copy->absent) : NULL;
    copy->numbers = numbers ? malloc(n * sizeof *copy->numbers) : NULL;
    if ((submitted && !copy->absent) || (numbers && !copy->numbers)) {
        item_free(copy);
        return hvd__fail_memory(n * sizeof *copy->numbers);
    }
    for (int rank = 0; rank < ready->nranks; rank++) {
        if (copy->absent)
            copy->absent[rank] = submitted[rank] == 0;
        if (copy->numbers) {
            copy->numbers[rank] = numbers[rank * stride];
            rows += copy->numbers[rank];
        }
    }
    copy->bytes = hvd__fusion_bytes(&copy->signature, ready->nranks, rows);
    insert_item(ready, copy);
    return HVD_OK;
}

/* ------------------------------------------------------------------- batches
 */

bool hvd__ready_is_barrier(const struct hvd__ready *ready)
{
    return ready->first->signature.kind == HVD_BARRIER;
}

static bool same_absent(const struct hvd__ready *ready,
                        const struct hvd__item *a, const struct hvd__item *b)
{
    if (!a->absent || !b->absent)
        return a->absent == b->absent;
    return memcmp(a->absent, b->absent,
                  (size_t)ready->nranks * sizeof *a->absent) == 0;
}

static void write_item(const struct hvd__ready *ready,
                       const struct hvd__item *item, struct hvd__writer *out)
{
    hvd__write_key(out, item->key);
    hvd__write_int(out, item->index);
    hvd__write_int(out, item->numbers ? ready->nranks : 0);
    for (int rank = 0; item->numbers && rank < ready->nranks; rank++)
        hvd__write_long(out, item->numbers[rank]);
}

/* Takes a batch out of the list. Returns how many requests it has. */
static int take_batch(struct hvd__ready *ready, size_t threshold,
                      struct hvd__item **batch)
{
    const struct hvd__item *first = ready->first;
    struct hvd__fusion fusion = {.threshold = threshold};
    struct hvd__item *item, **link = &ready->first;
    int n = 0;

    ready->last = NULL;
    while ((item = *link))
        if (same_absent(ready, first, item) &&
            hvd__fuse(&fusion, &item->signature, item->bytes)) {
            *link = item->next;
            *batch = item;
            batch = &item->next;
            n++;
        } else {
            ready->last = item;
            link = &item->next;
        }
    *batch = NULL;
    return n;
}

void hvd__ready_write_batch(struct hvd__ready *ready, size_t threshold,
                            struct hvd__writer *out)
{
    struct hvd__item *batch, *item;
    int n = take_batch(ready, threshold, &batch);

    hvd__write_type(out, HVD__BATCH);
    hvd__write_int(out, batch->absent != NULL);
    if (batch->absent)
        hvd__write_ranks(out, batch->absent, ready->nranks);
    hvd__write_int(out, n);
    while ((item = batch)) {
        batch = item->next;
        write_item(ready, item, out);
        item_free(item);
    }
}
