/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - a run of a pipeline as a whole: the sum of its slots, as sentences
 * and as JSON.
 */
#ifndef IPU_REPORT_RUN_H
#define IPU_REPORT_RUN_H

#include <jansson.h>

#include "report/analysis.h"
#include "report/profile.h"

/* The cycles of slots. A slot takes as long as the stages of its slowest chip,
 * and an update as long as the longest one. */
struct ipu__slots_account {
    int32_t ipus, slots;
    int64_t stages, updates; /* sums over all slots, one after the other */
    /* Sums over all chips, which 64 bits may not hold: */
    double busy;    /* cycles of stages */
    double empty;   /* cycles of chips without work in a slot */
    double waiting; /* cycles of chips that finish before the slot ends */
    int64_t level;  /* cycles of stages, if those of a slot took equally long */
    int32_t slowest; /* chip whose stages take longest */
    int64_t slowest_cycles;
};

int ipu__account_slots(const struct ipu_profile *profile,
                       struct ipu__slots_account *account);

/* Returns true if the profile has a pipeline. */
bool ipu__has_pipeline(const struct ipu_profile *profile);

/* Writes *count sentences on the run: its time and its parts, the stage that is
 * the bottleneck, the idle share of the chips and its reason, and the update.
 */
int ipu__say_run(const struct ipu_profile *profile,
                 char (*sentences)[IPU__WORDS_TEXT], int32_t *count);

/* Adds the member "pipeline_run", unless the run is unknown. */
int ipu__run_pack(const struct ipu_profile *profile, json_t *document);
int ipu__run_unpack(const char *path, const json_t *document,
                    struct ipu_profile *profile);

#endif
