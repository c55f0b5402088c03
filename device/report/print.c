/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - prints a profile as text for a terminal: an overview, then the
 * parts that print_memory.c, print_cycles.c and print_pipeline.c print for each
 * program.
 */
#include "report/print.h"

#include <stdio.h>
#include <string.h>

#include "report/analysis.h"
#include "report/run.h"

static void print_head(const struct ipu_profile *profile,
                       const struct ipu__program *p, struct ipu__text *text)
{
    const ipu_target *t = &p->target;

    ipu__text_put_title(text, ipu__shorten(profile->name, 38).text,
                        ipu__shorten(p->name, 38).text);
    ipu__text_put(text,
                  "%d step%s, for %d IPU%s '%.31s': %d tiles of %s, %s\n\n",
                  (int)p->nsteps, p->nsteps == 1 ? "" : "s", (int)p->ipus,
                  p->ipus == 1 ? "" : "s", t->name, (int)t->tiles,
                  ipu__bytes_text((double)t->bytes_per_tile).text,
                  ipu__scaled_text(t->clock_hz, "Hz").text);
}

static void print_sentences(const struct ipu__program *p,
                            struct ipu__text *text)
{
    char sentences[IPU__MOST_WORDS][IPU__WORDS_TEXT];
    int32_t n = ipu__say(p, sentences);

    for (int32_t i = 0; i < n; i++)
        ipu__text_put_wrapped(text, "* ", 2, sentences[i]);
    ipu__text_put(text, "\n");
}

static void print_finding(const struct ipu__program *p,
                          const struct ipu__finding *f, bool memory,
                          struct ipu__text *text)
{
    char head[48];
    char line[IPU__FINDING_TEXT + 96];
    double cost = ipu_model_seconds(&p->target, -f->cycles);

    if (!memory) {
        snprintf(head, sizeof head, "  %10s  ", ipu__seconds_text(-cost).text);
        ipu__text_put_wrapped(text, head, 14, f->text);
        return;
    }
    snprintf(head, sizeof head, "  %10s  ",
             ipu__bytes_text((double)f->bytes).text);
    snprintf(line, sizeof line, "%s%s%s%s", f->text, f->cycles ? "; " : "",
             f->cycles ? ipu__seconds_text(cost < 0 ? -cost : cost).text : "",
             f->cycles == 0 ? ""
             : cost < 0     ? " faster"
                            : " slower");
    ipu__text_put_wrapped(text, head, 14, line);
}

static int print_findings(const struct ipu__program *p, struct ipu__text *text)
{
    struct ipu__findings f;

    IPU_TRY(ipu__find(p, &f));
    if (f.ntime > 0)
        ipu__text_put(text, "\nwhat would make it faster, by at most\n");
    for (int32_t i = 0; i < f.ntime; i++)
        print_finding(p, &f.time[i], false, text);
    if (f.nmemory > 0)
        ipu__text_put(text,
                      "\nwhat would make the fullest tile less full, by\n");
    for (int32_t i = 0; i < f.nmemory; i++)
        print_finding(p, &f.memory[i], true, text);
    return IPU_OK;
}

static int print_program(const struct ipu_profile *profile,
                         const struct ipu__program *p, struct ipu__text *text)
{
    print_head(profile, p, text);
    print_sentences(p, text);
    IPU_TRY(ipu__print_memory(p, text));
    IPU_TRY(ipu__print_cycles(p, text));
    return print_findings(p, text);
}

/* Prints one line per program. */
static void print_overview(const struct ipu_profile *profile,
                           struct ipu__text *text)
{
    ipu__text_put(text, "  %-28s %4s %6s %14s %11s %9s\n", "program", "IPU",
                  "steps", "cycles", "full tile", "here");
    for (int32_t i = 0; i < profile->nprograms; i++) {
        const struct ipu__program *p = &profile->programs[i];
        double mean =
            p->measured ? (double)p->times.run_ns / 1e9 / (double)p->times.runs
                        : 0;

        ipu__text_put(text, "  ");
        ipu__text_put_name(text, p->name, 28);
        ipu__text_put(
            text, " %4d %6d %14s %11s", (int)p->ipu, (int)p->nsteps,
            ipu__count_within(p->pipeline_cycles > 0 ? p->pipeline_cycles
                                                     : p->cycles.total,
                              14)
                .text,
            ipu__bytes_text((double)p->memory.fullest_tile_bytes).text);
        ipu__text_put(text, " %9s\n",
                      p->measured ? ipu__seconds_text(mean).text : "-");
    }
    ipu__text_put(text, "\n");
}

int ipu__print_text(const struct ipu_profile *profile, struct ipu__text *text)
{
    if (profile->nprograms == 0 && !ipu__has_pipeline(profile))
        ipu__text_put(text, "the profile has no programs\n");
    if (ipu__has_pipeline(profile)) {
        IPU_TRY(ipu__print_pipeline(profile, text));
        ipu__text_put(text, "\n");
    }
    if (profile->nprograms > 1)
        print_overview(profile, text);
    for (int32_t i = 0; i < profile->nprograms; i++) {
        if (i > 0)
            ipu__text_put(text, "\n");
        IPU_TRY(print_program(profile, &profile->programs[i], text));
    }
    return IPU_OK;
}
