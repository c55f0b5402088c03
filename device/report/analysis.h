/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analysis.h - what follows from a profile: what bounds the program, and what
 * would make it faster or smaller.
 */
#ifndef IPU_REPORT_ANALYSIS_H
#define IPU_REPORT_ANALYSIS_H

#include "report/profile.h"

enum {
    IPU__FINDING_TEXT = 320,
    IPU__MOST_FINDINGS = 12, /* of each sort */
    IPU__WORDS_TEXT = 512,
    IPU__MOST_WORDS = 7
};

/* What would help, and by how much at most. */
struct ipu__finding {
    const char *kind; /* "balance", "exchange", ...; static */
    int32_t step;     /* -1: none in particular */
    int32_t block;    /* -1: none in particular */
    int64_t cycles;   /* of a run, saved; negative: it costs so many */
    int64_t bytes;    /* that the fullest tile would hold less */
    char text[IPU__FINDING_TEXT];
};

struct ipu__findings {
    struct ipu__finding time[IPU__MOST_FINDINGS]; /* most cycles first */
    int32_t ntime;
    struct ipu__finding memory[IPU__MOST_FINDINGS]; /* most bytes first */
    int32_t nmemory;
};

/* Keep it among at most IPU__MOST_FINDINGS, of which the least goes. */
void ipu__note_finding(struct ipu__finding *list, int32_t *count, bool by_bytes,
                       const struct ipu__finding *finding);

void ipu__find_time(const struct ipu__program *program,
                    struct ipu__findings *findings);
int ipu__find_memory(const struct ipu__program *program,
                     struct ipu__findings *findings);

/* Both. */
int ipu__find(const struct ipu__program *program,
              struct ipu__findings *findings);

/* Floating-point operations a second that the chips could do, in the dtype
 * that most of the program's are in: "float32". */
double ipu__program_peak(const struct ipu__program *program,
                         const char **dtype);

/* Sentences: what bounds it, how much of the chip it uses, how that compares
 * with this machine. Returns how many. */
int32_t ipu__say(const struct ipu__program *program,
                 char (*sentences)[IPU__WORDS_TEXT]);

/* Bytes of all tiles, each when it is fullest, by category; the sum. */
int64_t ipu__sum_categories(const struct ipu__program *program,
                            int64_t bytes[IPU_NUM_CATEGORIES]);

#endif
