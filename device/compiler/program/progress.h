/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - reports the progress of a compilation to the caller, who may
 * stop it.
 */
#ifndef IPU_COMPILER_PROGRAM_PROGRESS_H
#define IPU_COMPILER_PROGRAM_PROGRESS_H

#include "ipu.h"

struct ipu__progress {
    ipu_progress_fn fn; /* NULL: no reports */
    void *context;      /* borrowed */
    const char *phase;  /* static */
    int64_t next;       /* value of done for the next report */
};

/*
 * Reports to the caller that done of total is done in a phase: at the phase's
 * beginning, when a hundredth more is done, and at its end. Returns
 * IPU_ERR_CALLBACK if the compilation is to stop.
 */
int ipu__progress(struct ipu__progress *progress, const char *phase,
                  int64_t done, int64_t total);

#endif
