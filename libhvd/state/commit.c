/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit.c - commits: copies the pieces to the spare slot, has the ranks agree
 * that all have done so, and makes the spare the current slot.
 *
 *     hvd_commit_start   clears the spare, starts the copier
 *     copier             copies and hashes piece by piece; then the spare has
 *                        its number: it is complete
 *     hvd_commit_wait    joins the copier; one allreduce of 80 bytes, and 8 for
 *                        each rank; the flip
 *
 * The allreduce finds the least of each number that a rank gives, and of its
 * complement, whose least is the largest: both agree if all ranks gave the
 * same. It carries the number of the commit, the hash of all pieces that are
 * the same on all ranks, the hash of the list of pieces, the lowest rank that
 * has failed, whom hvd_exclude named, and how long each rank was busy, as the
 * minimum of that and of what the others leave empty. Only if something differs
 * the ranks go on to find out what.
 *
 * What a death does:
 *
 *     while the copier runs     the spare is not complete here; elsewhere it
 *                               may be
 *     in the allreduce          the spare is complete on all survivors that
 *                               have come so far. Some may have its result
 *     after it                  the spare is agreed on some, complete on all
 *
 * restore.c makes the same of all these on all survivors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/status.h"
#include "base/thread.h"
#include "core/world/exclude.h"
#include "state/copy.h"
#include "state/state.h"

/* The numbers that the allreduce carries. The complement of a number follows
 * it, so that one minimum finds its maximum, too. */
enum {
    NUMBER,
    HASH = 2,
    LIST = 4,
    FAILED = 6,
    JOINERS,
    EXCLUDED, /* a rank */
    PASSED,   /* of rank 0, since the last commit */
    BUSY,     /* of each rank */
};

/* A field that a rank leaves empty. */
#define EMPTY INT64_MAX

double hvd__state_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void hvd__slot_clear(int slot)
{
    struct hvd__state *s = &hvd__state;

    hvd__kept_sets_free(&s->slots[slot].sets);
    s->slots[slot] = (struct hvd__commit_slot){0};
    for (int32_t i = 0; i < s->npieces; i++)
        s->pieces[i].numbers[slot] = 0;
}

/* ---------------------------------------------------------------- copying */

/* Copies everything to the spare, which is complete then. */
static int copy_all(int64_t number)
{
    struct hvd__state *s = &hvd__state;
    const int spare = !s->current;
    const double begun = hvd__state_seconds();

    if (s->slots[spare].sets.nwords < 0)
        return hvd__fail(HVD_ERR_MEMORY, "no memory to list process sets");
    HVD_TRY(hvd__pieces_allocate(spare));
    for (int32_t i = 0; i < s->npieces; i++) {
        struct hvd__piece *p = &s->pieces[i];

        p->hashes[spare] =
            hvd__copy_hashed(p->copies[spare], p->memory, p->bytes);
        p->numbers[spare] = number;
    }
    s->slots[spare].number = number;
    s->copier_seconds = hvd__state_seconds() - begun;
    return HVD_OK;
}

static void *run_copier(void *argument)
{
    (void)argument;
    hvd__state.copy_status = copy_all(hvd__state.last + 1);
    return NULL;
}

/* Returns the status of the copy, with its text on this thread. */
static int join_copier(void)
{
    struct hvd__state *s = &hvd__state;

    if (!s->copying)
        return s->copy_status;
    pthread_join(s->copier, NULL);
    s->copying = false;
    return s->copy_status < 0
               ? hvd__fail(s->copy_status,
                           "no memory for a copy of the state, of %lld bytes",
                           (long long)hvd__state_bytes())
               : HVD_OK;
}

void hvd__commit_settle(void)
{
    if (hvd__state.started)
        join_copier();
    hvd__state.started = false;
}

/* --------------------------------------------------------------- agreeing */

