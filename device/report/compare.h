/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - compares two profiles, figure by figure.
 */
#ifndef IPU_REPORT_COMPARE_H
#define IPU_REPORT_COMPARE_H

#include <jansson.h>

#include "report/profile.h"
#include "report/text.h"

/* The object that a figure describes: the program, a category of memory, an op,
 * or a step, named by the tensor that it makes. */
enum ipu__figure_of {
    IPU__OF_PROGRAM,
    IPU__OF_MEMORY,
    IPU__OF_OP,
    IPU__OF_STEP
};

/* The unit of a figure. */
enum ipu__figure_unit { IPU__CYCLES, IPU__BYTES, IPU__NANOSECONDS, IPU__FLOPS };

struct ipu__figure {
    enum ipu__figure_of of;
    const char *name; /* borrowed from a profile, or static */
    enum ipu__figure_unit unit;
    double before, after;
    bool gone, come; /* it is only in the first; it is only in the second */
};

/* A program that both profiles have. */
struct ipu__pair {
    const struct ipu__program *before, *after;
    /* owned; figures of the program in a fixed order, the others by their
     * change */
    struct ipu__figure *figures;
    int32_t nfigures;
    bool whole; /* one is, or both are, all programs of a profile, joined */
};

struct ipu__comparison {
    const struct ipu_profile *before, *after;
    struct ipu__program pipelines[2]; /* borrowed; the runs of both pipelines,
                                         if both profiles have one */
    struct ipu__program wholes[2];    /* their steps are owned, and borrow */
    /* owned; those of the pipelines, or of all programs, come first */
    struct ipu__pair *pairs;
    int32_t npairs;
    int32_t nruns; /* pairs that are not of two programs */
};

/* Adds the pair of both pipelines. Returns 1, 0 if there are none, or a
 * failure. */
int ipu__compare_runs(struct ipu__comparison *comparison,
                      struct ipu__pair *pair);

/* Returns how often a run executes a program; 0: it is the body of a loop. */
int64_t ipu__executions(const struct ipu_profile *profile,
                        const struct ipu__program *program);

/* Joins all programs of a profile. The caller frees whole->steps, and the
 * profile must outlive it. */
int ipu__join_programs(const struct ipu_profile *profile,
                       struct ipu__program *whole);

enum { IPU__WHOLE_SENTENCES = 4, IPU__WHOLE_TEXT = 256 };

/* Says how both profiles are to be read side by side, and what of them has no
 * counterpart: IPU__WHOLE_SENTENCES sentences. */
void ipu__say_whole(const struct ipu__comparison *comparison,
                    const struct ipu__pair *pair,
                    char (*sentences)[IPU__WHOLE_TEXT]);

/* Returns the growth in percent of before; if before is 0, 0 without a change
 * and else 100. */
double ipu__growth(const struct ipu__figure *figure);

/* Returns the unit's name: "cycles". */
const char *ipu__figure_unit_name(enum ipu__figure_unit unit);

void ipu__print_comparison(const struct ipu__comparison *comparison,
                           struct ipu__text *text);
json_t *ipu__pack_comparison(const struct ipu__comparison *comparison);

#endif
