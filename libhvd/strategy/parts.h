/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - which server has which part of which variable. It depends on the
 * variables and options alone, so that all ranks find the same without a
 * message.
 */
#ifndef HVD_STRATEGY_PARTS_H
#define HVD_STRATEGY_PARTS_H

#include <stdint.h>

#include "hvd_strategy.h"

/* A part of a variable, or all of it: some of its rows. */
struct hvd__part {
    int32_t variable;
    int32_t number; /* of the parts of this variable, from 0 */
    int32_t server; /* from 0 */
    int64_t offset; /* elements of the variable before it */
    int64_t count;  /* elements, 1 or more */
};

/* Returns into how many parts a variable is split; 0: it has no elements. */
int64_t hvd__parts_of(int32_t ndim, const int64_t *shape, int64_t part_bytes);

/* Writes the parts of a variable, [hvd__parts_of]. The first rows % n parts
 * have a row more than the others, as in tf.data's shards. */
void hvd__parts_split(int32_t variable, int32_t ndim, const int64_t *shape,
                      int64_t n, struct hvd__part *parts);

/* Gives each of n parts a server. loads: [servers], scratch. */
void hvd__parts_place(struct hvd__part *parts, int64_t n, int32_t servers,
                      hvd_placement placement, int64_t *loads);

#endif
