/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - two profiles, figure by figure.
 */
#ifndef IPU_REPORT_COMPARE_H
#define IPU_REPORT_COMPARE_H

#include <jansson.h>

#include "report/profile.h"
#include "report/text.h"

/* What is compared: of the program, of a category of memory, of an op, of a
 * step by the name of what it makes. */
enum ipu__figure_of {
    IPU__OF_PROGRAM,
    IPU__OF_MEMORY,
    IPU__OF_OP,
    IPU__OF_STEP
};

/* In what a figure is counted. */
enum ipu__figure_unit { IPU__CYCLES, IPU__BYTES, IPU__NANOSECONDS, IPU__FLOPS };

struct ipu__figure {
    enum ipu__figure_of of;
    const char *name; /* borrowed from a profile, or static */
    enum ipu__figure_unit unit;
    double before, after;
    bool gone, come; /* there is none after, before */
};

/* A program that both have. */
struct ipu__pair {
    const struct ipu__program *before, *after;
    struct ipu__figure *figures; /* owned; what is of the program in a fixed
                                    order, the others by how much changed */
    int32_t nfigures;
};

struct ipu__comparison {
    const struct ipu_profile *before, *after;
    struct ipu__program pipelines[2]; /* own nothing: what is told of the runs
                                         of both, if both have one */
    struct ipu__pair *pairs; /* owned; that of pipelines is the first */
    int32_t npairs;
    int32_t nruns; /* of them, of pipelines: 0 or 1 */
};

/* The pair of both pipelines; 1, or 0: they have none, or a failure. */
int ipu__compare_runs(struct ipu__comparison *comparison,
                      struct ipu__pair *pair);

/* IPU_ERR_DATA if they have no program in common. The comparison must stay
 * where it is. */
int ipu__compare(const struct ipu_profile *before,
                 const struct ipu_profile *after,
                 struct ipu__comparison *comparison);
void ipu__comparison_free(struct ipu__comparison *comparison);

/* In percent of before; of nothing, 0 if there is nothing, else 100. */
double ipu__growth(const struct ipu__figure *figure);

/* "cycles" */
const char *ipu__figure_unit_name(enum ipu__figure_unit unit);

void ipu__print_comparison(const struct ipu__comparison *comparison,
                           struct ipu__text *text);
json_t *ipu__pack_comparison(const struct ipu__comparison *comparison);

#endif
