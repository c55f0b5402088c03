/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.h - a stretch of steps that becomes a problem.
 */
#ifndef IPU_COMPILER_ORDER_REGION_H
#define IPU_COMPILER_ORDER_REGION_H

#include "compiler/order/order.h"

/* A step; or the fence. */
struct ipu__member {
    int32_t step; /* IPU__NONE: the fence */
    struct ipu__span preds;
    int32_t nsuccs;
    int32_t succ;  /* one of them */
    int32_t owner; /* the member of whose unit it is, as its last; itself */
    int32_t next;  /* member of the unit, ascending; IPU__NONE */
    int32_t unit;
};

struct ipu__stretch {
    int32_t first, end; /* steps */
};

struct ipu__stretcher {
    const struct ipu__cells *cells; /* borrowed */
    struct ipu__member *members;    /* [steps + 1]; owned, as all arrays */
    int32_t nmembers;
    int32_t *member_of; /* [steps] */
    int32_t *units;     /* [units]: in their order */
    int32_t *owners;    /* [units]: members */
    int32_t *preds;     /* of members */
    int32_t npreds, pred_capacity;
    int32_t *stamp;   /* [members]: the last of which it was made a pred */
    int32_t *writer;  /* [values]: the last member that wrote it */
    int32_t *readers; /* [values]: the last entry since then; */
    int32_t *reader;  /* [entries]: ... the member; */
    int32_t *before;  /* [entries]: ... the entry before of the same value */
    int32_t *number;  /* [values]: of its cell in the problem */
    struct ipu__order order;
    int32_t reuse_capacity;
};

/* The cells that a step uses and makes, to those of its unit. */
void ipu__add_cells(struct ipu__stretcher *stretcher, struct ipu__unit *unit,
                    int32_t step, const struct ipu__stretch *stretch);

/*
 * Once the cells of all units are there: keep of what one makes only what
 * outlives it; and note which may take the place of an input of its last step,
 * IPU__NONE: it has none. Reuses are appended.
 */
int ipu__add_reuses(struct ipu__stretcher *stretcher, struct ipu__unit *unit,
                    int32_t step);

#endif
