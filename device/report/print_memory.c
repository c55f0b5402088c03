/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_memory.c - prints the memory of a program: in all and by category, how
 * many tiles are how full, how that changes along the steps, and what the
 * fullest tile holds at its peak. print.c calls ipu__print_memory for each
 * program.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/analysis.h"
#include "report/print.h"
#include "target/cost.h"

enum { BINS = 8, BUCKETS = 16, LARGEST = 12, BAR = 24 };

/* Prints the code that equal steps share. */
static void print_shared(const struct ipu__program *p, struct ipu__text *text)
{
    int32_t sharing = 0, copying = 0, codes = 0;

    for (int32_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].calls > 1) {
            sharing++;
            codes += p->steps[i].code_of == i;
            copying += p->steps[i].copied_bytes > 0;
        }
    ipu__text_put(text,
                  "  code shared: %d steps run the code of %d, %d of them copy "
                  "operands for it; %s more on each tile otherwise\n",
                  (int)sharing, (int)codes, (int)copying,
                  ipu__bytes_text((double)p->memory.shared_code_bytes).text);
}

/* Prints the memory that products may take, if it is not the default: the most
 * and the least, if they differ. */
static void print_proportions(const struct ipu__program *p,
                              struct ipu__text *text)
{
    double least = 1, most = 0;

    for (int32_t i = 0; i < p->nsteps; i++) {
        double proportion = p->steps[i].available_memory_proportion;

        if (proportion > 0 && proportion < least)
            least = proportion;
        if (proportion > most)
            most = proportion;
    }
    if (most == 0 || (least == most && most == ipu__proportion_of(0)))
        return;
    ipu__text_put(text, "  available to a product: %g of a tile", least);
    if (most > least)
        ipu__text_put(text, " to %g", most);
    ipu__text_put(text, "\n");
}

static void print_sums(const struct ipu__program *p, struct ipu__text *text)
{
    int64_t bytes[IPU_NUM_CATEGORIES];
    int64_t used = ipu__sum_categories(p, bytes);
    int64_t all = p->memory.bytes_per_tile * ipu__program_tiles(p);

    ipu__text_put(text, "memory: %s on %d tiles; ",
                  ipu__bytes_text((double)all).text,
                  (int)ipu__program_tiles(p));
    ipu__text_put(text, "%s (%.1f %%) used, %s free\n",
                  ipu__bytes_text((double)used).text,
                  ipu__percent((double)used, (double)all),
                  ipu__bytes_text((double)(all - used)).text);
    if (p->memory.remote_bytes > 0)
        ipu__text_put(text, "  beside the chip: %s\n",
                      ipu__bytes_text((double)p->memory.remote_bytes).text);
    print_proportions(p, text);
    if (p->memory.shared_code_bytes > 0)
        print_shared(p, text);
    for (ipu_category c = 0; c < IPU_NUM_CATEGORIES; c++) {
        if (bytes[c] == 0)
            continue;
        ipu__text_put(text, "  %-14s %10s %5.1f %%", ipu_category_name(c),
                      ipu__bytes_text((double)bytes[c]).text,
                      ipu__percent((double)bytes[c], (double)used));
        ipu__text_put_bar(text, (double)bytes[c] / (double)used, BAR);
        ipu__text_put(text, "\n");
    }
}

/* Returns a power of two, so that the bounds of the bins are round numbers. */
static int64_t bin_width(int64_t least, int64_t most)
{
    int64_t width = 64;

    while (most / width - least / width >= BINS)
        width *= 2;
    return width;
}

static void print_histogram(const struct ipu__program *p,
                            struct ipu__text *text)
{
    int64_t least = INT64_MAX, most = 0, width, tiles[BINS] = {0};

    for (int32_t i = 0; i < p->ntiles; i++) {
        int64_t total = p->tiles[i].total;

        least = total < least ? total : least;
        most = total > most ? total : most;
    }
    if (p->ntiles == 0)
        return;
    width = bin_width(least, most);
    for (int32_t i = 0; i < p->ntiles; i++)
        tiles[p->tiles[i].total / width - least / width] += p->tiles[i].count;
    ipu__text_put(text,
                  "\ntiles by the bytes that each holds when it is fullest\n");
    for (int64_t i = 0; i <= most / width - least / width; i++) {
        int64_t from = (least / width + i) * width;

        ipu__text_put(text, "  %11s to %11s %7" PRId64 " tiles",
                      ipu__count_text(from).text,
                      ipu__count_text(from + width - 1).text, tiles[i]);
        ipu__text_put_bar(text, (double)tiles[i] / ipu__program_tiles(p), BAR);
        ipu__text_put(text, "\n");
    }
}

/* Sums the bytes of the whole chip that live always, and during each step:
 * rest, [nsteps + 1] of zeros. */
static void find_live(const struct ipu__program *p, int64_t *always,
                      int64_t *rest)
{
    *always = 0;
    for (int32_t b = 0; b < p->nblocks; b++) {
        const struct ipu__profile_block *block = &p->blocks[b];
        int64_t bytes = ipu__block_bytes(block);

        if (block->always) {
            *always += bytes;
            continue;
        }
        rest[block->birth < 0 ? 0 : block->birth] += bytes;
        if (block->death < p->nsteps)
            rest[block->death + 1] -= bytes;
    }
    for (int32_t i = 1; i <= p->nsteps; i++)
        rest[i] += rest[i - 1];
}

