/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find_memory.c - finds changes that would reduce the fullest tile, and the
 * bytes that they would save.
 *
 * The program is examined along its steps, at each step on the tile that is
 * fullest then. A remedy removes bytes from some steps; it saves the difference
 * that this makes to the highest of all steps. So a remedy against one peak
 * saves no more than the distance to the next peak, and a change away from the
 * peak saves nothing.
 *
 *   recompute  a result that waits for a later step is dropped, and made
 *              again before that
 *   in_place   a result is made in the place of one that dies with that step
 *   offload    a variable stays in streaming memory while no step
 *              uses it
 *   half       all floats are halves
 *
 * The search ignores that another tile may be the fullest afterwards: large
 * tensors are spread evenly over all tiles.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/analysis.h"
#include "report/text.h"

/* Only the candidates with the largest share on the fullest tile are
 * examined. */
enum { MOST_CANDIDATES = 48 };

enum remedy { RECOMPUTE, IN_PLACE, OFFLOAD };

struct peak {
    const struct ipu__program *p;
    int32_t step, tile;
    int64_t bytes; /* bytes on the fullest tile */
};

/* Returns true if the remedy takes the block away from the step. */
static bool is_absent(const struct ipu__profile_block *b, enum remedy remedy,
                      int32_t step)
{
    if (!ipu__block_alive(b, step))
        return false;
    return remedy == IN_PLACE ? step == b->birth : !ipu__block_used(b, step);
}

/* Returns the peak of the fullest tile without what the remedy takes away. */
static int64_t peak_without(const struct ipu__program *p,
                            const struct ipu__profile_block *b,
                            enum remedy remedy)
{
    int64_t most = 0;

    for (int32_t i = 0; i < p->nsteps; i++) {
        const struct ipu__profile_step *s = &p->steps[i];
        int64_t bytes = s->fullest_tile_bytes;

        if (bytes > most && is_absent(b, remedy, i))
            bytes -= ipu__share_on(b, s->fullest_tile);
        if (bytes > most)
            most = bytes;
    }
    return most;
}

/* Returns the cycles of the steps that make a block's content. */
static int64_t cycles_to_make(const struct ipu__program *p, int32_t block)
{
    int64_t cycles = 0;

    for (int32_t i = 0; i < p->nsteps && i <= p->memory.fullest_step; i++)
        if ((p->steps[i].block == block || p->blocks[block].birth == i) &&
            p->steps[i].host == 0)
            cycles += ipu__step_cycles(&p->steps[i], p->steps[i].total);
    return cycles;
}

static int64_t cycles_to_offload(const struct ipu__program *p,
                                 const struct ipu__profile_block *b)
{
    double cycles = 2 * (double)b->bytes /
                    p->target.streaming_bytes_per_second * p->target.clock_hz;

    return cycles < 0x1p60 ? (int64_t)cycles : (int64_t)1 << 60;
}

static void where_from(const struct ipu__profile_block *b, char *text,
                       size_t size)
{
    const char *slash = b->file ? strrchr(b->file, '/') : NULL;

    if (b->file)
        snprintf(text, size, " (%.40s:%d)", slash ? slash + 1 : b->file,
                 (int)b->line);
    else
        text[0] = '\0';
}

static void note(const struct peak *peak, int32_t block, enum remedy remedy,
                 struct ipu__findings *f)
{
    static const char *const kinds[] = {"recompute", "in_place", "offload"};
    static const char *const ways[] = {
        "made again when it is needed, after the peak",
        "computed in the place of what dies in the same step",
        "kept in the memory beside the chip while no step uses it"};
    const struct ipu__program *p = peak->p;
    const struct ipu__profile_block *b = &p->blocks[block];
    struct ipu__finding finding = {kinds[remedy], peak->step, block, 0, 0, ""};
    char source[64];

