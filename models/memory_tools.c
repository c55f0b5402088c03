/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_tools - trains one network with each of the device's memory tools, and
 * prints the memory that each takes on the chip, and how close the weights are
 * to those of the plain program. docs/MEMORY.md describes the tools.
 */
#include "memory/training.h"

#include "options/line.h"
#include "options/values.h"
#include "output/device_problem.h"
#include "output/problem.h"
#include "output/profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- options */

struct options {
    struct training_settings settings;
    bool chosen[TOOLS]; /* all false: all tools */
    const char *profile;
};

enum { ROWS = 256, WIDTH, LAYERS, UPDATES, PARTS, RATE, SEED, TARGET, PROFILE };

static const struct argp_option table[] = {
    {"rows", ROWS, "N", 0, "rows of a batch, which makes an update (2048)", 0},
    {"width", WIDTH, "N", 0, "width of the layers (128)", 0},
    {"layers", LAYERS, "N", 0, "number of layers: 2 to 64 (12)", 0},
    {"updates", UPDATES, "N", 0, "number of updates (10)", 0},
    {"parts", PARTS, "N", 0,
     "mini-batches that are accumulated, replicas, chips and stages (4)", 0},
    {"lr", RATE, "X", 0, "learning rate (0.001)", 0},
    {"seed", SEED, "N", 0, "seed of weights and batches (1)", 0},
    {"target", TARGET, "NAME", 0,
     "chip: mk1, mk2, bow, c600, or a JSON file (mk2)", 0},
    LINE_PROFILE_ROW(PROFILE),
    LINE_ROWS,
    {0}};

static int take_target(const char *text, ipu_target *target)
{
    ipu_target_init(target, sizeof *target);
    if ((strstr(text, ".json") ? ipu_target_load(text, target)
                               : ipu_target_find(text, target)) < 0)
        return problem_set("--target: %s", ipu_last_error());
    return 0;
}

static int take_tool(const char *text, bool *chosen)
{
    for (int i = 0; i < TOOLS; i++)
        if (strcmp(text, training_tool_name((enum tool)i)) == 0) {
            chosen[i] = true;
            return 0;
        }
    return problem_set("tool '%s': --help names those that there are", text);
}

static int take_option(void *context, int key, const char *value)
{
    struct options *o = context;
    struct training_settings *s = &o->settings;
    int64_t seed = 0;
    int status;

    switch (key) {
    case ROWS: return value_int("--rows", value, 1, 1 << 20, &s->rows);
    case WIDTH: return value_int("--width", value, 1, 1 << 14, &s->width);
    case LAYERS: return value_int("--layers", value, 2, 64, &s->layers);
    case UPDATES: return value_int("--updates", value, 1, 1 << 30, &s->updates);
    case PARTS: return value_int("--parts", value, 1, 64, &s->parts);
    case RATE: return value_real("--lr", value, 0, HUGE_VAL, &s->rate);
    case TARGET: return take_target(value, &s->target);
    case PROFILE: return value_path("--profile", value, &o->profile);
    case SEED:
        status = value_whole("--seed", value, 0, INT64_MAX, &seed);
        s->seed = (uint64_t)seed;
        return status;
    default: return take_tool(value, o->chosen);
    }
}

/* Writes the tools for the help, each in a line. */
static void describe_tools(char *text, size_t size)
{
    size_t at = (size_t)snprintf(
        text, size,
        "Train a network of dense layers with each tool (all, if none is "
        "named), and print memory and time on the chip, and how near the "
        "weights come to those of the plain program.\vTools:\n");

    for (int i = 0; i < TOOLS && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "  %-12s %s\n",
                               training_tool_name((enum tool)i),
                               training_tool_text((enum tool)i));
    if (at < size)
        snprintf(text + at, size - at,
                 "\nExit status: 0 trained, 1 failed, 64 wrong command line.");
}

/* ----------------------------------------------------------------- results */

/* Prints the compiler's estimate for the tool, and its error. */
static void print_told(const struct training_result *r)
{
    if (r->told_bytes == 0) {
        printf(" %10s %7s %9s %7s", "-", "", "-", "");
        return;
    }
    printf(" %10" PRId64 " %+6.1f%% %9.4f %+6.1f%%", r->told_bytes,
           100 * ((double)r->tile_bytes / (double)r->told_bytes - 1),
           r->told_ms, 100 * (r->ms / r->told_ms - 1));
}

