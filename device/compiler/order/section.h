/* SPDX-License-Identifier: Apache-2.0 */
/*
 * section.h - how section.c and section_storages.c make a problem of a section.
 */
#ifndef IPU_COMPILER_ORDER_SECTION_H
#define IPU_COMPILER_ORDER_SECTION_H

#include "compiler/order/order.h"

/* A step, or the fence (section.c). */
struct ipu__section_member {
    int32_t step; /* IPU__NONE: the fence */
    struct ipu__span preds;
    int32_t nsuccs;
    int32_t succ;  /* one of them */
    int32_t owner; /* the last member of its unit */
    int32_t next;  /* the next member of the unit, ascending; IPU__NONE */
    int32_t unit;
};

struct ipu__section {
    int32_t first, end; /* steps */
};

struct ipu__sections {
    const struct ipu__lifetimes *lifetimes; /* borrowed */
    struct ipu__section_member *members; /* [steps + 1]; owned, as all arrays */
    int32_t nmembers;
    int32_t *member_of; /* [steps] */
    int32_t *units;     /* [units]: in their order */
    int32_t *owners;    /* [units]: members */
    int32_t *preds;     /* predecessors of members */
    int32_t npreds, pred_capacity;
    int32_t *stamp;   /* [members]: the last that it was made a pred of */
    int32_t *writer;  /* [values]: the last member that wrote it */
    int32_t *readers; /* [values]: the last entry that has read it since */
    int32_t *reader;  /* [entries]: the member that reads */
    int32_t *before; /* [entries]: the entry before that reads the same value */
    int32_t *number; /* [values]: number of its storage in the problem */
    struct ipu__order_problem problem;
    int32_t reuse_capacity;
};

/* Adds the storages that a step uses and makes to those of its unit. */
void ipu__add_storages(struct ipu__sections *sections,
                       struct ipu__order_unit *unit, int32_t step,
                       const struct ipu__section *section);

/*
 * Call it once the storages of all units are known. Of the storages that a unit
 * makes, it keeps only those that outlive the unit, and appends to its reuses
 * those that may take the place of an input of its last step (IPU__NONE: it has
 * none).
 */
int ipu__add_reuses(struct ipu__sections *sections,
                    struct ipu__order_unit *unit, int32_t step);

#endif
