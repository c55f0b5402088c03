/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plans.h - plans of products that were found once. A program has many products
 * of the same shape, and is compiled again with each remedy.
 */
#ifndef IPU_TARGET_PLANS_H
#define IPU_TARGET_PLANS_H

#include "ipu_model.h"

struct ipu__choice {
    ipu_plan plan;
    ipu_cycles cycles;
    int64_t total; /* total of these cycles; 0: there is no plan */
    int64_t needs; /* room, of a tile */
};

/* The plans for one chip, whatever its memory. One thread uses them. */
struct ipu__plans;

/* NULL: there is no memory. */
struct ipu__plans *ipu__plans_new(void);
void ipu__plans_free(struct ipu__plans *plans);

/* The one for this room, borrowed until the next is added; NULL: it has to be
 * searched. product: without zeros. */
const struct ipu__choice *ipu__plans_find(const struct ipu__plans *plans,
                                          const ipu_product *product,
                                          int64_t room);

/* Keeps the result of a search with so much room. IPU_ERR_MEMORY. */
int ipu__plans_add(struct ipu__plans *plans, const ipu_product *product,
                   int64_t room, const struct ipu__choice *choice);

/* Returns the plan that was found for share, where the usual plan has room;
 * NULL: it is not known. */
const struct ipu__choice *ipu__plans_find_share(const struct ipu__plans *plans,
                                                const ipu_product *product,
                                                int64_t room, int64_t share);
int ipu__plans_add_share(struct ipu__plans *plans, const ipu_product *product,
                         int64_t room, int64_t share,
                         const struct ipu__choice *choice);

#endif
