/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - the functions of char_gpt (training_run.h) that print or write
 * what a run trains on and reaches.
 */
#ifndef MODELS_GPT_REPORT_H
#define MODELS_GPT_REPORT_H

#include "command/training_run.h"
#include "data/text.h"

/* The data of a run. */
struct gpt {
    struct text text;
    struct hvd_model *network; /* owned; NULL: not made yet */
};

void gpt_report_head(struct training_run *run);
void gpt_place(const struct training_run *run, char *text, size_t size);
void gpt_evaluation(const struct outcome_part *part, char *text, size_t size);
void gpt_report_results(struct training_run *run);
json_t *gpt_settings(const struct training_run *run);
json_t *gpt_results(const struct training_run *run);

#endif
