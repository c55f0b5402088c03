/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - a run of a pipeline as a whole: what its slots add up to, in words
 * and as JSON.
 */
#ifndef IPU_REPORT_RUN_H
#define IPU_REPORT_RUN_H

#include <jansson.h>

#include "report/analysis.h"
#include "report/profile.h"

/* Cycles of slots. A slot takes as long as the chip that takes longest for its
 * stages, and an update as long as the longest. */
struct ipu__slots_account {
    int32_t ipus, slots;
    int64_t stages, updates; /* of all slots, one after the other */
    /* Of all chips together, which 64 bits may not hold: */
    double busy;     /* stages */
    double empty;    /* chips that have nothing to do in a slot */
    double waiting;  /* chips that are done before the slot is */
    int64_t level;   /* what stages would be if those of a slot took equally
                        long */
    int32_t slowest; /* the chip whose stages take the most */
    int64_t slowest_cycles;
};

int ipu__account_slots(const struct ipu_profile *profile,
                       struct ipu__slots_account *account);

/* Does the profile tell of a pipeline? */
bool ipu__has_pipeline(const struct ipu_profile *profile);

/* Sentences on the run: how long it takes and for what, which stage is the
 * bottleneck, how much of the chips is idle and why, what the update is.
 * *count: how many. */
int ipu__say_run(const struct ipu_profile *profile,
                 char (*sentences)[IPU__WORDS_TEXT], int32_t *count);

/* The member "pipeline_run"; not made if nothing is known of the run. */
int ipu__run_pack(const struct ipu_profile *profile, json_t *document);
int ipu__run_unpack(const char *path, const json_t *document,
                    struct ipu_profile *profile);

#endif
