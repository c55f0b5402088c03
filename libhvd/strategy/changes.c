/* SPDX-License-Identifier: Apache-2.0 */
#include "strategy/changes.h"

#include <stdlib.h>

#include "base/status.h"

int hvd__changes_init(struct hvd__changes *changes, int64_t nrows)
{
    size_t bytes = ((size_t)nrows + 1) * sizeof *changes->rows;

    *changes = (struct hvd__changes){nrows, malloc(bytes)};
    if (!changes->rows)
        return hvd__fail_memory(bytes);
    for (int64_t i = 0; i <= nrows; i++)
        changes->rows[i] = (struct hvd__change){0, i > 0 ? i - 1 : nrows,
                                                i < nrows ? i + 1 : 0};
    return HVD_OK;
}

void hvd__changes_fini(struct hvd__changes *changes)
{
    free(changes->rows);
    *changes = (struct hvd__changes){0};
}

void hvd__changes_note(struct hvd__changes *changes, int64_t row,
                       int64_t version)
{
    struct hvd__change *rows = changes->rows, *end = rows + changes->nrows;
    struct hvd__change *c = rows + row;

    rows[c->newer].older = c->older;
    rows[c->older].newer = c->newer;
    *c = (struct hvd__change){version, changes->nrows, end->older};
    rows[end->older].newer = row;
    end->older = row;
}

/* Returns the newest row after a row, if it has changed after the version, else
 * the number of rows. */
static int64_t next_after(const struct hvd__changes *changes, int64_t row,
                          int64_t version)
{
    int64_t next = changes->rows[row].older;

    return changes->rows[next].version > version ? next : changes->nrows;
}

int64_t hvd__changes_count(const struct hvd__changes *changes, int64_t version)
{
    int64_t row = changes->nrows, n = 0;

    while ((row = next_after(changes, row, version)) < changes->nrows)
        n++;
    return n;
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

void hvd__changes_list(const struct hvd__changes *changes, int64_t version,
                       int64_t first, int64_t *rows)
{
    int64_t row = changes->nrows, n = 0;

    while ((row = next_after(changes, row, version)) < changes->nrows)
        rows[n++] = first + row;
    qsort(rows, (size_t)n, sizeof *rows, compare);
}