static void print_weights(const struct training_result *plain,
                          const struct training_result *r)
{
    double most = 0;

    if (!plain->weights) {
        printf("  -\n");
        return;
    }
    for (int64_t i = 0; i < r->nweights; i++)
        most =
            fmax(most, fabs((double)r->weights[i] - (double)plain->weights[i]));
    if (memcmp(r->weights, plain->weights,
               (size_t)r->nweights * sizeof *r->weights) == 0)
        printf("  the same bits\n");
    else
        printf("  within %.1e\n", most);
}

static int run_tool(const struct training_settings *s, enum tool tool,
                    struct training_result *plain)
{
    struct training_result result;

    if (training_run(s, tool, &result) < 0) {
        free(result.weights);
        return problem_set("%s: %s", training_tool_name(tool),
                           ipu_last_error());
    }
    printf("%-12s %12" PRId64 " %12" PRId64 " %12" PRId64 " %10.4f %9.6f",
           training_tool_name(tool), result.tensor_bytes, result.tile_bytes,
           result.remote_bytes, result.ms, result.loss);
    print_told(&result);
    print_weights(plain, &result);
    fflush(stdout);
    if (tool == TOOL_PLAIN)
        *plain = result;
    else
        free(result.weights);
    return 0;
}

/* Runs the tools that were chosen, or all. */
static int run_tools(const struct training_settings *s, const bool *chosen)
{
    struct training_result plain = {.weights = NULL};
    bool any = false;
    int status = 0;

    for (int i = 0; i < TOOLS; i++)
        any |= chosen[i];
    printf("%-12s %12s %12s %12s %10s %9s %10s %7s %9s %7s  %s\n", "tool",
           "tile: tensors", "tile: all", "beside chip", "ms/update", "loss",
           "told: tile", "is", "told: ms", "is", "weights");
    for (int i = 0; i < TOOLS && !status; i++)
        if (chosen[i] || (!any && (i != TOOL_PIPELINE || s->parts > 1)))
            status = run_tool(s, (enum tool)i, &plain);
    free(plain.weights);
    return status;
}

/* Does the same with a profile of each. */
static int run_profiled(struct options *o)
{
    struct training_settings *s = &o->settings;
    int status;

    if (profile_check(o->profile) < 0)
        return PROBLEM;
    if (ipu_profile_new("memory_tools", &s->profile) < 0)
        return device_problem();
    status = run_tools(s, o->chosen);
    if (status == 0)
        status = profile_put(o->profile, s->profile);
    ipu_profile_free(s->profile);
    return status;
}

/* Checks that a pipeline gets two mini-batches a stage, and that each chip or
 * stage gets a layer. */
static int check_options(const struct options *o)
{
    const struct training_settings *s = &o->settings;
    bool any = false;

    for (int i = 0; i < TOOLS; i++)
        any |= o->chosen[i];
    if (s->rows % (2 * s->parts))
        return problem_set("--rows %d: it must be a multiple of twice --parts "
                           "%d",
                           s->rows, s->parts);
    if (s->parts > s->layers &&
        (!any || o->chosen[TOOL_CHIPS] || o->chosen[TOOL_PIPELINE]))
        return problem_set("--parts %d: there are only %d --layers", s->parts,
                           s->layers);
    return LINE_RUN;
}

int main(int argc, char **argv)
{
    struct options o = {.settings = {.rows = 2048,
                                     .width = 128,
                                     .layers = 12,
                                     .updates = 10,
                                     .parts = 4,
                                     .rate = 0.001,
                                     .seed = 1}};
    char doc[2000];
    const struct line line = {"memory_tools", doc, table, take_option, &o,
                              "[TOOL...]",    NULL};
    int status;

    describe_tools(doc, sizeof doc);
    ipu_target_init(&o.settings.target, sizeof o.settings.target);
    status = line_parse(&line, argc, argv);
    if (status == LINE_RUN)
        status = check_options(&o);
    if (status != LINE_RUN)
        return line_settle(&line, status);
    return line_end(&line, o.profile ? run_profiled(&o)
                                     : run_tools(&o.settings, o.chosen));
}
