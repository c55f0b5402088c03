/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coordinator.c - agreement by name.
 *
 * A proposal gathers what the ranks submitted under one key. It keeps every
 * distinct thing that was submitted (a variant) and which rank submitted
 * which. When every rank has announced:
 *
 *     one variant                the proposal is ready
 *     several                    it fails everywhere: HVD_ERR_MISMATCH
 *     some were refused theirs   it fails where it was not: HVD_ERR_PEER
 *     all were refused           nobody waits for it; forgotten
 *
 * A rank may announce a key again before the others have announced it once:
 * its request was refused (a duplicate, say) while they have yet to come.
 * Proposals of one key therefore form a chain, oldest first, and what a rank
 * says goes to the first that lacks it. So the k-th submission of a name on
 * one rank meets the k-th on every other, refused ones included, whatever the
 * timing: a program that makes the same mistake on all ranks, and then the
 * right call, gets the same answers everywhere.
 *
 * A rank that has left will never announce what a proposal lacks. Such a
 * proposal fails at once for those who wait, and for each other rank when it
 * comes, in the same words; it is kept until every rank has come or left.
 *
 * Ready proposals wait for room: while two batches are under way the next
 * ones gather and are fused. No clock is involved; a lone request goes at
 * once, and the busier the engine the larger the batches.
 *
 * A failure says who submitted what, in full, once, for all ranks.
 */
#include "core/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/fuse.h"
#include "core/text.h"

struct variant {
    struct hvd__signature signature;
    int status; /* negative: refused, for the reason text */
    char *text; /* owned */
};

enum { ANSWERED = -1 };

struct proposal {
    UT_hash_handle hh;        /* the oldest of its key is in the table */
    struct proposal *later;   /* owned: the next of the same key */
    struct proposal *next;    /* owned, once ready: the next that is ready */
    struct variant *variants; /* owned */
    int nvariants;
    int nannounced;
    int *of;       /* owned, [nranks]: 0 not yet, i + 1 submitted variants[i],
                      ANSWERED: did, and was told that it fails */
    char *lacking; /* owned; once a rank that it lacks has left: who */
    char key[HVD__KEY_SIZE];
};

struct hvd__coordinator {
    int nranks;
    size_t threshold;
    struct proposal *table; /* owned, by key */
    struct proposal *ready; /* owned list, in order of readiness */
    struct proposal **ready_tail;
    int nready;
    const struct hvd__signature **signatures; /* owned scratch, [capacity] */
    bool *taken;                              /* likewise */
    int capacity;
    int *left; /* owned, [nranks] */
    int nleft;
    bool closed;
    bool broken;
    struct hvd__writer out; /* decisions not yet taken by the caller */
};

static void proposal_free(struct proposal *proposal)
{
    if (!proposal)
        return;
    for (int i = 0; i < proposal->nvariants; i++)
        free(proposal->variants[i].text);
    free(proposal->variants);
    free(proposal->lacking);
    free(proposal->of);
    free(proposal);
}

struct hvd__coordinator *hvd__coordinator_new(int nranks, size_t threshold)
{
    struct hvd__coordinator *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->nranks = nranks;
    c->threshold = threshold;
    c->ready_tail = &c->ready;
    c->left = calloc((size_t)nranks, sizeof *c->left);
    if (c->left)
        return c;
    hvd__coordinator_free(c);
    return NULL;
}

void hvd__coordinator_free(struct hvd__coordinator *c)
{
    struct proposal *p, *following;

    if (!c)
        return;
    HASH_ITER (hh, c->table, p, following) {
        HASH_DEL(c->table, p);
        while (p) {
            struct proposal *later = p->later;
            proposal_free(p);
            p = later;
        }
    }
    while ((p = c->ready)) {
        c->ready = p->next;
        proposal_free(p);
    }
    free(c->signatures);
    free(c->taken);
    free(c->left);
    hvd__writer_fini(&c->out);
    free(c);
}

/* -------------------------------------------------- proposals and variants */

static struct proposal *proposal_new(const struct hvd__coordinator *c,
                                     const char *key)
{
    struct proposal *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->of = calloc((size_t)c->nranks, sizeof *p->of);
    if (!p->of) {
        free(p);
        return NULL;
    }
    memcpy(p->key, key, strlen(key) + 1);
    return p;
}

/* The proposal that what rank says about key belongs to. */
static struct proposal *proposal_for(struct hvd__coordinator *c,
                                     const char *key, int rank)
{
    struct proposal *p, *last = NULL;

    HASH_FIND_STR(c->table, key, p);
    for (; p; last = p, p = p->later)
        if (p->of[rank] == 0)
            return p;
    p = proposal_new(c, key);
    if (!p)
        return NULL;
    if (last) {
        last->later = p;
        return p;
    }
    HASH_ADD_STR(c->table, key, p);
    if (p->hh.tbl)
        return p;
    proposal_free(p);
    return NULL;
}

/* Take a proposal out of the table; the next of its key takes its place. One
 * that is not the oldest goes when a rank that it lacks has left. */
