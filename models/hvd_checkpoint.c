/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_checkpoint - looks at checkpoints (docs/CHECKPOINTS.md) and other files
 * of tensors, and makes files of them.
 */
#include "inspect/inspect.h"
#include "options/line.h"
#include "options/values.h"
#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PATHS = 1000, EXIT_TROUBLE = 2 };

/* The words of the command line. */
struct words {
    struct inspect_request request; /* paths: those behind the command */
    const char *command;            /* NULL: none yet */
    const char *paths[MOST_PATHS];
};

static const struct argp_option table[] = {
    {"output", 'o', "FILE", 0, "average: the file to write", 0},
    {"tolerance", 't', "X", 0,
     "diff: the largest difference that counts as none (default: 0)", 0},
    {"dtype", 'd', "DTYPE", 0,
     "convert: the dtype of floating tensors: float16, bfloat16, float32 or "
     "float64 (default: as they are)",
     0},
    LINE_ROWS,
    {0}};

static const char *const dtype_names[] = {"float16", "bfloat16", "float32",
                                          "float64", NULL};
static const int dtypes[] = {SAFETENSORS_F16, SAFETENSORS_BF16, SAFETENSORS_F32,
                             SAFETENSORS_F64};

static int take(void *context, int key, const char *value)
{
    struct words *w = context;
    struct inspect_request *r = &w->request;
    int chosen = 0, status = 0;

    switch (key) {
    case 'o': return value_path("--output", value, &r->output);
    case 't': return value_real("--tolerance", value, 1, 1e300, &r->tolerance);
    case 'd':
        status = value_name("--dtype", value, dtype_names, &chosen);
        r->dtype = dtypes[chosen];
        return status;
    default:
        if (r->count == MOST_PATHS)
            return problem_set("there are more than %d paths", MOST_PATHS);
        if (w->command)
            w->paths[r->count++] = value;
        else
            w->command = value;
        return 0;
    }
}

static const struct command {
    const char *name, *usage;
    int least, most; /* paths */
    int (*run)(const struct inspect_request *request);
} commands[] = {
    {"ls", "ls FOLDER", 1, 1, inspect_list},
    {"show", "show PATH", 1, 1, inspect_show},
    {"diff", "diff PATH PATH", 2, 2, inspect_diff},
    {"average", "average PATH... -o FILE", 1, MOST_PATHS, inspect_average},
    {"convert", "convert PATH FILE", 2, 2, inspect_convert},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Returns the command with the right number of paths; NULL with the text
 * kept. */
static const struct command *choose(const struct words *w)
{
    for (int i = 0; i < COMMANDS && w->command; i++) {
        const struct command *c = &commands[i];

        if (strcmp(c->name, w->command) != 0)
            continue;
        if (w->request.count >= c->least && w->request.count <= c->most &&
            (c->run == inspect_average) == (w->request.output != NULL))
            return c;
        problem_set("usage: hvd-checkpoint %s", c->usage);
        return NULL;
    }
    problem_set("%s%s: the command is one of ls, show, diff, average, convert; "
                "see --help",
                w->command ? "there is no " : "nothing to do",
                w->command ? w->command : "");
    return NULL;
}

int main(int argc, char **argv)
{
    static struct words words = {
        .request = {.paths = words.paths, .dtype = -1}};
    const struct line line = {
        "hvd-checkpoint",
        "Look at checkpoints and other files of tensors. A PATH is a "
        ".safetensors or .npz file, or a folder, whose newest whole checkpoint "
        "is meant.\v"
        "Commands:\n"
        "  ls FOLDER                the checkpoints in it, and which are "
        "damaged\n"
        "  show PATH                what it says, and its tensors\n"
        "  diff PATH PATH           which tensors differ, and by how much\n"
        "  average PATH... -o FILE  the mean of the floating tensors\n"
        "  convert PATH FILE        to .safetensors or .npz\n\n"
        "The exit status of diff is 1 if something differs, and 2 if the files "
        "cannot be compared.",
        table,
        take,
        &words,
        "COMMAND PATH...",
        NULL};
    const struct command *command = NULL;
    int outcome = line_parse(&line, argc, argv), status;

    if (outcome == LINE_RUN) {
        command = choose(&words);
        outcome = command ? LINE_RUN : PROBLEM;
    }
    if (outcome != LINE_RUN)
        return line_settle(&line, outcome);
    status = command->run(&words.request);
    if (line_end(&line, status) != EXIT_SUCCESS)
        return command->run == inspect_diff ? EXIT_TROUBLE : EXIT_FAILURE;
    return status;
}
