/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore.c - goes back to the newest commit that all ranks can have.
 *
 * Each rank first hashes its copies again, and no longer counts one that is not
 * what it was. Then two allreduces decide:
 *
 *     1. The number: the least of the ranks' newest complete numbers, or, if
 *        that is larger, the newest that any rank has agreed. A process that
 *        has joined has none, and does not count.
 *     2. Who has it, and whether all have the same. If they do not, and no rank
 *        has agreed that number, it is one that all had prepared when a rank
 *        died, and nobody had compared yet: then the one before is taken.
 *
 * Ranks without the commit get it from the lowest that has it, by broadcasts
 * into their slot, which counts as complete only when all have arrived. In the
 * end each rank copies its slot to the memory of the pieces. If one more rank
 * is lost meanwhile, the slots are still what they were, and the next restore
 * finds the same number. At a rank that has finished, the other slot is empty,
 * and does not tempt the others to a newer number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/world/exclude.h"
#include "state/copy.h"
#include "state/state.h"

/* A number that no commit has. */
#define NONE INT64_MAX

/* The ranks decide together which commit they restore. */
struct choice {
    int64_t number; /* 0: there is no commit */
    int64_t agreed; /* the highest that a rank has agreed; 0: none */
    int slot;       /* which has it here; -1: none */
    int root;       /* the lowest rank that has it */
    bool missing;   /* a rank does not have it, or has other bits */
    struct hvd__kept_sets sets; /* owned: the process sets at that commit */
};

/* Returns the slot that has a commit complete; -1: none. */
static int slot_of(int64_t number)
{
    for (int slot = 0; slot < 2; slot++)
        if (number > 0 && hvd__state.slots[slot].number == number)
            return slot;
    return -1;
}

/* Clears slots whose copies are not what was copied. */
static void verify(void)
{
    const struct hvd__state *s = &hvd__state;

    for (int slot = 0; slot < 2; slot++)
        for (int32_t i = 0; i < s->npieces && s->slots[slot].number > 0; i++) {
            const struct hvd__piece *p = &s->pieces[i];

            if (p->numbers[slot] == s->slots[slot].number &&
                hvd__copy_hashed(NULL, p->copies[slot], p->bytes) !=
                    p->hashes[slot])
                hvd__slot_clear(slot);
        }
}

static int choose_number(struct choice *choice)
{
    const struct hvd__commit_slot *slots = hvd__state.slots;
    int64_t newest = 0, agreed = 0, least[2];

    for (int i = 0; i < 2; i++) {
        if (slots[i].number > newest)
            newest = slots[i].number;
        if (slots[i].agreed && slots[i].number > agreed)
            agreed = slots[i].number;
    }
    least[0] = newest > 0 ? newest : NONE;
    least[1] = -agreed;
    HVD_TRY(hvd_allreduce(least, least, 2, HVD_INT64, HVD_MIN));
    choice->agreed = -least[1];
    choice->number = least[0] == NONE            ? 0
                     : least[0] > choice->agreed ? least[0]
                                                 : choice->agreed;
    return HVD_OK;
}

/* Finds out who has the number, and whether all have the same. Returns 1 if
 * they have. */
static int compare(struct choice *choice)
{
    int64_t least[4], hash;

    choice->slot = slot_of(choice->number);
    hash = choice->slot < 0 ? 0 : (int64_t)hvd__pieces_hash(choice->slot);
    least[0] = choice->slot < 0 ? NONE : hash;
    least[1] = choice->slot < 0 ? NONE : ~hash;
    least[2] = choice->slot < 0 ? NONE : hvd_rank();
    least[3] = choice->slot < 0 ? 0 : 1;
    HVD_TRY(hvd_allreduce(least, least, 4, HVD_INT64, HVD_MIN));
    choice->root = (int)least[2];
    choice->missing = least[3] == 0 || least[0] != ~least[1];
    return least[0] == ~least[1];
}

/* Collective. */
static int choose(struct choice *choice)
{
    int alike;

    *choice = (struct choice){.slot = -1};
    verify();
    HVD_TRY(choose_number(choice));
    if (choice->number == 0)
        return HVD_OK;
    HVD_TRY(alike = compare(choice));
    if (alike || choice->number == choice->agreed)
        return HVD_OK;
    if (choice->slot >= 0)
        hvd__slot_clear(choice->slot);
    choice->number = choice->agreed;
    if (choice->number > 0)
        HVD_TRY(compare(choice));
    return HVD_OK;
}

/* --------------------------------------------------------------- receiving */

/* Returns where a broadcast of a piece begins or ends on this rank: its copy,
 * its memory if the root has no copy of it, or scratch for what it keeps. */
