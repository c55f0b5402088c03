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
    free(ready->fusees);
    free(ready->taken);
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
    ready->n++;
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

static bool reserve_fusees(struct hvd__ready *ready)
{
    int capacity = 2 * ready->n;
    struct hvd__fusee *fusees;
    bool *taken;

    if (ready->capacity >= ready->n)
        return true;
    fusees = realloc(ready->fusees, (size_t)capacity * sizeof *fusees);
    if (fusees)
        ready->fusees = fusees;
    taken = realloc(ready->taken, (size_t)capacity * sizeof *taken);
    if (taken)
        ready->taken = taken;
    if (!fusees || !taken)
        return false;
    ready->capacity = capacity;
    return true;
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

/* Chooses a batch. Returns how many requests are taken, or 0 if memory runs
 * out. */
static int choose_batch(struct hvd__ready *ready, size_t threshold)
{
    int n = 0;

    if (!reserve_fusees(ready))
        return 0;
    for (const struct hvd__item *item = ready->first; item; item = item->next)
        ready->fusees[n++] = (struct hvd__fusee){
            .signature = &item->signature,
            /* Requests of other ranks cannot be fused with the first. */
            .bytes =
                same_absent(ready, ready->first, item) ? item->bytes : SIZE_MAX,
        };
    return hvd__fuse(ready->fusees, n, threshold, ready->taken);
}

void hvd__ready_write_batch(struct hvd__ready *ready, size_t threshold,
                            struct hvd__writer *out)
{
    struct hvd__item **link = &ready->first;
    int n = ready->n, ntaken = choose_batch(ready, threshold);
    const int *absent = ready->first->absent;

    if (ntaken == 0) {
        out->failed = true;
        return;
    }
    hvd__write_type(out, HVD__BATCH);
    hvd__write_int(out, absent != NULL);
    if (absent)
        hvd__write_ranks(out, absent, ready->nranks);
    hvd__write_int(out, ntaken);
    ready->last = NULL;
    for (int i = 0; i < n; i++) {
        struct hvd__item *item = *link;

        if (!ready->taken[i]) {
            ready->last = item;
            link = &item->next;
            continue;
        }
        write_item(ready, item, out);
        *link = item->next;
        item_free(item);
        ready->n--;
    }
}
