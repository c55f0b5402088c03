/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_tools - trains one network with each of the device's memory tools, and
 * prints the memory that each takes on the chip, and how close the weights are
 * to those of the plain program. docs/MEMORY.md describes the tools.
 */
#include "memory/training.h"

#include "options/line.h"
#include "output/device_problem.h"
#include "output/problem.h"
#include "output/profile.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    struct training_settings settings;
    bool chosen[TOOLS]; /* all false: all tools */
    const char *target, *profile;
};

static int take_tool(void *context, int key, const char *text)
{
    struct options *o = context;

    (void)key;
    for (int i = 0; i < TOOLS; i++)
        if (strcmp(text, training_tools[i].name) == 0) {
            o->chosen[i] = true;
            return 0;
        }
    return problem_set("tool '%s': --help names those that there are", text);
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
                               training_tools[i].name, training_tools[i].text);
    if (at < size)
        snprintf(text + at, size - at,
                 "\nExit status: 0 trained, 1 failed, 64 wrong command line.");
}

/* Runs the tools that were chosen, or all. */
static int run_tools(struct options *o)
{
    struct training_settings *s = &o->settings;
    struct training_result plain = {.weights = NULL};
    bool any = false;
    int status = profile_check(o->profile);

    if (status == 0 && o->profile)
        status = device_status(ipu_profile_new("memory_tools", &s->profile));
    if (status == 0)
        training_show_head();
    for (int i = 0; i < TOOLS; i++)
        any |= o->chosen[i];
    for (int i = 0; i < TOOLS && status == 0; i++)
        if (o->chosen[i] || (!any && (i != TOOL_PIPELINE || s->parts > 1)))
            status = training_show(s, (enum tool)i, &plain);
    if (status == 0 && o->profile)
        status = profile_put(o->profile, s->profile);
    ipu_profile_free(s->profile);
    free(plain.weights);
    return status;
}

/* Finds the target. Checks that a pipeline gets two mini-batches a stage, and
 * that each chip or stage gets a layer. */
static int check_options(struct options *o)
{
    struct training_settings *s = &o->settings;
    bool any = false;

    ipu_target_init(&s->target, sizeof s->target);
    if (o->target && (strstr(o->target, ".json")
                          ? ipu_target_load(o->target, &s->target)
                          : ipu_target_find(o->target, &s->target)) < 0)
        return problem_set("--target: %s", ipu_last_error());
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
    struct training_settings *s = &o.settings;
    const struct line_row rows[] = {
        {"rows", 0, "N", "rows of a batch, which makes an update (2048)",
         LINE_WHOLE(s->rows, 1, 1 << 20)},
        {"width", 0, "N", "width of the layers (128)",
         LINE_WHOLE(s->width, 1, 1 << 14)},
        {"layers", 0, "N", "number of layers: 2 to 64 (12)",
         LINE_WHOLE(s->layers, 2, 64)},
        {"updates", 0, "N", "number of updates (10)",
         LINE_WHOLE(s->updates, 1, 1 << 30)},
        {"parts", 0, "N",
         "mini-batches that are accumulated, replicas, chips and stages (4)",
         LINE_WHOLE(s->parts, 1, 64)},
        {"lr", 0, "X", "learning rate (0.001)", LINE_REAL(s->rate, HUGE_VAL)},
        {"seed", 0, "N", "seed of weights and batches (1)",
         LINE_WHOLE(s->seed, 0, INT64_MAX)},
        {"target", 0, "NAME", "chip: mk1, mk2, bow, c600, or a JSON file (mk2)",
         LINE_PATH(o.target)},
        LINE_PROFILE(o.profile),
        {0}};
    char doc[2000];
    const struct line line = {.program = "memory_tools",
                              .doc = doc,
                              .take = take_tool,
                              .context = &o,
                              .words = "[TOOL...]",
                              .rows = rows};
    int status;

    describe_tools(doc, sizeof doc);
    status = line_parse(&line, argc, argv);
    if (status == LINE_RUN)
        status = check_options(&o);
    if (status != LINE_RUN)
        return line_settle(&line, status);
    return line_end(&line, run_tools(&o));
}