static void *place_of(struct hvd__piece *p, const struct choice *choice,
                      bool copied, void *scratch)
{
    const bool root = choice->root == hvd_rank();
    const bool has = choice->slot >= 0 && p->numbers[choice->slot] > 0;

    if (root)
        return copied ? p->copies[choice->slot] : p->memory;
    if (p->flags & HVD_STATE_PER_RANK && has)
        return scratch;
    return p->copies[choice->slot < 0 ? !hvd__state.current : choice->slot];
}

static size_t largest_piece(void)
{
    size_t bytes = 1;

    for (int32_t i = 0; i < hvd__state.npieces; i++)
        if (hvd__state.pieces[i].bytes > bytes)
            bytes = hvd__state.pieces[i].bytes;
    return bytes;
}

/* Collective: every rank takes part in the broadcast of every piece. */
static int receive_pieces(const struct choice *choice, int slot, void *scratch)
{
    struct hvd__state *s = &hvd__state;

    for (int32_t i = 0; i < s->npieces; i++) {
        struct hvd__piece *p = &s->pieces[i];
        int32_t copied = choice->slot >= 0 && p->numbers[choice->slot] > 0;
        void *place;

        HVD_TRY(hvd_broadcast(&copied, 1, HVD_INT32, choice->root));
        place = place_of(p, choice, copied, scratch);
        HVD_TRY(
            hvd_broadcast(place, (int64_t)p->bytes, HVD_UINT8, choice->root));
        if (place != p->copies[slot])
            continue;
        p->hashes[slot] = hvd__copy_hashed(NULL, place, p->bytes);
        p->numbers[slot] = choice->number;
    }
    return HVD_OK;
}

/* The slot is not complete any more. */
static void forget_slot(int slot)
{
    hvd__state.slots[slot].number = 0;
    hvd__state.slots[slot].agreed = false;
}

/* Collective. A slot that gets other bits than it has is not complete until all
 * of them are there. One that gets the same bits stays complete: the root may
 * die before it has sent all. */
static int forget_other_bits(const struct choice *choice, int slot)
{
    const uint64_t mine = hvd__pieces_hash(slot);
    uint64_t theirs = mine;

    HVD_TRY(hvd_broadcast(&theirs, 1, HVD_INT64, choice->root));
    if (choice->slot < 0 || theirs != mine)
        forget_slot(slot);
    return HVD_OK;
}

/* Collective. Gives the commit to the ranks that lack it. */
static int spread(struct choice *choice)
{
    const int slot = choice->slot < 0 ? !hvd__state.current : choice->slot;
    void *scratch = malloc(largest_piece());
    int status = scratch ? hvd__pieces_allocate(slot)
                         : hvd__fail_memory(largest_piece());

    hvd__state.kept = false; /* the slot may be the one that had it */
    status = hvd__agree(0, status);
    if (status == HVD_OK)
        status = forget_other_bits(choice, slot);
    if (status == HVD_OK)
        status = receive_pieces(choice, slot, scratch);
    free(scratch);
    HVD_TRY(status);
    choice->slot = slot;
    hvd__state.slots[slot].number = choice->number;
    return HVD_OK;
}

/* Collective. Gets the list of process sets of the commit from the root. */
static int get_sets(struct choice *choice)
{
    const bool root = choice->root == hvd_rank();
    struct hvd__kept_sets *sets = &choice->sets;
    int status = HVD_OK;

    if (root)
        sets->nwords = hvd__state.slots[choice->slot].sets.nwords;
    HVD_TRY(hvd_broadcast(&sets->nwords, 1, HVD_INT64, choice->root));
    if (sets->nwords == 0)
        return HVD_OK;
    sets->words = malloc((size_t)sets->nwords * sizeof *sets->words);
    if (!sets->words)
        status = hvd__fail_memory((size_t)sets->nwords * sizeof *sets->words);
    HVD_TRY(hvd__agree(0, status));
    if (root)
        memcpy(sets->words, hvd__state.slots[choice->slot].sets.words,
               (size_t)sets->nwords * sizeof *sets->words);
    return hvd_broadcast(sets->words, sets->nwords, HVD_INT64, choice->root);
}

/* ---------------------------------------------------------------- restoring */

/* Makes the slot the only one, and its copies the state. */
static void adopt(struct choice *choice)
{
    struct hvd__state *s = &hvd__state;

    hvd__slot_clear(!choice->slot);
    s->current = choice->slot;
    hvd__kept_sets_free(&s->slots[s->current].sets);
    s->slots[s->current].sets = choice->sets;
    choice->sets = (struct hvd__kept_sets){.words = NULL};
    s->slots[s->current].agreed = true;
    s->last = choice->number;
    s->kept = false;
    s->restores++;
    for (int32_t i = 0; i < s->npieces; i++) {
        struct hvd__piece *p = &s->pieces[i];

        if (p->numbers[s->current] == choice->number && p->bytes > 0)
            memcpy(p->memory, p->copies[s->current], p->bytes);
    }
}

