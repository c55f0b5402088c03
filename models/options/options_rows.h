/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_rows.h - the options of mnist and char_gpt as argp has them: keys,
 * values and help. options.c reads them.
 */
#ifndef MODELS_OPTIONS_ROWS_H
#define MODELS_OPTIONS_ROWS_H

#include <argp.h>

enum {
    KEY_DATA = 'd',
    KEY_EPOCHS = 'e',
    KEY_STEPS = 's',
    KEY_BATCH = 'b',
    KEY_LR = 256,
    KEY_OPTIMIZER,
    KEY_DECAY,
    KEY_CLIP,
    KEY_ACCUMULATE,
    KEY_SEED,
    KEY_EVAL,
    KEY_CHECK,
    KEY_SUMMARY,
    KEY_WEIGHTS,
    KEY_LOAD,
    KEY_PROFILE,
    KEY_SERIAL,
    KEY_COMPRESSION,
    KEY_THREADS,
    KEY_MODEL,
    KEY_TRAIN,
    KEY_TEST,
    KEY_TEXT,
    KEY_LAYERS,
    KEY_HEADS,
    KEY_WIDTH,
    KEY_CONTEXT,
    KEY_DROPOUT,
    KEY_TIE,
    KEY_WARMUP,
    KEY_WINDOWS,
    KEY_SAMPLE,
    KEY_TEMPERATURE,
    KEY_PROMPT,
    KEY_STAGES,
    KEY_SCHEDULE,
    KEY_REPLICAS,
    KEY_RECOMPUTE,
    KEY_PROPORTION
};

/* An option, and the programs that have it: bits such as 1 << OPTIONS_MNIST. */
struct options_row {
    unsigned programs;
    struct argp_option option;
};

enum { OPTIONS_ROWS_MOST = 60 };

extern const struct options_row options_rows[];
extern const int options_nrows; /* number of rows, at most OPTIONS_ROWS_MOST */

#endif
