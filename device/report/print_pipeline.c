/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_pipeline.c - a pipeline's schedule as text: a row for each chip, a
 * column for each slot, in it what the chip does and with which mini-batch.
 *
 *     IPU   0   1   2   3
 *       0  F0  F1  F2  B0
 *       1   .  F0  F1  F2
 *
 * Slots that do not fit side by side follow below. Where a chip does several
 * things in a slot, the one that takes longest is shown, with a +.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/print.h"

enum { CELL = 6, CELLS = (80 - 6) / CELL, MOST_BLOCKS = 8 };

/* What a chip does in a slot. */
struct cell {
    const ipu_pipeline_slot *longest; /* NULL: nothing */
    int32_t count;
};

/* A row of width cells for each chip, of the first slots; the caller's, to
 * free(). NULL: no memory. */
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

static void find_extent(const struct ipu_profile *p, int32_t *ipus,
                        int32_t *slots)
{
    *ipus = *slots = 0;
    for (int32_t i = 0; i < p->nslots; i++) {
        if (p->slots[i].ipu >= *ipus)
            *ipus = p->slots[i].ipu + 1;
        if (p->slots[i].slot >= *slots)
            *slots = p->slots[i].slot + 1;
    }
}

static int by_slot_and_chip(const void *first, const void *second)
{
    const ipu_pipeline_slot *a = first, *b = second;

    if (a->slot != b->slot)
        return a->slot < b->slot ? -1 : 1;
    return a->ipu < b->ipu ? -1 : a->ipu > b->ipu;
}

/* busy: cycles that chips work, all together; all: cycles of the pipeline, a
 * slot's being those of the chip that needs the longest for it. */
static int sum_slots(const struct ipu_profile *p, int64_t *busy, int64_t *all)
{
    size_t n = (size_t)p->nslots;
    ipu_pipeline_slot *sorted = malloc(n * sizeof *sorted);
    int64_t work = 0, longest = 0;

    *busy = *all = 0;
    if (!sorted)
        return ipu__fail_memory(n * sizeof *sorted);
    memcpy(sorted, p->slots, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_slot_and_chip);
    for (size_t i = 0; i < n; i++) {
        const ipu_pipeline_slot *next = i + 1 < n ? &sorted[i + 1] : NULL;

        work += sorted[i].cycles;
        *busy += sorted[i].cycles;
        if (next && next->slot == sorted[i].slot && next->ipu == sorted[i].ipu)
            continue;
        longest = work > longest ? work : longest;
        work = 0;
        if (next && next->slot == sorted[i].slot)
            continue;
        *all += longest;
        longest = 0;
    }
    free(sorted);
    return IPU_OK;
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

int ipu__print_pipeline(const struct ipu_profile *profile,
                        struct ipu__text *text)
{
    int32_t ipus, slots;
    int64_t busy = 0, all = 0;
    char a[IPU__NUMBER_TEXT];

    if (profile->nslots == 0)
        return IPU_OK;
    find_extent(profile, &ipus, &slots);
    IPU_TRY(sum_slots(profile, &busy, &all));
    ipu__text_put(
        text,
        "pipeline: %d IPU%s, %d slots, %s cycles; the chips are idle "
        "%.1f %% of that\n"
        "F forward, B backward, R recompute, U update, with the number "
        "of the mini-batch\n",
        (int)ipus, ipus == 1 ? "" : "s", (int)slots, ipu__count_text(all, a),
        all > 0 ? 100 - ipu__percent((double)busy, (double)all * ipus) : 0);
    return print_slots(profile, ipus, slots, text);
}
