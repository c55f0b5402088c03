/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - a tool's row of the table. */
#include "memory/training.h"
#include "output/problem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void training_show_head(void)
{
    printf("%-12s %12s %12s %12s %10s %9s %10s %7s %9s %7s  %s\n", "tool",
           "tile: tensors", "tile: all", "beside chip", "ms/update", "loss",
           "told: tile", "is", "told: ms", "is", "weights");
}

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

int training_show(const struct training_settings *s, enum tool tool,
                  struct training_result *plain)
{
    struct training_result result;

    if (training_run(s, tool, &result) < 0) {
        free(result.weights);
        return problem_set("%s: %s", training_tools[tool].name, problem_text());
    }
    printf("%-12s %12" PRId64 " %12" PRId64 " %12" PRId64 " %10.4f %9.6f",
           training_tools[tool].name, result.tensor_bytes, result.tile_bytes,
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
