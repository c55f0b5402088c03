/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/proposal.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

void hvd__proposal_free(struct hvd__proposal *proposal)
{
    for (int i = 0; i < proposal->nvariants; i++) {
        free(proposal->variants[i].signatures);
        free(proposal->variants[i].numbers);
        free(proposal->variants[i].text);
    }
    free(proposal->variants);
    free(proposal->lacking);
    free(proposal->items);
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
            hvd__proposal_free(p);
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
    hvd__proposal_free(p);
    return NULL;
}

/* A proposal that is not the oldest is taken out when a member that it lacks
 * has left. */
int hvd__proposal_take(struct hvd__proposal **table, struct hvd__proposal *p)
{
    struct hvd__proposal *oldest, *later = p->later;

    p->later = NULL;
    HASH_FIND(hh, *table, &p->key, sizeof p->key, oldest);
    if (oldest != p) {
        while (oldest && oldest->later != p)
            oldest = oldest->later;
        if (oldest)
            oldest->later = later;
        return HVD_OK;
    }
    HASH_DEL(*table, p);
    if (!later)
        return HVD_OK;
    HASH_ADD(hh, *table, key, sizeof later->key, later);
    return later->hh.tbl ? HVD_OK : hvd__fail_memory(sizeof *later);
}

int hvd__proposal_remove(struct hvd__proposal **table, struct hvd__proposal *p)
{
    int status = hvd__proposal_take(table, p);

    hvd__proposal_free(p);
    return status;
}

static bool is_variant(const struct hvd__variant *v,
                       const struct hvd__announcement *a)
{
    return v->status == a->status && v->fingerprint == a->fingerprint &&
           v->nnumbers == a->nnumbers &&
           (!a->text || strcmp(v->text, a->text) == 0);
}

/* Fills an empty variant with what was announced. Returns false if memory runs
 * out. */
static bool fill_variant(struct hvd__variant *v, int nranks,
                         const struct hvd__announcement *a)
{
    v->fingerprint = a->fingerprint;
    v->status = a->status;
    v->nsignatures = a->nsignatures;
    v->nnumbers = a->nnumbers;
    if (a->text)
        return (v->text = strdup(a->text)) != NULL;
    v->signatures = malloc((unsigned)a->nsignatures * sizeof *v->signatures);
    if (a->nnumbers > 0)
        v->numbers =
            calloc((size_t)nranks * (size_t)a->nnumbers, sizeof *v->numbers);
    if (v->signatures)
        memcpy(v->signatures, a->signatures,
               (unsigned)a->nsignatures * sizeof *v->signatures);
    return v->signatures && (v->numbers || a->nnumbers == 0);
}

/* Returns the number, from 1, of the variant that was announced, and adds it if
 * it is new. Returns 0 if memory runs out. The search is linear: there is
 * nearly always one variant. */
static int find_variant(struct hvd__proposal *p, int nranks,
                        const struct hvd__announcement *a)
{
    struct hvd__variant *grown;

    for (int i = 0; i < p->nvariants; i++)
        if (is_variant(&p->variants[i], a))
            return i + 1;
    grown =
        realloc(p->variants, (size_t)(p->nvariants + 1) * sizeof *p->variants);
    if (!grown)
        return 0;
    p->variants = grown;
    grown[p->nvariants] = (struct hvd__variant){0};
    return fill_variant(&grown[p->nvariants++], nranks, a) ? p->nvariants : 0;
}

/* Adds what one member says. */
static int add_member(struct hvd__proposal *p, int nranks,
                      const struct hvd__announcement *a, int i)
{
    int variant = find_variant(p, nranks, a), rank = a->who[i];
    size_t n = (size_t)a->nnumbers;

    if (variant == 0)
        return hvd__fail_memory(sizeof *p->variants);
    if (n > 0)
        memcpy(p->variants[variant - 1].numbers + (size_t)rank * n,
               a->numbers + (size_t)i * n, n * sizeof *a->numbers);
    if (a->priority > p->priority)
        p->priority = a->priority;
    p->nannounced++;
    p->of[rank] = variant;
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
