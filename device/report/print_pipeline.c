/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_pipeline.c - prints a pipeline: its run as a whole, in sentences and by
 * its parts; a line for each stage and each chip; and the schedule, with a row
 * for each chip, a column for each slot, and in it what the chip does with
 * which mini-batch.
 *
 *     IPU   0   1   2   3
 *       0  F0  F1  F2  B0
 *       1   .  F0  F1  F2
 *
 * Slots that do not fit side by side follow below. If a chip does several
 * things in a slot, the longest one is shown, with a +.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/print.h"
#include "report/run.h"

enum { CELL = 6, CELLS = (80 - 6) / CELL, MOST_BLOCKS = 8, BAR = 20 };

/* The work of a chip in a slot. */
struct cell {
    const ipu_pipeline_slot *longest; /* NULL: no work */
    int32_t count;
};

/* Makes a row of width cells for each chip, of the first slots. The caller
 * frees it with free(). Returns NULL without memory. */
static struct cell *find_cells(const struct ipu_profile *p, int32_t ipus,
                               int32_t width)
{
    struct cell *cells =
        calloc((size_t)ipus * (size_t)width + 1, sizeof *cells);

    for (int32_t i = 0; cells && i < p->nslots; i++) {
        const ipu_pipeline_slot *s = &p->slots[i];
        struct cell *cell;

        if (s->slot >= width)
            continue;
        cell = &cells[(size_t)s->ipu * (size_t)width + (size_t)s->slot];
        cell->count++;
        if (!cell->longest || s->cycles > cell->longest->cycles)
            cell->longest = s;
    }
    return cells;
}

static void print_cell(const struct cell *cell, struct ipu__text *text)
{
    const ipu_pipeline_slot *s = cell->longest;
    const char *more = cell->count > 1 ? "+" : "";
    char sign[32] = ".";

    if (s && s->mini_batch >= 0)
        snprintf(sign, sizeof sign, "%c%d%s", "FBRU"[s->kind],
                 (int)s -> mini_batch, more);
    else if (s)
        snprintf(sign, sizeof sign, "%c%s", "FBRU"[s->kind], more);
    ipu__text_put(text, "%*.*s", CELL, CELL - 1, sign);
}

static int print_slots(const struct ipu_profile *profile, int32_t ipus,
                       int32_t slots, struct ipu__text *text)
{
    int32_t width = slots < MOST_BLOCKS * CELLS ? slots : MOST_BLOCKS * CELLS;
    struct cell *cells = find_cells(profile, ipus, width);

    if (!cells)
        return ipu__fail_memory((size_t)ipus * (size_t)width * sizeof *cells);
    for (int32_t first = 0; first < width; first += CELLS) {
        int32_t end = first + CELLS < width ? first + CELLS : width;

        ipu__text_put(text, "\n  IPU");
        for (int32_t s = first; s < end; s++)
            ipu__text_put(text, "%*d", CELL, (int)s);
        for (int32_t k = 0; k < ipus; k++) {
            ipu__text_put(text, "\n  %3d", (int)k);
            for (int32_t s = first; s < end; s++)
                print_cell(&cells[(size_t)k * (size_t)width + (size_t)s], text);
        }
        ipu__text_put(text, "\n");
    }
    if (slots > width)
        ipu__text_put(text, "  and %d more slots\n", (int)(slots - width));
    free(cells);
    return IPU_OK;
}

/* ------------------------------------------------------------ the whole run */

static int print_sentences(const struct ipu_profile *profile,
                           struct ipu__text *text)
{
    char sentences[IPU__MOST_WORDS][IPU__WORDS_TEXT];
    int32_t count;

    IPU_TRY(ipu__say_run(profile, sentences, &count));
    for (int32_t i = 0; i < count; i++)
        ipu__text_put_wrapped(text, "* ", 2, sentences[i]);
    return IPU_OK;
}

