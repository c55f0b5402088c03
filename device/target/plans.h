/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plans.h - plans of products, kept after a search. A program has many products
 * of the same shape, and is compiled again with each remedy.
 */
#ifndef IPU_TARGET_PLANS_H
#define IPU_TARGET_PLANS_H

#include "ipu_model.h"

struct ipu__choice {
    ipu_plan plan;
    ipu_cycles cycles;
    int64_t total; /* total of these cycles; 0: there is no plan */
    int64_t needs; /* the room of a tile that it needs */
};

/* The plans for one chip, whatever its memory. Only one thread may use them. */
struct ipu__plans;

/* Returns NULL without memory. */
struct ipu__plans *ipu__plans_new(void);
void ipu__plans_free(struct ipu__plans *plans);

/* Returns the plan for this room, borrowed until the next is added; NULL: it
 * must be searched for. product has no zeros. */
const struct ipu__choice *ipu__plans_find(const struct ipu__plans *plans,
                                          const ipu_product *product,
                                          int64_t room);

/* Keeps the result of a search with the given room. Returns IPU_ERR_MEMORY on
 * failure. */
int ipu__plans_add(struct ipu__plans *plans, const ipu_product *product,
                   int64_t room, const struct ipu__choice *choice);

/* Returns the plan found for share where the usual plan has room; NULL: it is
 * unknown. */
const struct ipu__choice *ipu__plans_find_share(const struct ipu__plans *plans,
                                                const ipu_product *product,
                                                int64_t room, int64_t share);
int ipu__plans_add_share(struct ipu__plans *plans, const ipu_product *product,
                         int64_t room, int64_t share,
                         const struct ipu__choice *choice);

#endif
