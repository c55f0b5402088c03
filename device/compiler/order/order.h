/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h - steps in an order that needs less memory.
 *
 *     order.c             takes the sections of the program one by one
 *     lifetimes.c         the accesses of steps, and the lifetime of the memory
 *                         for them
 *     section.c           a section as a problem: units that wait for each
 *                         other, and (section_storages.c) storages that live
 *                         from the unit that makes them to the last user
 *     search.c            solves a problem
 *     valley.c            decides which units come next
 *     front.c             counts what is alive after the units that have run
 *
 * A storage is the memory of a value and of all values that are views of it. A
 * section is the steps between two host calls. A unit is a step, with the steps
 * that come right before it.
 */
#ifndef IPU_COMPILER_ORDER_ORDER_H
#define IPU_COMPILER_ORDER_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "compiler/program.h"

/* A part of an array. */
struct ipu__span {
    int32_t first, count;
};

struct ipu__lifetimes {
    const struct ipu_executable *e; /* borrowed */
    /* Owned, as all arrays: [values] */
    int32_t *root;    /* the value of which it is a view; itself */
    int32_t *storage; /* the root of its storage; IPU__NONE: it has no temporary
                         memory */
    int32_t *birth;   /* the step that makes the storage; -1: it is there before
                         the first */
    int32_t *death;   /* the last step that touches it; nsteps: the end */
    int64_t *alive;   /* [steps + 1]: bytes in storages before each */
    /* [steps]: each value once, in entries */
    struct ipu__span *reads, *writes;
    int32_t *entries;
    int32_t nentries;
};

int ipu__lifetimes_init(struct ipu__lifetimes *lifetimes,
                        const struct ipu_executable *executable);
void ipu__lifetimes_fini(struct ipu__lifetimes *lifetimes);

/* Returns the bytes in storages while a step runs, if none takes the place of
 * another. */
int64_t ipu__bytes_during(const struct ipu__lifetimes *lifetimes, int32_t step);

/* Room in which the sections of a program become problems. */
struct ipu__sections;

struct ipu__sections *ipu__sections_new(const struct ipu__lifetimes *lifetimes);
void ipu__sections_free(struct ipu__sections *sections);

/*
 * Puts the steps from first to end, without end, into an order whose peak is as
 * small as can be found: steps [end - first]. They keep their order if its peak
 * is not above limit, or if no other order has a smaller one. Returns 1 if the
 * order has changed, 0 if not; peak: bytes.
 */
int ipu__section_order(struct ipu__sections *sections, int32_t first,
                       int32_t end, int64_t limit, int32_t *steps,
                       int64_t *peak);

/* A storage that a unit makes can take the place of one that the unit is the
 * last to use: numbers in the unit's lists of both. */
struct ipu__reuse {
    int32_t made, used;
};

/* The first of each list is an index in the problem's arrays. */
struct ipu__order_unit {
    int32_t uses, nuses;     /* storages */
    int32_t makes, nmakes;   /* storages that outlive it */
    int32_t reuses, nreuses; /* storages of the same size, best first */
    int32_t preds, npreds;   /* units that must come before, ascending */
    int32_t succs, nsuccs;   /* units that must come after */
    int64_t inside;          /* bytes alive only while it runs */
};

/* Units are numbered in an order in which they can run. */
struct ipu__order_problem {
    struct ipu__order_unit *units; /* owned, as all arrays */
    int32_t nunits, nstorages;
    int32_t *uses, *makes, *preds, *succs;
    struct ipu__reuse *reuses;
    int64_t *bytes; /* [storages] */
    int32_t *users; /* [storages]: how many units */
    bool *stays;    /* [storages]: it is needed after all units */
    int64_t before; /* bytes alive before the first */
    int64_t after;  /* bytes alive after the last */
    int64_t around; /* bytes alive all the time, in none of the storages */
};

/*
 * Finds an order of the units, best, [units], with a peak as small as can be
 * found. They stay as they are numbered if the peak of that is not above limit,
 * which something else needs anyway, or no other order has a smaller one.
 * Returns IPU_ERR_MEMORY; IPU_ERR_CALLBACK if the compilation is to stop.
 */
int ipu__order_search(const struct ipu__order_problem *problem, int64_t limit,
                      struct ipu__progress *progress, int32_t *best,
                      int64_t *peak);

#endif
