/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analysis.h - conclusions from a profile: the limits of the program, and
 * changes that would make it faster or smaller.
 */
#ifndef IPU_REPORT_ANALYSIS_H
#define IPU_REPORT_ANALYSIS_H

#include "report/profile.h"

enum {
    IPU__FINDING_TEXT = 320,
    IPU__MOST_FINDINGS = 12, /* findings of each kind */
    IPU__WORDS_TEXT = 512,
    IPU__MOST_WORDS = 7
};

/* A change that would help, and the most that it could save. */
struct ipu__finding {
    const char *kind; /* "balance", "exchange", ...; static */
    int32_t step;     /* -1: no particular step */
    int32_t block;    /* -1: no particular block */
    int64_t cycles;   /* saved per run; negative: cost */
    int64_t bytes;    /* saved on the fullest tile */
    char text[IPU__FINDING_TEXT];
};

struct ipu__findings {
    struct ipu__finding time[IPU__MOST_FINDINGS]; /* most cycles first */
    int32_t ntime;
    struct ipu__finding memory[IPU__MOST_FINDINGS]; /* most bytes first */
    int32_t nmemory;
};

/* Adds a finding to a list of at most IPU__MOST_FINDINGS; the smallest one
 * gives way. */
void ipu__note_finding(struct ipu__finding *list, int32_t *count, bool by_bytes,
                       const struct ipu__finding *finding);

void ipu__find_time(const struct ipu__program *program,
                    struct ipu__findings *findings);
int ipu__find_memory(const struct ipu__program *program,
                     struct ipu__findings *findings);

/* Finds changes that would save time, and changes that would save memory. */
int ipu__find(const struct ipu__program *program,
              struct ipu__findings *findings);

/* Returns the floating-point operations per second that the chips could
 * reach in the dtype of most of the program's operations; writes its name,
 * "float32". */
double ipu__program_peak(const struct ipu__program *program,
                         const char **dtype);

/* Writes sentences about what limits the program, how much of the chip it uses,
 * and how that compares with this machine. Returns their number. */
int32_t ipu__say(const struct ipu__program *program,
                 char (*sentences)[IPU__WORDS_TEXT]);

/* Sums the bytes of all tiles, each when it is fullest, by category. Returns
 * the sum of all categories. */
int64_t ipu__sum_categories(const struct ipu__program *program,
                            int64_t bytes[IPU_NUM_CATEGORIES]);

#endif