static void print_bucket(const struct ipu__program *p, int32_t first,
                         int32_t end, int64_t always, const int64_t *rest,
                         int64_t most, struct ipu__text *text)
{
    int32_t peak = first, full = first;
    bool fullest =
        first <= p->memory.fullest_step && p->memory.fullest_step < end;

    for (int32_t i = first; i < end; i++) {
        if (rest[i] > rest[peak])
            peak = i;
        if (p->steps[i].fullest_tile_bytes > p->steps[full].fullest_tile_bytes)
            full = i;
    }
    ipu__text_put(
        text, "  %6d-%-6d %10s %10s%s", (int)first, (int)end - 1,
        ipu__bytes_text((double)(always + rest[peak])).text,
        ipu__bytes_text((double)p->steps[full].fullest_tile_bytes).text,
        fullest ? " >" : "");
    ipu__text_put_bar(text, (double)(always + rest[peak]) / (double)most, 30);
    ipu__text_put(text, "\n");
}

static int print_liveness(const struct ipu__program *p, struct ipu__text *text)
{
    int64_t *rest;
    int64_t always = 0, most = 1;
    int32_t width = p->nsteps / BUCKETS + (p->nsteps % BUCKETS > 0);

    IPU_TRY(ipu__new_array(&rest, (size_t)p->nsteps, sizeof *rest));
    find_live(p, &always, rest);
    for (int32_t i = 0; i < p->nsteps; i++)
        if (always + rest[i] > most)
            most = always + rest[i];
    ipu__text_put(
        text,
        "\nalive along the steps, of which always %s (> holds the peak)\n"
        "  %-13s %10s %10s\n",
        ipu__bytes_text((double)always).text, "steps", "tensors", "full tile");
    for (int32_t i = 0; i < p->nsteps; i += width)
        print_bucket(p, i, i + width < p->nsteps ? i + width : p->nsteps,
                     always, rest, most, text);
    free(rest);
    return IPU_OK;
}

/* ----------------------------------------------------------------- the peak */

struct tenant {
    int32_t block;
    int64_t bytes;
};

static int by_bytes(const void *first, const void *second)
{
    const struct tenant *a = first, *b = second;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->block < b->block ? -1 : a->block > b->block;
}

static void print_tenant(const struct ipu__profile_block *b, int64_t bytes,
                         struct ipu__text *text)
{
    const char *slash = b->file ? strrchr(b->file, '/') : NULL;

    ipu__text_put(text, "  %10s  ", ipu__bytes_text((double)bytes).text);
    ipu__text_put_name(text, b->tensor, 24);
    ipu__text_put(text, " ");
    ipu__text_put_padded(text, ipu__shorten(b->type, 22).text,
                         b->file ? 23 : 0);
    if (b->file)
        ipu__text_put(text, "%s:%d",
                      ipu__shorten(slash ? slash + 1 : b->file, 13).text,
                      (int)b->line);
    ipu__text_put(text, "\n");
}

static int print_peak(const struct ipu__program *p, struct ipu__text *text)
{
    const ipu_memory_info *m = &p->memory;
    struct tenant *tenants;
    int32_t n = 0;
    int64_t others = 0;

    IPU_TRY(ipu__new_array(&tenants, (size_t)p->nblocks, sizeof *tenants));
    for (int32_t b = 0; b < p->nblocks; b++) {
        int64_t bytes = ipu__share_on(&p->blocks[b], m->fullest_tile);

        if (bytes > 0 && ipu__block_alive(&p->blocks[b], m->fullest_step))
            tenants[n++] = (struct tenant){b, bytes};
    }
    qsort(tenants, (size_t)n, sizeof *tenants, by_bytes);
    ipu__text_put(text, "\non tile %d at step %d, when it is fullest\n",
                  (int)m->fullest_tile, (int)m->fullest_step);
    for (int32_t i = 0; i < n; i++)
        if (i < LARGEST)
            print_tenant(&p->blocks[tenants[i].block], tenants[i].bytes, text);
        else
            others += tenants[i].bytes;
    if (n > LARGEST)
        ipu__text_put(text, "  %10s  %d smaller tensors\n",
                      ipu__bytes_text((double)others).text, (int)(n - LARGEST));
    ipu__text_put(
        text, "  %10s  temporary, of the step\n",
        ipu__bytes_text((double)p->steps[m->fullest_step].temporary_bytes)
            .text);
    ipu__text_put(text, "  %10s  code and state of vertices, exchange code\n",
                  ipu__bytes_text((double)p->code_bytes).text);
    free(tenants);
    return IPU_OK;
}

int ipu__print_memory(const struct ipu__program *program,
                      struct ipu__text *text)
{
    print_sums(program, text);
    print_histogram(program, text);
    if (program->nsteps == 0)
        return IPU_OK;
    IPU_TRY(print_liveness(program, text));
    return print_peak(program, text);
}
