/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/proposal.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static void proposal_free(struct hvd__proposal *proposal)
{
    for (int i = 0; i < proposal->nvariants; i++) {
        free(proposal->variants[i].signatures);
        free(proposal->variants[i].text);
    }
    free(proposal->variants);
    free(proposal->lacking);
    free(proposal->numbers);
    free(proposal->of);
    free(proposal);
}

void hvd__proposals_free(struct hvd__proposal **table)
{
    struct hvd__proposal *p, *following;

    HASH_ITER (hh, *table, p, following) {
        HASH_DEL(*table, p);
        while (p) {
            struct hvd__proposal *later = p->later;
            proposal_free(p);
            p = later;
        }
    }
}

static struct hvd__proposal *proposal_new(int nranks, uint64_t key)
{
    struct hvd__proposal *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->key = key;
    p->priority = INT32_MIN;
    p->of = calloc((size_t)nranks, sizeof *p->of);
    if (p->of)
        return p;
    free(p);
    return NULL;
}

/* Returns the proposal to which a member's record about key belongs: the oldest
 * that lacks the member, or a new one. Returns NULL if memory runs out. */
static struct hvd__proposal *find_or_make(struct hvd__proposal **table,
                                          int nranks, uint64_t key, int rank)
{
    struct hvd__proposal *p, *last = NULL;

    HASH_FIND(hh, *table, &key, sizeof key, p);
    for (; p; last = p, p = p->later)
        if (p->of[rank] == 0)
            return p;
    p = proposal_new(nranks, key);
    if (!p)
        return NULL;
    if (last) {
        last->later = p;
        return p;
    }
    HASH_ADD(hh, *table, key, sizeof p->key, p);
    if (p->hh.tbl)
        return p;
    proposal_free(p);
    return NULL;
}

/* The next proposal of the key takes its place. A proposal that is not the
 * oldest is removed when a member that it lacks has left. */
int hvd__proposal_remove(struct hvd__proposal **table, struct hvd__proposal *p)
{
    struct hvd__proposal *oldest, *later = p->later;

    p->later = NULL;
    HASH_FIND(hh, *table, &p->key, sizeof p->key, oldest);
    if (oldest != p) {
        while (oldest && oldest->later != p)
            oldest = oldest->later;
        if (oldest)
            oldest->later = later;
        proposal_free(p);
        return HVD_OK;
    }
    HASH_DEL(*table, p);
    proposal_free(p);
    if (!later)
        return HVD_OK;
    HASH_ADD(hh, *table, key, sizeof later->key, later);
    return later->hh.tbl ? HVD_OK : hvd__fail_memory(sizeof *later);
}

/* Stores the signatures that a variant's fingerprint stands for, if they are
 * not known yet. requests may be NULL. */
static int learn(struct hvd__variant *variant,
                 const struct hvd__request *requests, int n)
{
    if (variant->signatures || !requests)
        return HVD_OK;
    variant->signatures = malloc((size_t)n * sizeof *variant->signatures);
    if (!variant->signatures)
        return hvd__fail_memory((size_t)n * sizeof *variant->signatures);
    for (int i = 0; i < n; i++)
        variant->signatures[i] = requests[i].signature;
    variant->nsignatures = n;
    return HVD_OK;
}

/* Returns the number, from 1, of an equal variant, and adds one if there is
 * none. Returns 0 if memory runs out. The search is linear: there is nearly
 * always one variant. */
static int find_variant(struct hvd__proposal *p, uint64_t fingerprint,
                        int status, const char *text)
{
    struct hvd__variant *grown;

    for (int i = 0; i < p->nvariants; i++) {
        const struct hvd__variant *v = &p->variants[i];
        if (v->status == status && v->fingerprint == fingerprint &&
            (!text || strcmp(v->text, text) == 0))
            return i + 1;
    }
    grown =
        realloc(p->variants, (size_t)(p->nvariants + 1) * sizeof *p->variants);
    if (!grown)
        return 0;
    p->variants = grown;
    grown[p->nvariants] =
        (struct hvd__variant){.fingerprint = fingerprint, .status = status};
    if (text && !(grown[p->nvariants].text = strdup(text)))
        return 0;
    return ++p->nvariants;
}

static int take_numbers(struct hvd__proposal *p, int nranks, int rank,
                        const int64_t *numbers, int n)
{
    size_t total = (size_t)nranks * (size_t)n;

    if (!p->numbers) {
        p->numbers = calloc(total, sizeof *p->numbers);
        if (!p->numbers)
            return hvd__fail_memory(total * sizeof *p->numbers);
        p->nnumbers = n;
    }
    /* A different count means that the variants differ, so the proposal will
     * fail. */
    if (p->nnumbers == n)
        memcpy(p->numbers + rank * n, numbers, (size_t)n * sizeof *numbers);
    return HVD_OK;
}

/* Adds what one member says. */
static int add_member(struct hvd__proposal *p, int nranks,
                      const struct hvd__announcement *a, int i)
{
    int variant = find_variant(p, a->fingerprint, a->status, a->text);

    if (variant == 0)
        return hvd__fail_memory(sizeof *p->variants);
    HVD_TRY(learn(&p->variants[variant - 1], a->requests, a->nrequests));
    if (a->nnumbers > 0)
        HVD_TRY(take_numbers(p, nranks, a->who[i],
                             a->numbers + (size_t)i * (size_t)a->nnumbers,
                             a->nnumbers));
    if (a->priority > p->priority)
        p->priority = a->priority;
    p->nannounced++;
    p->of[a->who[i]] = variant;
    return HVD_OK;
}

int hvd__proposals_add(struct hvd__proposal **table, int nranks,
                       const struct hvd__announcement *a,
                       struct hvd__proposal **oldest)
{
    struct hvd__proposal *p = NULL;

    for (int i = 0; i < a->nwho; i++) {
        /* Members nearly always meet in the oldest. */
        if (!p || p != *oldest || p->of[a->who[i]] != 0)
            p = find_or_make(table, nranks, a->key, a->who[i]);
        if (!p)
            return hvd__fail_memory(sizeof *p);
        if (i == 0)
            HASH_FIND(hh, *table, &a->key, sizeof a->key, *oldest);
        HVD_TRY(add_member(p, nranks, a, i));
    }
    return HVD_OK;
}