static int proposal_remove(struct hvd__coordinator *c, struct proposal *p)
{
    struct proposal *oldest, *later = p->later;

    p->later = NULL;
    HASH_FIND_STR(c->table, p->key, oldest);
    if (oldest != p) {
        while (oldest && oldest->later != p)
            oldest = oldest->later;
        if (oldest)
            oldest->later = later;
        return HVD_OK;
    }
    HASH_DEL(c->table, p);
    if (!later)
        return HVD_OK;
    HASH_ADD_STR(c->table, key, later);
    return later->hh.tbl ? HVD_OK : hvd__fail_memory(sizeof *later);
}

/* The number, from 1, of an equal variant, which is added if there is none;
 * 0: out of memory. */
static int variant_of(struct proposal *p, const struct hvd__signature *s,
                      int status, const char *text)
{
    struct variant *grown;

    for (int i = 0; i < p->nvariants; i++) {
        const struct variant *v = &p->variants[i];
        if (v->status == status && hvd__signature_equal(&v->signature, s) &&
            (!text || strcmp(v->text, text) == 0))
            return i + 1;
    }
    grown =
        realloc(p->variants, (size_t)(p->nvariants + 1) * sizeof *p->variants);
    if (!grown)
        return 0;
    p->variants = grown;
    grown[p->nvariants] = (struct variant){.signature = *s, .status = status};
    if (text && !(grown[p->nvariants].text = strdup(text)))
        return 0;
    return ++p->nvariants;
}

/* ----------------------------------------------------------------- verdicts */

/* Write the failure of a proposal for the ranks that wait for it. */
static void write_failure(struct hvd__coordinator *c, const struct proposal *p,
                          int status, const char *text)
{
    struct hvd__writer *writer = &c->out;
    int *waiting = malloc((size_t)c->nranks * sizeof *waiting);
    int nwaiting = 0;

    if (!waiting) {
        writer->failed = true;
        return;
    }
    for (int rank = 0; rank < c->nranks; rank++) {
        waiting[rank] =
            p->of[rank] > 0 && p->variants[p->of[rank] - 1].status == HVD_OK;
        nwaiting += waiting[rank];
    }
    if (nwaiting > 0) {
        hvd__write_type(writer, HVD__FAIL);
        hvd__write_int(writer, status);
        hvd__write_text(writer, text);
        hvd__write_text(writer, p->key);
        hvd__write_ranks(writer, waiting, c->nranks);
    }
    free(waiting);
}

/* Several variants: who submitted what. */
static void fail_differing(struct hvd__coordinator *c, const struct proposal *p,
                           bool refused)
{
    char text[HVD__MESSAGE_MAX], variant[256];
    struct hvd__text out = hvd__text_at(text, sizeof text);

    hvd__text_add_key(&out, p->key);
    hvd__text_add(&out, refused ? " was refused on " : " differs: ");
    for (int i = 0, first = 1; i < p->nvariants; i++) {
        const struct variant *v = &p->variants[i];

        if (refused && v->status == HVD_OK)
            continue;
        hvd__text_add(&out, first ? "" : "; ");
        first = 0;
        hvd__text_add_ranks(&out, p->of, c->nranks, i + 1);
        hvd__text_add(&out, ": %s",
                      refused ? v->text
                              : hvd__signature_print(&v->signature, variant,
                                                     sizeof variant));
    }
    if (!refused)
        hvd__text_add(&out, "; all ranks must submit the same");
    write_failure(c, p, refused ? HVD_ERR_PEER : HVD_ERR_MISMATCH, text);
}

/* Who will never come. */
static char *describe_lack(const struct hvd__coordinator *c,
                           const struct proposal *p)
{
    char text[HVD__MESSAGE_MAX];
    struct hvd__text out = hvd__text_at(text, sizeof text);
    int *missing = malloc((size_t)c->nranks * sizeof *missing);

    if (!missing)
        return NULL;
    for (int rank = 0; rank < c->nranks; rank++)
        missing[rank] = c->left[rank] && p->of[rank] == 0;
    hvd__text_add_key(&out, p->key);
    hvd__text_add(&out, " cannot complete: ");
    hvd__text_add_ranks(&out, missing, c->nranks, 1);
    hvd__text_add(&out, " did not submit it before shutting down");
    free(missing);
    return strdup(text);
}

/* Answer those who wait; forget it when nobody else can come. */
static int fail_lacking(struct hvd__coordinator *c, struct proposal *p)
{
    bool expected = false;

    if (!p->lacking && !(p->lacking = describe_lack(c, p)))
        return hvd__fail_memory(HVD__MESSAGE_MAX);
    write_failure(c, p, HVD_ERR_SHUTDOWN, p->lacking);
    for (int rank = 0; rank < c->nranks; rank++) {
        if (p->of[rank] != 0)
            p->of[rank] = ANSWERED;
        expected |= p->of[rank] == 0 && !c->left[rank];
    }
    if (expected)
        return HVD_OK;
    HVD_TRY(proposal_remove(c, p));
    proposal_free(p);
    return HVD_OK;
}

