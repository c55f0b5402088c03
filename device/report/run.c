/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - adds up the slots of a pipeline.
 *
 * All chips synchronise between slots. So a slot lasts as long as the stages of
 * its slowest chip, and the time that other chips wait is idle: chips without
 * work, because the pipeline fills or empties, and chips that are done early,
 * because stages differ. Updates follow the slots of stages and are counted
 * separately.
 */
#include "report/run.h"

#include <stdlib.h>
#include <string.h>

bool ipu__has_pipeline(const struct ipu_profile *profile)
{
    return profile->nslots > 0 || profile->run.nstages > 0;
}

void ipu__run_free(struct ipu__profile_run *run)
{
    free(run->stages);
    free(run->chips);
    *run = (struct ipu__profile_run){0};
}

/* ------------------------------------------------------------------- checks */

/* The limit keeps sums of a few numbers far below what 64 bits can hold. */
static const int64_t MOST = (int64_t)1 << 55;

static bool possible(const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i] < 0 || numbers[i] > MOST)
            return false;
    return true;
}

static bool stage_is_possible(const struct ipu__profile_stage *s)
{
    const int64_t numbers[] = {
        s->position,    s->ipu,        s->forward,
        s->backward,    s->recompute,  s->stash_bytes,
        s->stash_depth, s->sent_bytes, s->ns < 0 ? 0 : s->ns};

    return possible(numbers, sizeof numbers / sizeof *numbers);
}

static bool chip_is_possible(const struct ipu__profile_chip *c)
{
    const int64_t numbers[] = {
        c->ipu,           c->update,          c->offload,
        c->stash_bytes,   c->variable_bytes,  c->program_bytes,
        c->tile_bytes,    c->streaming_bytes, c->automatic_bytes,
        c->bytes_per_tile};

    return possible(numbers, sizeof numbers / sizeof *numbers);
}

static bool sums_are_possible(const struct ipu__profile_run *r)
{
    const int64_t numbers[] = {
        r->replicas, r->mini_batches, r->updates, r->slots, r->total,
        r->work,     r->exchange,     r->sync,    r->host,  r->update};

    return possible(numbers, sizeof numbers / sizeof *numbers) &&
           r->clock_hz > 0 && r->clock_hz < 1e15 &&
           (!r->measured || r->times.runs > 0);
}

int ipu__run_check(const char *where, const struct ipu__profile_run *run)
{
    bool good = sums_are_possible(run);

    for (int32_t i = 0; i < run->nstages && good; i++)
        good = stage_is_possible(&run->stages[i]);
    for (int32_t i = 0; i < run->nchips && good; i++)
        good = chip_is_possible(&run->chips[i]);
    return good ? IPU_OK
                : ipu__fail(IPU_ERR_DATA,
                            "%s: the run of the pipeline has a number that "
                            "cannot be",
                            where);
}

/* -------------------------------------------------------------------- slots */

static int by_slot_and_chip(const void *first, const void *second)
{
    const ipu_pipeline_slot *a = first, *b = second;

    if (a->slot != b->slot)
        return a->slot < b->slot ? -1 : 1;
    return a->ipu < b->ipu ? -1 : a->ipu > b->ipu;
}

/* The sums of the current slot. */
struct slot {
    int64_t stages, updates; /* cycles of the slowest chip */
    int64_t busy;
    int32_t working; /* chips with stages */
};

/* Adds all entries of a chip in the slot, from first on. Returns how many. */
static size_t add_chip(const ipu_pipeline_slot *first, size_t left,
                       struct slot *slot, int64_t *chips)
{
    int64_t stages = 0, update = 0;
    bool works = false;
    size_t n = 0;

    for (;
         n < left && first[n].slot == first->slot && first[n].ipu == first->ipu;
         n++)
        if (first[n].kind == IPU_STAGE_UPDATE) {
            update += first[n].cycles;
        } else {
            stages += first[n].cycles;
            works = true;
        }
    if (slot->stages < stages)
        slot->stages = stages;
    if (slot->updates < update)
        slot->updates = update;
    slot->busy += stages;
    slot->working += works;
    chips[first->ipu] += stages;
    return n;
}

static void add_slot(const struct slot *slot, struct ipu__slots_account *a)
{
    a->stages += slot->stages;
    a->updates += slot->updates;
    a->busy += (double)slot->busy;
    a->empty += (double)slot->stages * (a->ipus - slot->working);
    a->waiting += (double)slot->stages * slot->working - (double)slot->busy;
    a->level += slot->working > 0 ? slot->busy / slot->working : 0;
}

static void find_extent(const struct ipu_profile *p,
                        struct ipu__slots_account *a)
{
    for (int32_t i = 0; i < p->nslots; i++) {
        if (p->slots[i].ipu >= a->ipus)
            a->ipus = p->slots[i].ipu + 1;
        if (p->slots[i].slot >= a->slots)
            a->slots = p->slots[i].slot + 1;
    }
}

int ipu__account_slots(const struct ipu_profile *p,
                       struct ipu__slots_account *account)
{
    struct ipu__slots_account a = {0};
    size_t n = (size_t)p->nslots;
    ipu_pipeline_slot *sorted = malloc((n + 1) * sizeof *sorted);
    int64_t *chips;

    find_extent(p, &a);
    chips = calloc((size_t)a.ipus + 1, sizeof *chips);
    if (!sorted || !chips) {
        free(sorted);
        free(chips);
        return ipu__fail_memory(n * sizeof *sorted);
    }
    if (n > 0)
        memcpy(sorted, p->slots, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_slot_and_chip);
    for (size_t i = 0; i < n;) {
        int32_t number = sorted[i].slot;
        struct slot slot = {0};

        while (i < n && sorted[i].slot == number)
            i += add_chip(&sorted[i], n - i, &slot, chips);
        add_slot(&slot, &a);
    }
    for (int32_t c = 0; c < a.ipus; c++)
        if (chips[c] > chips[a.slowest])
            a.slowest = c;
    a.slowest_cycles = chips[a.slowest];
    free(sorted);
    free(chips);
    *account = a;
    return IPU_OK;
}