/* Collective. Fails with the first piece whose copies differ. */
static int name_difference(int slot)
{
    const struct hvd__state *s = &hvd__state;
    int64_t place = INT64_MAX, item, rank;

    for (int32_t i = 0; i < s->npieces; i++) {
        const uint64_t mine = s->pieces[i].hashes[slot];
        uint64_t theirs = mine;

        if (s->pieces[i].flags & HVD_STATE_PER_RANK)
            continue;
        HVD_TRY(hvd_broadcast(&theirs, 1, HVD_INT64, 0));
        if (place == INT64_MAX && theirs != mine)
            place = (int64_t)i * hvd_size() + hvd_rank();
    }
    HVD_TRY(hvd_allreduce(&place, &place, 1, HVD_INT64, HVD_MIN));
    item = place / hvd_size();
    rank = place % hvd_size();
    if (item >= s->npieces)
        return hvd__fail(HVD_ERR_INTERNAL, "the hashes of a commit differ, and "
                                           "those of its pieces do not");
    return hvd__fail(HVD_ERR_INCONSISTENT,
                     "piece '%s' of the state has other bits on rank %d than "
                     "on rank 0: the ranks have diverged, or it is one of "
                     "HVD_STATE_PER_RANK",
                     s->pieces[item].name, (int)rank);
}

static void put(int64_t *fields, int64_t value)
{
    fields[0] = value;
    fields[1] = ~value;
}

static bool differs(const int64_t *fields)
{
    return fields[0] != ~fields[1];
}

/* The numbers that the allreduce of a commit carries. */
struct talk {
    int64_t fields[BUSY + HVD__MEASURED_RANKS];
    int n; /* fields that are used */
    bool is_measured;
};

/* Writes what this rank says. */
static void talk_init(struct talk *talk, int64_t number, int status)
{
    const int spare = !hvd__state.current, excluded = hvd__world_excluded();
    /* The array's address is taken; nothing is read of it. */
    /* cppcheck-suppress ctuuninitvar */
    int64_t passed = 0, busy = 0, *fields = talk->fields;

    talk->is_measured = hvd__straggler_measure(&passed, &busy);
    talk->n = BUSY + (talk->is_measured ? hvd_size() : 0);
    put(&fields[NUMBER], number);
    put(&fields[HASH], (int64_t)hvd__pieces_hash(spare));
    put(&fields[LIST], (int64_t)hvd__pieces_list_hash());
    fields[FAILED] = status < 0 ? hvd_rank() : EMPTY;
    fields[JOINERS] = -hvd_joiners();
    fields[EXCLUDED] = excluded >= 0 ? excluded : EMPTY;
    fields[PASSED] = hvd_rank() == 0 ? passed : EMPTY;
    for (int i = BUSY; i < talk->n; i++)
        fields[i] = i - BUSY == hvd_rank() ? busy : EMPTY;
}

/* Judges what all have said of the commit. */
static int judge_commit(const int64_t *fields, int status)
{
    int odd;

    if (fields[FAILED] != EMPTY)
        return hvd__agree(0, status);
    if (differs(&fields[LIST]))
        return hvd__pieces_compare(&odd);
    if (differs(&fields[NUMBER]))
        return hvd__fail(HVD_ERR_MISMATCH,
                         "the ranks make different commits: %lld and %lld. "
                         "Behind a loss, or in a process that has joined, call "
                         "hvd_restore first, on all ranks",
                         (long long)fields[NUMBER],
                         (long long)~fields[NUMBER + 1]);
    return differs(&fields[HASH]) ? name_difference(!hvd__state.current)
                                  : HVD_OK;
}

/* Collective: finds out whether the spare is complete on all ranks, and alike.
 * status: this rank's, with its text kept. */
static int agree(struct talk *talk, int status)
{
    int64_t *fields = talk->fields;

    HVD_TRY(hvd_allreduce(fields, fields, talk->n, HVD_INT64, HVD_MIN));
    hvd__state.awaited = fields[JOINERS] < 0;
    return judge_commit(fields, status);
}

/* ---------------------------------------------------------------- commits */

static int begin(void)
{
    struct hvd__state *s = &hvd__state;

    if (!hvd_is_initialized())
        return hvd__fail(HVD_ERR_NOT_INITIALIZED,
                         "a commit needs hvd_init first");
    if (s->started)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "a commit was begun by hvd_commit_start: call "
                         "hvd_commit_wait first");
    if (s->last > 0 && hvd__world_is_new() && hvd__world_was_known())
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the world is another one than at the last commit: "
                         "call hvd_restore first");
    hvd__slot_clear(!s->current);
    s->kept = false;
    s->copy_status = HVD_OK;
    hvd__kept_sets_list(&s->slots[!s->current].sets);
    return HVD_OK;
}

