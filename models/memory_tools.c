/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_tools - trains one network with each of the device's memory tools, and
 * tells what each takes on the chip and how near the weights come to those of
 * the plain program. docs/MEMORY.md tells about the tools.
 */
#include "memory/training.h"

#include "common/problem.h"
#include "common/profile.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a wrong command line exits with: sysexits.h's EX_USAGE. */
enum { EXIT_USAGE = 64 };

static const char help[] =
    "Usage: memory_tools [OPTION...] [TOOL...]\n"
    "Train a network of dense layers with each tool (all, if none is named),\n"
    "and tell memory and time on the chip, and what the weights become.\n"
    "\n"
    "      --rows N      of a batch, which makes an update (2048)\n"
    "      --width N     of layers (128)\n"
    "      --layers N    2 to 64 (12)\n"
    "      --updates N   to make (10)\n"
    "      --parts N     mini-batches that are accumulated, and replicas (4)\n"
    "      --rate X      learning rate (0.001)\n"
    "      --seed N      of weights and batches (1)\n"
    "      --target NAME mk1, mk2, bow, or a JSON file (mk2)\n"
    "      --profile DIR write report.html and profile.json of all tools into\n"
    "                    DIR, or print them: --profile text\n"
    "  -h, --help        show this\n"
    "\n"
    "Tools:\n";

static void print_help(FILE *out)
{
    fputs(help, out);
    for (int i = 0; i < TOOLS; i++)
        fprintf(out, "  %-12s %s\n", training_tool_name((enum tool)i),
                training_tool_text((enum tool)i));
}

static int complain(const char *what, const char *given, const char *accepted)
{
    fprintf(stderr, "memory_tools: %s '%s': %s\n", what, given, accepted);
    return EXIT_USAGE;
}

/* ---------------------------------------------------------------- options */

static int parse_count(const char *name, const char *text, int least, int most,
                       int *value)
{
    char *end, accepted[64];
    long number = strtol(text, &end, 10);

    snprintf(accepted, sizeof accepted, "a number of %d to %d is wanted", least,
             most);
    if (end == text || *end || number < least || number > most)
        return complain(name, text, accepted);
    *value = (int)number;
    return 0;
}

static int parse_rate(const char *text, double *rate)
{
    char *end;

    *rate = strtod(text, &end);
    if (end == text || *end || !(*rate > 0 && *rate < HUGE_VAL))
        return complain("--rate", text, "a number above 0 is wanted");
    return 0;
}

static int parse_target(const char *text, ipu_target *target)
{
    ipu_target_init(target, sizeof *target);
    if ((strstr(text, ".json") ? ipu_target_load(text, target)
                               : ipu_target_find(text, target)) >= 0)
        return 0;
    fprintf(stderr, "memory_tools: --target: %s\n", ipu_last_error());
    return EXIT_USAGE;
}

static int parse_tool(const char *text, bool *chosen)
{
    for (int i = 0; i < TOOLS; i++)
        if (strcmp(text, training_tool_name((enum tool)i)) == 0) {
            chosen[i] = true;
            return 0;
        }
    return complain("tool", text, "--help names those that there are");
}

enum { ROWS = 256, WIDTH, LAYERS, UPDATES, PARTS, RATE, SEED, TARGET, PROFILE };

static int parse_option(int option, const char *text,
                        struct training_settings *s)
{
    int seed = 0, status;

    switch (option) {
    case ROWS: return parse_count("--rows", text, 1, 1 << 20, &s->rows);
    case WIDTH: return parse_count("--width", text, 1, 1 << 14, &s->width);
    case LAYERS: return parse_count("--layers", text, 2, 64, &s->layers);
    case UPDATES:
        return parse_count("--updates", text, 1, 1 << 30, &s->updates);
    case PARTS: return parse_count("--parts", text, 1, 64, &s->parts);
    case RATE: return parse_rate(text, &s->rate);
    case TARGET: return parse_target(text, &s->target);
    default:
        status = parse_count("--seed", text, 0, INT32_MAX, &seed);
        s->seed = (uint64_t)seed;
        return status;
    }
}

