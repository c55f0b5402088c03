/* SPDX-License-Identifier: Apache-2.0 */
#include "output/problem.h"

#include <ipu.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

/* A refusal of the device is the longest. */
static _Thread_local char text[4096];

int problem_set(const char *format, ...)
{
    char fresh[sizeof text]; /* the arguments may point into text */
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(fresh, sizeof fresh, format, arguments);
    va_end(arguments);
    size_t i = 0;
    for (; fresh[i] != '\0'; i++) {
        unsigned char c = (unsigned char)fresh[i];
        text[i] = c < ' ' || c == 127 ? '?' : fresh[i];
    }
    text[i] = '\0';
    return PROBLEM;
}

const char *problem_text(void)
{
    return text;
}

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
    char lines[2 * sizeof text];
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
