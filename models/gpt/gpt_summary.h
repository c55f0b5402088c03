/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt_summary.h - the settings and results of a run of char_gpt, and their
 * file.
 */
#ifndef MODELS_GPT_SUMMARY_H
#define MODELS_GPT_SUMMARY_H

#include "command/outcome.h"

/* One evaluation. */
struct gpt_evaluation {
    int64_t step;          /* steps made by then */
    double train_loss;     /* mean since the last one */
    double loss, accuracy; /* values for the validation text */
};

/* All figures are sums or averages over the ranks. */
struct gpt_summary {
    struct outcome outcome;
    int64_t text_count, train_count; /* characters */
    int characters;                  /* size of the vocabulary */
    int64_t evaluated;               /* characters of an evaluation */

    struct gpt_evaluation *history; /* owned */
    int evaluations;
    int64_t tokens; /* trained on, by all ranks */
};

/* Adds one evaluation to the history. PROBLEM: no memory. */
int gpt_summary_add(struct gpt_summary *summary,
                    const struct gpt_evaluation *evaluation);
void gpt_summary_fini(struct gpt_summary *summary);

double gpt_summary_speed(const struct gpt_summary *summary); /* tokens/s */

/* Writes it as JSON; the fields are listed in docs/MODELS.md. PROBLEM with the
 * text kept. */
int gpt_summary_write(const struct gpt_summary *summary, const char *path);

#endif