/* -1: help was asked for. */
static int parse(int argc, char **argv, struct training_settings *s,
                 bool *chosen, const char **profile)
{
    static const struct option options[] = {
        {"rows", required_argument, NULL, ROWS},
        {"width", required_argument, NULL, WIDTH},
        {"layers", required_argument, NULL, LAYERS},
        {"updates", required_argument, NULL, UPDATES},
        {"parts", required_argument, NULL, PARTS},
        {"rate", required_argument, NULL, RATE},
        {"seed", required_argument, NULL, SEED},
        {"target", required_argument, NULL, TARGET},
        {"profile", required_argument, NULL, PROFILE},
        {"help", no_argument, NULL, 'h'},
        {0}};
    int option, status = 0;

    while (!status &&
           (option = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
        if (option == 'h')
            return -1;
        if (option == PROFILE)
            *profile = optarg;
        else
            status =
                option == '?' ? EXIT_USAGE : parse_option(option, optarg, s);
    }
    for (int i = optind; !status && i < argc; i++)
        status = parse_tool(argv[i], chosen);
    if (!status && s->rows % s->parts) {
        char rows[16];

        snprintf(rows, sizeof rows, "%d", s->rows);
        status = complain("--rows", rows, "it must be a multiple of --parts");
    }
    return status;
}

/* ----------------------------------------------------------------- results */

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
        fprintf(stderr, "memory_tools: %s: %s\n", training_tool_name(tool),
                ipu_last_error());
        free(result.weights);
        return EXIT_FAILURE;
    }
    printf("%-12s %12" PRId64 " %12" PRId64 " %12" PRId64 " %10.4f %9.6f",
           training_tool_name(tool), result.tensor_bytes, result.tile_bytes,
           result.remote_bytes, result.ms, result.loss);
    print_weights(plain, &result);
    fflush(stdout);
    if (tool == TOOL_PLAIN)
        *plain = result;
    else
        free(result.weights);
    return 0;
}

/* All tools that were chosen, or all. */
static int run_tools(const struct training_settings *s, const bool *chosen)
{
    struct training_result plain = {.weights = NULL};
    bool any = false;
    int status = 0;

    for (int i = 0; i < TOOLS; i++)
        any |= chosen[i];
    printf("%-12s %12s %12s %12s %10s %9s  %s\n", "tool", "tile: tensors",
           "tile: all", "beside chip", "ms/update", "loss", "weights");
    for (int i = 0; i < TOOLS && !status; i++)
        if (!any || chosen[i])
            status = run_tool(s, (enum tool)i, &plain);
    free(plain.weights);
    return status;
}

/* The same, with a profile of each. */
static int run_profiled(struct training_settings *s, const bool *chosen,
                        const char *where)
{
    int status;

    if (profile_check(where) < 0) {
        fprintf(stderr, "memory_tools: %s\n", problem_text());
        return EXIT_FAILURE;
    }
    if (ipu_profile_new("memory_tools", &s->profile) < 0) {
        fprintf(stderr, "memory_tools: %s\n", ipu_last_error());
        return EXIT_FAILURE;
    }
    status = run_tools(s, chosen);
    if (!status && profile_put(where, s->profile) < 0) {
        fprintf(stderr, "memory_tools: %s\n", problem_text());
        status = EXIT_FAILURE;
    }
    ipu_profile_free(s->profile);
    return status;
}

int main(int argc, char **argv)
{
    struct training_settings s = {.rows = 2048,
                                  .width = 128,
                                  .layers = 12,
                                  .updates = 10,
                                  .parts = 4,
                                  .rate = 0.001,
                                  .seed = 1};
    bool chosen[TOOLS] = {false};
    const char *profile = NULL;
    int status;

    ipu_target_init(&s.target, sizeof s.target);
    status = parse(argc, argv, &s, chosen, &profile);
    if (status) {
        if (status < 0)
            print_help(stdout);
        return status < 0 ? 0 : status;
    }
    return profile ? run_profiled(&s, chosen, profile) : run_tools(&s, chosen);
}