/* Returns the copy that keep_pieces makes of a piece; NULL: none. */
static void *kept_copy(const struct hvd__piece *p)
{
    const bool is_synced = !(p->flags & HVD_STATE_PER_RANK) && p->bytes > 0;

    return is_synced ? p->copies[!hvd__state.current] : NULL;
}

/* Before the first commit: copies what a sync is about to overwrite to the
 * spare, if there is memory. A rank that is lost in the sync would leave a
 * mixture of its state and that of this rank. */
static void keep_pieces(void)
{
    struct hvd__state *s = &hvd__state;

    if (s->kept || s->slots[0].number > 0 || s->slots[1].number > 0 ||
        hvd__pieces_allocate(!s->current) < 0)
        return;
    for (int32_t i = 0; i < s->npieces; i++)
        if (kept_copy(&s->pieces[i]))
            memcpy(kept_copy(&s->pieces[i]), s->pieces[i].memory,
                   s->pieces[i].bytes);
    s->kept = true;
}

static void put_back(void)
{
    struct hvd__state *s = &hvd__state;

    for (int32_t i = 0; i < s->npieces && s->kept; i++)
        if (kept_copy(&s->pieces[i]))
            memcpy(s->pieces[i].memory, kept_copy(&s->pieces[i]),
                   s->pieces[i].bytes);
    s->kept = false;
}

static void adopt_nothing(void)
{
    put_back();
    hvd__slot_clear(0);
    hvd__slot_clear(1);
    hvd__state.last = 0;
}

/* Collective. Gives all ranks the commit that was chosen, with the process sets
 * that there were, if the world is new. */
static int take(struct choice *choice, bool is_new)
{
    HVD_TRY(get_sets(choice));
    if (choice->missing)
        HVD_TRY(spread(choice));
    adopt(choice);
    return is_new
               ? hvd__kept_sets_make(&hvd__state.slots[hvd__state.current].sets)
               : HVD_OK;
}

/* Collective. Fails if the ranks have registered different pieces. If a rank
 * that has just joined is the one that differs, it alone fails so: it is
 * excluded, which is a loss for the others. */
static int compare_pieces(bool is_new)
{
    char text[HVD__MESSAGE_MAX];
    hvd_recovery how = {.size = sizeof how};
    int odd, status = hvd__pieces_compare(&odd);

    if (status != HVD_ERR_MISMATCH || !is_new)
        return status;
    snprintf(text, sizeof text, "%s", hvd_last_error());
    HVD_TRY(hvd_last_recovery(&how, sizeof how));
    if (odd == 0 || odd < hvd_size() - how.njoined)
        return hvd__fail_text(status, text);
    if (hvd_rank() == 0)
        hvd__log(HVD__LOG_WARNING, "rank %d, which has joined, is left out: %s",
                 odd, text);
    status = hvd__world_exclude(odd);
    return odd == hvd_rank() ? hvd__fail_text(HVD_ERR_MISMATCH, text) : status;
}

int hvd_restore(void)
{
    int32_t is_new;
    struct choice choice;
    int status;

    if (!hvd_is_initialized())
        return hvd__fail(HVD_ERR_NOT_INITIALIZED,
                         "a restore needs hvd_init first");
    hvd__commit_settle();
    is_new = hvd__world_is_new();
    HVD_TRY(hvd_allreduce(&is_new, &is_new, 1, HVD_INT32, HVD_MAX));
    HVD_TRY(compare_pieces(is_new));
    HVD_TRY(choose(&choice));
    if (choice.number == 0) {
        adopt_nothing();
    } else {
        status = take(&choice, is_new);
        hvd__kept_sets_free(&choice.sets);
        HVD_TRY(status);
    }
    HVD_TRY(hvd__world_announce(is_new, choice.number > 0));
    return choice.number > 0;
}

int hvd_state_sync(int root)
{
    int odd;

    if (!hvd_is_initialized())
        return hvd__fail(HVD_ERR_NOT_INITIALIZED,
                         "a sync needs hvd_init first");
    hvd__commit_settle();
    HVD_TRY(hvd__pieces_compare(&odd));
    keep_pieces();
    for (int32_t i = 0; i < hvd__state.npieces; i++) {
        const struct hvd__piece *p = &hvd__state.pieces[i];

        if (!(p->flags & HVD_STATE_PER_RANK))
            HVD_TRY(
                hvd_broadcast(p->memory, (int64_t)p->bytes, HVD_UINT8, root));
    }
    hvd__state.kept = false;
    return HVD_OK;
}
