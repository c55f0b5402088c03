/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.h - shared by the files about products: a product with the chip that
 * it is planned for, and the search for its plan.
 */
#ifndef IPU_TARGET_PRODUCT_H
#define IPU_TARGET_PRODUCT_H

#include <stdbool.h>

#include "target/cost.h"
#include "target/plans.h"

/* A room of a tile that is larger than any product needs. */
#define IPU__UNLIMITED (INT64_C(1) << 60)

/* Limits on a plan in addition to its room: temporary bytes, and cycles. */
struct ipu__bounds {
    int64_t least_bytes, most_bytes;
    int64_t least_cycles, most_cycles;
};

static const struct ipu__bounds ipu__no_bounds = {0, INT64_MAX, 0, INT64_MAX};

struct ipu__problem {
    const ipu_target *target;
    const ipu_product *product;
    struct ipu__product_unit unit;
    int64_t taps;      /* positions of the kernel */
    int64_t tiles;     /* tiles for one of the batch */
    int64_t rounds;    /* rounds of the batch */
    int64_t room;      /* bytes for fetched data and intermediate sums */
    int64_t sum_bytes; /* bytes of an incomplete sum */
    bool whole;        /* k is not sliced */
    struct ipu__bounds bounds;
};

/* Returns whether the choice is within the bounds. */
bool ipu__is_within(const struct ipu__bounds *b, const struct ipu__choice *c);

/* Sets *best to the cheapest grid for one of the batch, unless *best is
 * cheaper. */
void ipu__search_grids(const struct ipu__problem *p, struct ipu__choice *best);

/* Returns the cheapest way to make the product in the given room of a tile,
 * within bounds; its total is 0 if there is none. */
struct ipu__choice ipu__search_products(const ipu_target *target,
                                        const ipu_product *product,
                                        int64_t room,
                                        const struct ipu__bounds *bounds);

/* Sets *best to that way, from plans if it is known there; plans may be NULL.
 */
int ipu__find_plan(const ipu_target *target, const ipu_product *product,
                   int64_t room, struct ipu__plans *plans,
                   struct ipu__choice *best);

/* Sets *best to the plan for rooms: the proportion that the program allows, the
 * usual room, and the most that a tile has. */
int ipu__find_share(const ipu_target *target, const ipu_product *product,
                    const int64_t rooms[3], struct ipu__plans *plans,
                    struct ipu__choice *best);

#endif
