/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - what the trained network writes.
 */
#ifndef MODELS_SAMPLE_H
#define MODELS_SAMPLE_H

#include "data/text.h"
#include "options/options.h"

/* Every character of the prompt must be in the vocabulary, and it must not be
 * empty; if there is none, it is the text's first character. PROBLEM with the
 * text kept. */
int sample_check(const struct options *options, const struct text *text);

/*
 * Write options->sample characters to out, each drawn by its probability,
 * sharpened by the temperature, after the prompt. values: the variables of
 * the model. The same seed and values write the same. PROBLEM with the text
 * kept; some may have been written.
 */
int sample_write(const struct options *options, const struct text *text,
                 float *const *values, FILE *out);

#endif