static void print_phases(const struct ipu__profile_run *r,
                         struct ipu__text *text)
{
    const struct {
        const char *name;
        int64_t cycles;
    } phases[] = {{"stages", r->work},    {"between IPUs", r->exchange},
                  {"sync", r->sync},      {"host", r->host},
                  {"updates", r->update}, {"in all", r->total}};

    ipu__text_put(text, "\ncycles of a run\n");
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        double part = ipu__percent((double)phases[i].cycles, (double)r->total);

        ipu__text_put(
            text, "  %-12s %15s %11s %5.1f %%", phases[i].name,
            ipu__count_within(phases[i].cycles, 15).text,
            ipu__seconds_text((double)phases[i].cycles / r->clock_hz).text,
            part);
        if (i + 1 < sizeof phases / sizeof *phases)
            ipu__text_put_bar(text, part / 100, BAR);
        ipu__text_put(text, "\n");
    }
}

/* Prints the cycles and bytes of a mini-batch in each stage. */
static void print_stages(const struct ipu__profile_run *r,
                         struct ipu__text *text)
{
    ipu__text_put(text, "\n  %-16s %3s %10s %10s %10s %10s %10s\n",
                  "of a mini-batch", "IPU", "forward", "backward", "again",
                  "kept", "here");
    for (int32_t i = 0; i < r->nstages; i++) {
        const struct ipu__profile_stage *s = &r->stages[i];

        ipu__text_put(text, "  ");
        ipu__text_put_name(text, s->name, 16);
        ipu__text_put(
            text, " %3d %10s %10s %10s %10s %10s\n", (int)s->ipu,
            ipu__count_within(s->forward, 10).text,
            ipu__count_within(s->backward, 10).text,
            s->recompute ? ipu__count_within(s->recompute, 10).text : "-",
            ipu__bytes_text((double)s->stash_bytes).text,
            s->ns < 0 ? "-" : ipu__seconds_text((double)s->ns / 1e9).text);
    }
}

static void print_chips(const struct ipu__profile_run *r,
                        struct ipu__text *text)
{
    ipu__text_put(text, "\n  %3s %10s %10s %10s %10s %10s %10s\n", "IPU",
                  "update", "of it move", "variables", "stashes", "beside",
                  "full tile");
    for (int32_t i = 0; i < r->nchips; i++) {
        const struct ipu__profile_chip *chip = &r->chips[i];

        ipu__text_put(text, "  %3d %10s %10s %10s %10s %10s %10s\n",
                      (int)chip->ipu, ipu__count_within(chip->update, 10).text,
                      ipu__count_within(chip->offload, 10).text,
                      ipu__bytes_text((double)chip->variable_bytes).text,
                      ipu__bytes_text((double)chip->stash_bytes).text,
                      ipu__bytes_text((double)chip->streaming_bytes).text,
                      ipu__bytes_text((double)chip->tile_bytes).text);
    }
}

static int print_schedule(const struct ipu_profile *profile,
                          struct ipu__text *text)
{
    struct ipu__slots_account s;

    IPU_TRY(ipu__account_slots(profile, &s));
    ipu__text_put(text,
                  "\nschedule: %d IPU%s, %d slots, %s cycles of stages and "
                  "updates\n"
                  "F forward, B backward, R recompute, U update, with the "
                  "number of the mini-batch\n",
                  (int)s.ipus, s.ipus == 1 ? "" : "s", (int)s.slots,
                  ipu__count_text(s.stages + s.updates).text);
    return print_slots(profile, s.ipus, s.slots, text);
}

int ipu__print_pipeline(const struct ipu_profile *profile,
                        struct ipu__text *text)
{
    const struct ipu__profile_run *run = &profile->run;

    if (!ipu__has_pipeline(profile))
        return IPU_OK;
    ipu__text_put_title(text, ipu__shorten(profile->name, 60).text,
                        "the pipeline");
    IPU_TRY(print_sentences(profile, text));
    if (run->nstages > 0) {
        print_phases(run, text);
        print_stages(run, text);
    }
    if (run->nchips > 0)
        print_chips(run, text);
    return profile->nslots > 0 ? print_schedule(profile, text) : IPU_OK;
}
