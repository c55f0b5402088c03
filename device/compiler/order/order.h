/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h - how steps are put into an order that needs less memory.
 *
 *     order.c     stretches of the program, one after the other
 *     lifetimes.c     what steps touch, and how long memory is needed for that
 *     region.c   a stretch as a problem: units that wait for each other, and
 *                 (region_cells.c) cells that live from the unit that makes
 *                 them to the last that uses them
 *     search.c    the problem's solution: from valley to valley (valley.c)
 *     frontier.c      what is alive where units are taken
 */
#ifndef IPU_COMPILER_ORDER_ORDER_H
#define IPU_COMPILER_ORDER_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "compiler/program.h"

enum { IPU__NONE = -1 };

/* Of an array. */
struct ipu__span {
    int32_t first, count;
};

struct ipu__cells {
    const struct ipu_executable *e; /* borrowed */
    /* Owned, as all arrays: [values] */
    int32_t *root;  /* of which it is a view; itself */
    int32_t *cell;  /* the value in whose cell it is; IPU__NONE: in no memory
                       that comes and goes */
    int32_t *birth; /* the step that makes its cell; -1: it is there before */
    int32_t *death; /* the last step that touches its cell; nsteps: the end */
    int64_t *alive; /* [steps + 1]: bytes in cells before each */
    /* [steps]: each value once, in entries */
    struct ipu__span *reads, *writes;
    int32_t *entries;
    int32_t nentries;
};

int ipu__cells_init(struct ipu__cells *cells,
                    const struct ipu_executable *executable);
void ipu__cells_fini(struct ipu__cells *cells);

/* Bytes that are in cells while a step runs, if none takes the place of
 * another. */
int64_t ipu__cells_during(const struct ipu__cells *cells, int32_t step);

/* Room for the stretches of a program. */
struct ipu__stretcher;

struct ipu__stretcher *ipu__stretcher_new(const struct ipu__cells *cells);
void ipu__stretcher_free(struct ipu__stretcher *stretcher);

/*
 * The steps from first to end, without it, in an order whose peak is as small
 * as can be found, as to steps [end - first]; in their own if that is not above
 * limit, or no other has a smaller peak. Returns whether (1 or 0) it is
 * another; peak: bytes.
 */
int ipu__stretch_order(struct ipu__stretcher *stretcher, int32_t first,
                       int32_t end, int64_t limit, int32_t *steps,
                       int64_t *peak);

/* A made cell can take the place of one that this unit is the last to use:
 * numbers in the unit's lists of both. */
struct ipu__reuse {
    int32_t made, used;
};

/* Lists begin there in the problem's arrays. */
struct ipu__unit {
    int32_t uses, nuses;     /* cells */
    int32_t makes, nmakes;   /* cells that outlive it */
    int32_t reuses, nreuses; /* of the same size, best first */
    int32_t preds, npreds;   /* units that must come before, ascending */
    int32_t succs, nsuccs;   /* ... after */
    int64_t inside;          /* bytes alive only while it runs */
};

/* Units are numbered in an order in which they can run. */
struct ipu__order {
    struct ipu__unit *units; /* owned, as all arrays */
    int32_t nunits, ncells;
    int32_t *uses, *makes, *preds, *succs;
    struct ipu__reuse *reuses;
    int64_t *bytes; /* [cells] */
    int32_t *users; /* [cells]: how many units */
    bool *stays;    /* [cells]: it is needed after all units */
    int64_t before; /* bytes alive before the first */
    int64_t after;  /* ... after the last */
    int64_t around; /* ... all the time, and in no cell */
};

/*
 * An order of the units, best, [units], with a peak as small as can be found;
 * as they are numbered where that is not above limit, which something else
 * needs anyway, or no other has a smaller peak. IPU_ERR_MEMORY;
 * IPU_ERR_CALLBACK if the compilation is to stop.
 */
int ipu__order_search(const struct ipu__order *order, int64_t limit,
                      struct ipu__progress *progress, int32_t *best,
                      int64_t *peak);

#endif
