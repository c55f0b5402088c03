/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - has the trained network write a text.
 */
#ifndef MODELS_SAMPLE_H
#define MODELS_SAMPLE_H

#include "data/text.h"
#include "options/options.h"

struct model; /* model.h */

/* Checks the prompt: all its characters must be in the vocabulary, and it must
 * not be empty. Without a prompt the sample continues from the first character
 * of the text. Returns PROBLEM with the text kept. */
int sample_check(const struct options *options, const struct text *text);

/*
 * Writes options->sample characters to out, which go on from the prompt; each
 * is drawn by its probability, sharpened by the temperature. values: the
 * variables of the trained model, which must be those of the options. The same
 * seed and values give the same text. PROBLEM with the text kept; some
 * characters may have been written.
 */
int sample_write(const struct options *options, const struct text *text,
                 const struct model *trained, float *const *values, FILE *out);

#endif
