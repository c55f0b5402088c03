/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/batch.h"

#include "base/dtype.h"
#include "core/request/compress.h"

bool hvd__fusible(const struct hvd__signature *a,
                  const struct hvd__signature *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case HVD_BROADCAST: return a->root == b->root;
    case HVD_ALLGATHER: return true;
    case HVD_ALLREDUCE:
    case HVD_REDUCE:
    case HVD_REDUCESCATTER:
        return a->dtype == b->dtype && a->op == b->op && a->root == b->root &&
               a->flags == b->flags && a->compression == b->compression &&
               a->prescale == b->prescale && a->postscale == b->postscale &&
               a->op != HVD_ADASUM && !hvd__compression_encodes(a->compression);
    default: return false;
    }
}

size_t hvd__fusion_bytes(const struct hvd__signature *s, int nranks,
                         int64_t rows)
{
    switch (s->kind) {
    case HVD_ALLGATHER:
        return hvd__signature_varies(s)
                   ? (size_t)rows * hvd__signature_row_bytes(s)
                   : hvd__signature_bytes(s) * (size_t)nranks;
    /* The result lies behind the input. */
    case HVD_REDUCESCATTER: return 2 * hvd__signature_bytes(s);
    default:
        return (size_t)hvd__signature_count(s) *
               hvd__dtype_bytes(
                   hvd__compression_wire(s->compression, s->dtype));
    }
}

bool hvd__fuse(struct hvd__fusion *f, const struct hvd__signature *signature,
               size_t bytes)
{
    if (!f->first)
        f->first = signature;
    else if (f->bytes > f->threshold || bytes > f->threshold - f->bytes ||
             !hvd__fusible(f->first, signature))
        return false;
    f->bytes += bytes;
    return true;
}

/* -------------------------------------------------------- what is agreed on */

static const struct hvd__signature *signature_of(const struct hvd__item *item)
{
    return &item->proposal->variants[0].what->signatures[item->index];
}

static void put_item(struct hvd__item *item)
{
    if (--item->proposal->nitems == 0)
        hvd__proposal_free(item->proposal);
}

void hvd__ready_fini(struct hvd__ready *ready)
{
    struct hvd__item *item;

    while ((item = ready->first)) {
        ready->first = item->next;
        put_item(item);
    }
}

/* Inserts the item behind all items of its priority. Usually all priorities are
 * equal, and the item goes to the end at once. */
static void insert_item(struct hvd__ready *ready, struct hvd__item *item)
{
    const int32_t priority = item->proposal->priority;
    struct hvd__item **link = &ready->first;

    if (ready->last && ready->last->proposal->priority >= priority)
        link = &ready->last->next;
    while (*link && (*link)->proposal->priority >= priority)
        link = &(*link)->next;
    item->next = *link;
    *link = item;
    if (!item->next)
        ready->last = item;
}

void hvd__ready_add(struct hvd__ready *ready, struct hvd__proposal *p)
{
    p->nitems = p->variants[0].what->nsignatures;
    for (int i = 0; i < p->nitems; i++)
        insert_item(ready, &p->items[i]);
}

bool hvd__ready_is_barrier(const struct hvd__ready *ready)
{
    return signature_of(ready->first)->kind == HVD_BARRIER;
}

/* Returns true if the same members take part in both. */
static bool same_members(const struct hvd__ready *ready,
                         const struct hvd__proposal *a,
                         const struct hvd__proposal *b)
{
    if (a->nannounced != b->nannounced)
        return false;
    for (int rank = 0; a->nannounced < ready->nranks && rank < ready->nranks;
         rank++)
        if ((a->of[rank] == 0) != (b->of[rank] == 0))
            return false;
    return true;
}

static void write_item(const struct hvd__ready *ready,
                       const struct hvd__item *item, struct hvd__writer *out)
{
    const struct hvd__variant *v = &item->proposal->variants[0];

    hvd__write_long(out, (int64_t)item->proposal->key);
    hvd__write_long(out, item->index);
    hvd__write_long(out, item->number >= 0 ? ready->nranks : 0);
    for (int rank = 0; item->number >= 0 && rank < ready->nranks; rank++)
        hvd__write_long(out,
                        v->numbers[rank * v->what->nnumbers + item->number]);
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
        if (same_members(ready, first->proposal, item->proposal) &&
            hvd__fuse(&fusion, signature_of(item), item->bytes)) {
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

void hvd__ready_write_batch(struct hvd__ready *ready,
                            const struct hvd__knobs *knobs,
                            struct hvd__writer *out)
{
    struct hvd__item *batch, *item;
    int n = take_batch(ready, knobs->fusion_threshold, &batch);

    hvd__write_type(out, HVD__BATCH);
    hvd__write_long(out, (int64_t)knobs->direct_max);
    hvd__write_ranks(out, batch->proposal->of, ready->nranks);
    hvd__write_long(out, n);
    while ((item = batch)) {
        batch = item->next;
        write_item(ready, item, out);
        put_item(item);
    }
}
