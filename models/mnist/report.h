/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - the functions of mnist (training_run.h) that print or write what a
 * run trains on and reaches. They read the outcome alone.
 */
#ifndef MODELS_MNIST_REPORT_H
#define MODELS_MNIST_REPORT_H

#include "command/training_run.h"

void mnist_report_head(struct training_run *run);
void mnist_place(const struct training_run *run, char *text, size_t size);
void mnist_evaluation(const struct outcome_part *part, char *text, size_t size);
void mnist_report_results(struct training_run *run);
json_t *mnist_settings(const struct training_run *run);
json_t *mnist_results(const struct training_run *run);

#endif