    finding.bytes = peak->bytes - peak_without(p, b, remedy);
    if (finding.bytes <= 0)
        return;
    if (remedy == RECOMPUTE)
        finding.cycles = -cycles_to_make(p, block);
    if (remedy == OFFLOAD)
        finding.cycles = -cycles_to_offload(p, b);
    where_from(b, source, sizeof source);
    snprintf(finding.text, sizeof finding.text,
             "'%.60s' %.60s, %s in all%s: %s", b->tensor, b->type,
             ipu__bytes_text((double)b->bytes).text, source, ways[remedy]);
    ipu__note_finding(f->memory, &f->nmemory, true, &finding);
}

/* Returns true if a block of the same size dies where b is born. */
static bool has_dying_twin(const struct ipu__program *p,
                           const struct ipu__profile_block *b)
{
    for (int32_t i = 0; i < p->nblocks; i++) {
        const struct ipu__profile_block *other = &p->blocks[i];

        if (other != b && !other->always && other->death == b->birth &&
            other->bytes == b->bytes && ipu__block_used(other, b->birth))
            return true;
    }
    return false;
}

static void judge(const struct peak *peak, int32_t block,
                  struct ipu__findings *f)
{
    const struct ipu__program *p = peak->p;
    const struct ipu__profile_block *b = &p->blocks[block];

    if (b->sort == IPU_CATEGORY_RESULTS && b->birth >= 0 &&
        b->death < p->nsteps && !ipu__block_used(b, peak->step))
        note(peak, block, RECOMPUTE, f);
    if (b->birth == peak->step && has_dying_twin(p, b))
        note(peak, block, IN_PLACE, f);
    if (b->always && !ipu__block_used(b, peak->step) &&
        p->target.streaming_bytes_per_second > 0)
        note(peak, block, OFFLOAD, f);
}

/* --------------------------------------------------------------- candidates */

struct candidate {
    int32_t block;
    int64_t bytes;
};

/* Orders the largest first, then by the order of the program. */
static int by_bytes(const void *first, const void *second)
{
    const struct candidate *a = first, *b = second;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->block < b->block ? -1 : a->block > b->block;
}

static int judge_all(const struct peak *peak, struct ipu__findings *f)
{
    const struct ipu__program *p = peak->p;
    struct candidate *list;
    int32_t n = 0;

    IPU_TRY(ipu__new_array(&list, (size_t)p->nblocks, sizeof *list));
    for (int32_t b = 0; b < p->nblocks; b++) {
        int64_t share = ipu__share_on(&p->blocks[b], peak->tile);

        if (share > 0 && ipu__block_alive(&p->blocks[b], peak->step))
            list[n++] = (struct candidate){b, share};
    }
    qsort(list, (size_t)n, sizeof *list, by_bytes);
    for (int32_t i = 0; i < n && i < MOST_CANDIDATES; i++)
        judge(peak, list[i].block, f);
    free(list);
    return IPU_OK;
}

/* Finds the saving if all floats of four bytes, temporaries included, had half
 * their size. */
static void find_half(const struct peak *peak, struct ipu__findings *f)
{
    const struct ipu__program *p = peak->p;
    struct ipu__finding finding = {"half", -1, -1, 0, 0, ""};
    int64_t steps = 0;

    for (int32_t b = 0; b < p->nblocks; b++)
        if (strncmp(p->blocks[b].type, "float32", 7) == 0 &&
            ipu__block_alive(&p->blocks[b], peak->step))
            finding.bytes += ipu__share_on(&p->blocks[b], peak->tile) / 2;
    if (finding.bytes == 0)
        return;
    finding.bytes += p->steps[peak->step].temporary_bytes / 2;
    for (int32_t i = 0; i < p->nsteps; i++)
        steps += p->steps[i].total * p->steps[i].times;
    finding.cycles = steps - p->half_cycles;
    snprintf(finding.text, sizeof finding.text,
             "float16 instead of float32 for all tensors that are there");
    ipu__note_finding(f->memory, &f->nmemory, true, &finding);
}

int ipu__find_memory(const struct ipu__program *program,
                     struct ipu__findings *findings)
{
    const struct peak peak = {program, program->memory.fullest_step,
                              program->memory.fullest_tile,
                              program->memory.fullest_tile_bytes};

    if (program->nsteps == 0)
        return IPU_OK;
    find_half(&peak, findings);
    return judge_all(&peak, findings);
}
