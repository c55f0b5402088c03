/* SPDX-License-Identifier: Apache-2.0 */
#include "output/problem.h"

#include <ipu.h>
#include <stdbool.h>
#include <string.h>

/* A place in a refusal (ipu_compile.h) where a new line begins: these words
 * are replaced. */
static const struct seam {
    const char *words, *instead;
} seams[] = {
    {". " IPU_FULL_REMEDIES "; ", "\n" IPU_FULL_REMEDIES ":\n    "},
    {". " IPU_FULL_REASONS "; ", "\n" IPU_FULL_REASONS ":\n    "},
    {"; ", "\n    "},
    {", at step ", "\n    at step "},
    {"), '", ")\n        '"},
};

static const struct seam *seam_at(const char *at)
{
    for (size_t i = 0; i < sizeof seams / sizeof *seams; i++)
        if (strncmp(at, seams[i].words, strlen(seams[i].words)) == 0)
            return &seams[i];
    return NULL;
}

void problem_print(FILE *out, const char *prefix)
{
    const char *text = problem_text();
    char lines[2 * 4096]; /* a text has at most 4095 bytes */
    bool breaks = strstr(text, seams[0].words) != NULL;
    size_t used = 0;

    for (const char *at = text; *at && used < sizeof lines - 64;) {
        const struct seam *seam = breaks ? seam_at(at) : NULL;

        if (seam) {
            strcpy(lines + used, seam->instead);
            used += strlen(seam->instead);
            at += strlen(seam->words);
        } else {
            lines[used++] = *at++;
        }
    }
    lines[used] = '\0';
    /* One call, because other ranks print too. */
    fprintf(out, "%s: %s\n", prefix, lines);
}
