/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changes.h - which rows of a part have changed since a version of it: what a
 * parameter server tells a worker that has that version.
 *
 * The rows form a list, the one that changed last first. So the rows that are
 * newer than a version are the beginning of the list, and finding them costs as
 * much as there are, however many rows the part has and however many workers
 * ask.
 */
#ifndef HVD_STRATEGY_CHANGES_H
#define HVD_STRATEGY_CHANGES_H

#include <stdint.h>

struct hvd__change {
    int64_t version;      /* in which the row changed last; 0: never */
    int64_t newer, older; /* rows; at the ends the number of rows */
};

struct hvd__changes {
    int64_t nrows;
    /* Owned; [nrows + 1]. The last is both ends of the list: its older row is
     * the newest of all. */
    struct hvd__change *rows;
};

/* Makes a list of rows that have never changed. */
int hvd__changes_init(struct hvd__changes *changes, int64_t nrows);
void hvd__changes_fini(struct hvd__changes *changes);

/* Notes that a row, from 0, changes in a version that is not older than any
 * noted before. */
void hvd__changes_note(struct hvd__changes *changes, int64_t row,
                       int64_t version);

/* Returns how many rows have changed after a version. */
int64_t hvd__changes_count(const struct hvd__changes *changes, int64_t version);
/* Writes these rows, each number plus first, ascending. */
void hvd__changes_list(const struct hvd__changes *changes, int64_t version,
                       int64_t first, int64_t *rows);

#endif