/* Makes the spare the newest commit. */
static void flip(int64_t number)
{
    struct hvd__state *s = &hvd__state;

    s->current = !s->current;
    s->slots[s->current].agreed = true;
    s->last = number;
    s->commits++;
    s->copy_seconds = s->copier_seconds;
    hvd__world_settle();
}

/* Does what the ranks have agreed on beside the commit. */
static int follow(const struct talk *talk)
{
    const int64_t *fields = talk->fields;

    if (fields[EXCLUDED] != EMPTY)
        return hvd__world_exclude((int)fields[EXCLUDED]);
    if (talk->is_measured)
        hvd__straggler_judge(fields[PASSED], &fields[BUSY]);
    return HVD_OK;
}

/* Agrees on what has been copied, and makes it the newest commit. */
static int agree_and_flip(int status)
{
    const int64_t number = hvd__state.last + 1;
    struct talk talk;

    talk_init(&talk, number, status);
    status = agree(&talk, status);
    if (status == HVD_OK) {
        flip(number);
        status = follow(&talk);
    } else if (status != HVD_ERR_LOST && status != HVD_ERR_STALLED &&
               status != HVD_ERR_SHUTDOWN) { /* else another may have agreed */
        hvd__slot_clear(!hvd__state.current);
    }
    return status;
}

/* Lets in who waits, and gives them the state. Returns 1 if the world is new.
 */
static int let_in(void)
{
    int status;

    hvd__state.awaited = false;
    HVD_TRY(status = hvd_grow(NULL, 0));
    if (status == 0)
        return HVD_OK;
    /* Those who must not stay, or are lost now, are left out here. */
    status = hvd_restore();
    while (status == HVD_ERR_LOST) {
        HVD_TRY(hvd_recover(NULL, 0));
        status = hvd_restore();
    }
    return status < 0 ? status : 1;
}

static int commit_now(void)
{
    const double begun = hvd__state_seconds();
    int status;

    HVD_TRY(begin());
    status = agree_and_flip(copy_all(hvd__state.last + 1));
    hvd__state.wait_seconds = hvd__state_seconds() - begun;
    return status;
}

int hvd_commit(void)
{
    HVD_TRY(commit_now());
    return hvd__state.awaited ? let_in() : HVD_OK;
}

int hvd_commit_start(void)
{
    struct hvd__state *s = &hvd__state;
    const double begun = hvd__state_seconds();

    HVD_TRY(begin());
    s->started = true;
    s->copying = true;
    if (hvd__thread_start(&s->copier, "hvd-commit", run_copier, NULL) < 0) {
        s->copying = false;
        s->copy_status = copy_all(s->last + 1);
    }
    s->wait_seconds = hvd__state_seconds() - begun;
    return HVD_OK;
}

int hvd_commit_wait(void)
{
    struct hvd__state *s = &hvd__state;
    const double begun = hvd__state_seconds();
    int status;

    if (!s->started)
        return HVD_OK;
    status = join_copier();
    s->started = false;
    status = agree_and_flip(status);
    s->wait_seconds += hvd__state_seconds() - begun;
    return status;
}

/* ------------------------------------------------------------ what is known */

int64_t hvd__state_bytes(void)
{
    int64_t bytes = 0;

    for (int32_t i = 0; i < hvd__state.npieces; i++)
        bytes += (int64_t)hvd__state.pieces[i].bytes;
    return bytes;
}

int hvd_state_get_info(hvd_state_info *info)
{
    const struct hvd__state *s = &hvd__state;
    const struct hvd__commit_slot *now = &s->slots[s->current];

    if (!info || info->size < sizeof *info)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the place for what is known of the state is %s: its "
                         "size is that of version %s, %zu",
                         info ? "too small" : "NULL", HVD_VERSION_STRING,
                         sizeof *info);
    *info = (hvd_state_info){.size = info->size,
                             .pieces = s->npieces,
                             .bytes = hvd__state_bytes(),
                             .commit = now->agreed ? now->number : 0,
                             .commits = s->commits,
                             .restores = s->restores,
                             .copy_seconds = s->copy_seconds,
                             .wait_seconds = s->wait_seconds};
    return HVD_OK;
}
