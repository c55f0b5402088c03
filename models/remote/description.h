/* SPDX-License-Identifier: Apache-2.0 */
/*
 * description.h - the description of a training, which a client sends to the
 * servers as JSON:
 *
 *     {"format": 1,
 *      "program": "mnist",
 *      "options": {"seed": "7", "global-batch": "128", "serial": true},
 *      "files": {"training.ipu": 9120, "evaluation.ipu": 4310,
 *                "weights": 407432},
 *      "results": ["summary", "losses"],
 *      "terminal": {"columns": 80, "colour": true}}
 *
 * Options are those of the command line that say what is trained, on which
 * data, and how: their values are read and checked by the program that the
 * server starts, as if somebody had typed them. No option that names a file to
 * write, or another way to start, is among them. "files" are the sizes of the
 * files that follow: the graphs and first weights of the network (program.h),
 * and the text to learn. "terminal" is missing if the client has none.
 *
 * What a server reads has passed every check: unknown keys, wrong types and
 * numbers out of range are refused.
 */
#ifndef MODELS_REMOTE_DESCRIPTION_H
#define MODELS_REMOTE_DESCRIPTION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum remote_file {
    REMOTE_FILE_TRAINING,
    REMOTE_FILE_EVALUATION,
    REMOTE_FILE_WEIGHTS,
    REMOTE_FILE_TEXT, /* may be missing */
    REMOTE_FILES
};

enum remote_result {
    REMOTE_RESULT_SUMMARY,
    REMOTE_RESULT_WEIGHTS,
    REMOTE_RESULT_LOSSES,
    REMOTE_RESULTS
};

/* The names in the description, which are also those of the files in the
 * worker's folder. */
extern const char *const remote_file_names[REMOTE_FILES];
extern const char *const remote_result_names[REMOTE_RESULTS];

enum { REMOTE_MOST_OPTIONS = 64 };

struct remote_option {
    const char *name;
    const char *value; /* NULL: it has none */
};

struct remote_description {
    const char *program; /* "mnist" or "char_gpt" */
    int noptions;
    struct remote_option options[REMOTE_MOST_OPTIONS];
    int64_t files[REMOTE_FILES]; /* bytes; -1: it does not come */
    bool results[REMOTE_RESULTS];
    int columns; /* of the client's terminal; 0: it has none */
    bool colour;
    json_t *root; /* owned; has the texts of a description that was read */
};

/* Returns whether a client may send an option of the command line. */
bool remote_option_is_sent(const char *name);

/* Reads a description. After a failure, PROBLEM with the text kept, there is
 * nothing to free. */
int remote_description_read(const void *text, size_t bytes,
                            struct remote_description *description);

/* Writes a description. The caller frees the text; NULL: PROBLEM's text is
 * kept. */
char *remote_description_write(const struct remote_description *description);

void remote_description_fini(struct remote_description *description);

#endif