static bool lacks_one_that_left(const struct hvd__coordinator *c,
                                const struct proposal *p)
{
    for (int rank = 0; rank < c->nranks; rank++)
        if (c->left[rank] && p->of[rank] == 0)
            return true;
    return false;
}

/* Decide a proposal if it is time to. */
static int judge(struct hvd__coordinator *c, struct proposal *p)
{
    int refused = 0;

    if (p->nannounced < c->nranks)
        return lacks_one_that_left(c, p) ? fail_lacking(c, p) : HVD_OK;
    HVD_TRY(proposal_remove(c, p));
    for (int i = 0; i < p->nvariants; i++)
        refused += p->variants[i].status < 0;
    if (refused == 0 && p->nvariants == 1) {
        *c->ready_tail = p;
        c->ready_tail = &p->next;
        c->nready++;
        return HVD_OK;
    }
    fail_differing(c, p, refused > 0);
    proposal_free(p);
    return HVD_OK;
}

/* --------------------------------------------------------- what ranks say */

static int record(struct hvd__coordinator *c, int rank, const char *key,
                  const struct hvd__signature *signature, int status,
                  const char *text)
{
    struct proposal *p = proposal_for(c, key, rank);
    int variant = p ? variant_of(p, signature, status, text) : 0;

    if (variant == 0)
        return hvd__fail_memory(sizeof *p);
    p->nannounced++;
    p->of[rank] = variant;
    return judge(c, p);
}

int hvd__coordinator_announce(struct hvd__coordinator *c, int rank,
                              const char *key,
                              const struct hvd__signature *signature)
{
    return record(c, rank, key, signature, HVD_OK, NULL);
}

int hvd__coordinator_refuse(struct hvd__coordinator *c, int rank,
                            const char *key, int status, const char *text)
{
    static const struct hvd__signature none;

    return record(c, rank, key, &none, status, text);
}

int hvd__coordinator_leave(struct hvd__coordinator *c, int rank)
{
    struct proposal *p, *following;

    if (c->left[rank])
        return hvd__fail(HVD_ERR_INTERNAL, "rank %d left twice", rank);
    c->left[rank] = 1;
    c->nleft++;
    HASH_ITER (hh, c->table, p, following)
        while (p) {
            struct proposal *later = p->later;
            HVD_TRY(judge(c, p));
            p = later;
        }
    return HVD_OK;
}

void hvd__coordinator_break(struct hvd__coordinator *c, int rank, int status,
                            const char *text)
{
    char message[HVD__MESSAGE_MAX];
    struct hvd__text out = hvd__text_at(message, sizeof message);

    if (c->broken)
        return;
    c->broken = true;
    hvd__text_add(&out, "rank %d failed: %s", rank, text);
    hvd__write_type(&c->out, HVD__BREAK);
    hvd__write_int(&c->out, status);
    hvd__write_text(&c->out, message);
}

/* ------------------------------------------------------------------ batches */

static const struct hvd__signature *agreed(const struct proposal *p)
{
    return &p->variants[0].signature;
}

static bool reserve(struct hvd__coordinator *c)
{
    int capacity = 2 * c->nready;
    const struct hvd__signature **signatures;
    bool *taken;

    if (c->capacity >= c->nready)
        return true;
    signatures = realloc(c->signatures, (size_t)capacity * sizeof *signatures);
    if (signatures)
        c->signatures = signatures;
    taken = realloc(c->taken, (size_t)capacity * sizeof *taken);
    if (taken)
        c->taken = taken;
    if (!signatures || !taken)
        return false;
    c->capacity = capacity;
    return true;
}

/* Choose the next batch, write it, forget its proposals. */
static void write_batch(struct hvd__coordinator *c)
{
    struct proposal **link = &c->ready;
    int n = 0, ntaken;

    for (const struct proposal *p = c->ready; p; p = p->next)
        c->signatures[n++] = agreed(p);
    ntaken = hvd__fuse(c->signatures, n, c->threshold, c->taken);
    hvd__write_type(&c->out, HVD__BATCH);
    hvd__write_int(&c->out, ntaken);
    for (int i = 0; i < n; i++) {
        struct proposal *p = *link;

        if (!c->taken[i]) {
            link = &p->next;
            continue;
        }
        hvd__write_text(&c->out, p->key);
        *link = p->next;
        proposal_free(p);
        c->nready--;
    }
    c->ready_tail = link;
}

struct hvd__writer *hvd__coordinator_decide(struct hvd__coordinator *c,
                                            int room)
{
    while (c->ready && !c->broken) {
        if (!reserve(c)) {
            c->out.failed = true;
            break;
        }
        if (agreed(c->ready)->kind != HVD_BARRIER && room-- <= 0)
            break;
        write_batch(c);
    }
    if (c->nleft == c->nranks && !c->ready && !c->closed) {
        hvd__write_type(&c->out, HVD__CLOSE);
        c->closed = true;
    }
    return &c->out;
}
