/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/proposal.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

int hvd__proposals_init(struct hvd__proposals *ps, int n, hvd__judge *judge,
                        void *owner)
{
    int *flags;

    HVD_TRY(hvd__allocate(&flags, 3 * (size_t)n, sizeof *flags));
    *ps = (struct hvd__proposals){.n = n,
                                  .joined = flags,
                                  .left = flags + n,
                                  .some = flags + 2 * n,
                                  .judge = judge,
                                  .owner = owner};
    return HVD_OK;
}

void hvd__proposal_free(struct hvd__proposal *proposal)
{
    for (int i = 0; i < proposal->nvariants; i++) {
        free(proposal->variants[i].what);
        free(proposal->variants[i].numbers);
    }
    free(proposal->variants);
    free(proposal->lacking);
    free(proposal->items);
    free(proposal);
}

void hvd__proposals_fini(struct hvd__proposals *ps)
{
    while (ps->table)
        hvd__proposal_remove(ps, ps->table);
    free(ps->joined);
}

/* ------------------------------------------------------------------ judging */

bool hvd__proposal_is_complete(const struct hvd__proposals *ps,
                               const struct hvd__proposal *p)
{
    if (p->nannounced + ps->njoined + ps->nleft < ps->n)
        return false;
    for (int i = 0; p->nannounced < ps->n && i < ps->n; i++)
        if (p->of[i] == 0 && !ps->joined[i] && !ps->left[i])
            return false;
    return true;
}

/* Judges the proposals of a key, of which this is the oldest. */
static int judge_key(struct hvd__proposals *ps, struct hvd__proposal *p,
                     bool all)
{
    while (p) {
        struct hvd__proposal *later = p->later;

        HVD_TRY(ps->judge(ps->owner, p, all));
        p = later;
    }
    return HVD_OK;
}

int hvd__proposals_judge(struct hvd__proposals *ps)
{
    struct hvd__proposal *p, *following;

    HASH_ITER (hh, ps->table, p, following)
        HVD_TRY(judge_key(ps, p, true));
    return HVD_OK;
}

int hvd__proposals_gone(struct hvd__proposals *ps, int member,
                        enum hvd__gone how)
{
    int *flags = how == HVD__GONE_LEFT ? ps->left : ps->joined;

    ps->nleft += how == HVD__GONE_LEFT && !flags[member];
    ps->njoined += how != HVD__GONE_LEFT && !flags[member];
    flags[member] = (int)how;
    return hvd__proposals_judge(ps);
}

void hvd__proposals_rejoin(struct hvd__proposals *ps)
{
    ps->njoined = 0;
    for (int member = 0; member < ps->n; member++)
        ps->joined[member] = 0;
}

/* ------------------------------------------------------------ the proposals */

/* Finds the proposal to which a member's record about key belongs: the oldest
 * that lacks the member, or a new one. */
static int find_or_make(struct hvd__proposals *ps, uint64_t key, int member,
                        struct hvd__proposal **found)
{
    struct hvd__proposal *p, *last = NULL;

    HASH_FIND(hh, ps->table, &key, sizeof key, p);
    while (p && p->of[member] != 0) {
        last = p;
        p = p->later;
    }
    *found = p;
    if (p)
        return HVD_OK;
    HVD_TRY(hvd__allocate(found, 1, sizeof *p + (size_t)ps->n * sizeof *p->of));
    p = *found;
    p->key = key;
    p->priority = INT32_MIN;
    if (last) {
        last->later = p;
        return HVD_OK;
    }
    HASH_ADD(hh, ps->table, key, sizeof p->key, p);
    if (p->hh.tbl)
        return HVD_OK;
    free(p);
    return hvd__fail_memory(sizeof *p);
}

/* A proposal that is not the oldest is taken out when a member that it lacks
 * has left. */
int hvd__proposal_take(struct hvd__proposals *ps, struct hvd__proposal *p)
{
    struct hvd__proposal *oldest, *later = p->later;

    p->later = NULL;
    HASH_FIND(hh, ps->table, &p->key, sizeof p->key, oldest);
    if (oldest != p) {
        while (oldest && oldest->later != p)
            oldest = oldest->later;
        if (oldest)
            oldest->later = later;
        return HVD_OK;
    }
    HASH_DEL(ps->table, p);
    if (!later)
        return HVD_OK;
    HASH_ADD(hh, ps->table, key, sizeof later->key, later);
    return later->hh.tbl ? HVD_OK : hvd__fail_memory(sizeof *later);
}

int hvd__proposal_remove(struct hvd__proposals *ps, struct hvd__proposal *p)
{
    int status = hvd__proposal_take(ps, p);

    hvd__proposal_free(p);
    return status;
}

/* ------------------------------------------------------------ what is said */

/* Finds the number, from 1, of the variant that was announced, and adds it if
 * it is new. The search is linear: there is nearly always one variant. */
static int find_variant(struct hvd__proposal *p, int n,
                        const struct hvd__statement *what, int *number)
{
    size_t bytes = (size_t)what->bytes;
    struct hvd__variant *v;

    for (*number = 1; *number <= p->nvariants; ++*number) {
        v = &p->variants[*number - 1];
        if (v->what->bytes == what->bytes && memcmp(v->what, what, bytes) == 0)
            return HVD_OK;
    }
    v = realloc(p->variants, (size_t)*number * sizeof *v);
    if (!v)
        return hvd__fail_memory((size_t)*number * sizeof *v);
    p->variants = v;
    v += p->nvariants++;
    *v = (struct hvd__variant){0};
    HVD_TRY(hvd__allocate(&v->what, 1, bytes));
    memcpy(v->what, what, bytes);
    return hvd__allocate(&v->numbers, (size_t)n * (size_t)what->nnumbers,
                         sizeof *v->numbers);
}

int hvd__proposals_add(struct hvd__proposals *ps,
                       const struct hvd__announcement *a)
{
    struct hvd__proposal *p = NULL, *oldest = NULL;
    size_t n = (size_t)a->what->nnumbers;

    for (int i = 0; i < a->nwho; i++) {
        size_t member = (size_t)a->who[i];

        /* Members nearly always meet in the oldest. */
        if (!p || p != oldest || p->of[member] != 0)
            HVD_TRY(find_or_make(ps, a->key, a->who[i], &p));
        if (i == 0)
            HASH_FIND(hh, ps->table, &a->key, sizeof a->key, oldest);
        HVD_TRY(find_variant(p, ps->n, a->what, &p->of[member]));
        if (n > 0)
            memcpy(p->variants[p->of[member] - 1].numbers + member * n,
                   a->numbers + (size_t)i * n, n * sizeof *a->numbers);
        if (a->priority > p->priority)
            p->priority = a->priority;
        p->nannounced++;
    }
    return judge_key(ps, oldest, false);
}
