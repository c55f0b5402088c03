/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coordinator.c - agreement by name.
 *
 * A proposal gathers what the members submitted under one key. It keeps every
 * distinct thing that was submitted (a variant, told apart by its fingerprint)
 * and which member submitted which. When every member has announced:
 *
 *     one variant                the proposal is ready
 *     several                    it fails everywhere: HVD_ERR_MISMATCH
 *     some were refused theirs   it fails where it was not: HVD_ERR_PEER
 *     all were refused           nobody waits for it; forgotten
 *
 * A member may announce a key again before the others have announced it once,
 * for example when its request was refused as a duplicate. Proposals of one key
 * therefore form a chain, oldest first, and a member's announcement goes to the
 * first one that lacks it. So the k-th submission of a name on one rank meets
 * the k-th on every other, refused ones included, whatever the timing: a
 * program that makes the same mistake on all ranks, and then the right call,
 * gets the same answers everywhere.
 *
 * A member that has joined announces nothing until all have joined. Reductions
 * go on without it; everything else fails. A member that has left will never
 * announce what a proposal lacks. Such a proposal fails at once for the members
 * that wait, and for each other member when it announces, with the same text;
 * it is kept until every member has announced it or left.
 *
 * Ready requests wait for room (hvd__executor_room), the most urgent first, and
 * are fused meanwhile. No clock is involved: a single request goes at once, and
 * the busier the engine is, the larger the batches are.
 */
#include "core/agree/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "core/agree/batch.h"

bool hvd__coordinator_is_idle(const struct hvd__coordinator *c)
{
    const struct hvd__proposals *ps = &c->proposals;

    return !ps->table && !c->first_ready && ps->njoined == 0 && ps->nleft == 0;
}

/* -------------------------------------------------------- what is agreed on */

static const struct hvd__signature *signature_of(const struct hvd__item *item)
{
    return &item->proposal->variants[0].what->signatures[item->index];
}

static void put_item(struct hvd__item *item)
{
    if (--item->proposal->nitems == 0)
        hvd__proposal_free(item->proposal);
}

/* Inserts the item behind all items of its priority. Usually all priorities are
 * equal, and the item goes to the end at once. */
static void insert_item(struct hvd__coordinator *c, struct hvd__item *item)
{
    const int32_t priority = item->proposal->priority;
    struct hvd__item **link = &c->first_ready;

    if (c->last_ready && c->last_ready->proposal->priority >= priority)
        link = &c->last_ready->next;
    while (*link && (*link)->proposal->priority >= priority)
        link = &(*link)->next;
    item->next = *link;
    *link = item;
    if (!item->next)
        c->last_ready = item;
}

/* Adds the items of a proposal that is in no table. It is freed with the last
 * of them. Members that have not announced it take no part. */
static void add_ready(struct hvd__coordinator *c, struct hvd__proposal *p)
{
    p->nitems = p->variants[0].what->nsignatures;
    for (int i = 0; i < p->nitems; i++)
        insert_item(c, &p->items[i]);
}

/* Returns true if the same members take part in both. */
static bool same_members(const struct hvd__coordinator *c,
                         const struct hvd__proposal *a,
                         const struct hvd__proposal *b)
{
    if (a->nannounced != b->nannounced)
        return false;
    for (int rank = 0; a->nannounced < c->nranks && rank < c->nranks; rank++)
        if ((a->of[rank] == 0) != (b->of[rank] == 0))
            return false;
    return true;
}

static void write_item(struct hvd__coordinator *c, const struct hvd__item *item)
{
    const struct hvd__variant *v = &item->proposal->variants[0];

    hvd__write_long(&c->out, (int64_t)item->proposal->key);
    hvd__write_long(&c->out, item->index);
    hvd__write_long(&c->out, item->number >= 0 ? c->nranks : 0);
    for (int rank = 0; item->number >= 0 && rank < c->nranks; rank++)
        hvd__write_long(&c->out,
                        v->numbers[rank * v->what->nnumbers + item->number]);
}

/* Takes a batch out of the list. Returns how many requests it has. */
static int take_batch(struct hvd__coordinator *c, size_t threshold,
                      struct hvd__item **batch)
{
    const struct hvd__item *first = c->first_ready;
    struct hvd__fusion fusion = {.threshold = threshold};
    struct hvd__item *item, **link = &c->first_ready;
    int n = 0;

    c->last_ready = NULL;
    while ((item = *link))
        if (same_members(c, first->proposal, item->proposal) &&
            hvd__fuse(&fusion, signature_of(item), item->bytes)) {
            *link = item->next;
            *batch = item;
            batch = &item->next;
            n++;
        } else {
            c->last_ready = item;
            link = &item->next;
        }
    *batch = NULL;
    return n;
}

/* Writes the next batch as a record and removes its requests. */
static void write_batch(struct hvd__coordinator *c,
                        const struct hvd__knobs *knobs)
{
    struct hvd__item *batch, *item;
    int n = take_batch(c, knobs->fusion_threshold, &batch);

    hvd__write_type(&c->out, HVD__BATCH);
    hvd__write_long(&c->out, (int64_t)knobs->direct_max);
    hvd__write_ranks(&c->out, batch->proposal->of, c->nranks);
    hvd__write_long(&c->out, n);
    while ((item = batch)) {
        batch = item->next;
        write_item(c, item);
        put_item(item);
    }
}

/* ----------------------------------------------------- why a proposal fails */

/* Describes a variant; of a group, the first member that differs. */
static const char *describe_variant(const struct hvd__proposal *p,
                                    const struct hvd__statement *v, char *text,
                                    size_t size)
{
    const struct hvd__statement *first = p->variants[0].what;
    struct hvd__text out = hvd__text_at(text, size);
    char signature[256];
    int other = 0;

    if (v->nsignatures == 1)
        return hvd__signature_print(&v->signatures[0], text, size);
    /* The first member in which any two variants differ. */
    for (int k = 1; k < p->nvariants; k++) {
        int same = 0;
        while (same < first->nsignatures &&
               same < p->variants[k].what->nsignatures &&
               hvd__signature_equal(&first->signatures[same],
                                    &p->variants[k].what->signatures[same]))
            same++;
        if (k == 1 || same < other)
            other = same;
    }
    hvd__text_add(&out, "a group of %d", v->nsignatures);
    if (other < v->nsignatures)
        hvd__text_add(&out, ", whose number %d is %s", other,
                      hvd__signature_print(&v->signatures[other], signature,
                                           sizeof signature));
    return text;
}

/* ----------------------------------------------------------------- failures */

/* Writes the end of what the flagged members wait for. */
static void write_end(struct hvd__coordinator *c, uint64_t key, int status,
                      const char *text, const int *of)
{
    hvd__write_type(&c->out, HVD__END);
    hvd__write_long(&c->out, (int64_t)key);
    hvd__write_long(&c->out, status);
    hvd__write_text(&c->out, text);
    hvd__write_long(&c->out, c->world[c->last_joined]);
    hvd__write_ranks(&c->out, of, c->nranks);
}

/* Writes the failure of a proposal for the members that wait for it. */
static void write_failure(struct hvd__coordinator *c,
                          const struct hvd__proposal *p, int status,
                          const char *text)
{
    int *some = c->proposals.some;
    bool any = false;

    for (int rank = 0; rank < c->nranks; rank++) {
        some[rank] = p->of[rank] > 0 &&
                     p->variants[p->of[rank] - 1].what->status == HVD_OK;
        any |= some[rank];
    }
    if (any)
        write_end(c, p->key, status, text, some);
}

/* Says which ranks submitted which variant or, if refused is true, which were
 * refused and why. */
static void fail_differing(struct hvd__coordinator *c,
                           const struct hvd__proposal *p, bool refused)
{
    char text[HVD__MESSAGE_MAX], variant[320];
    struct hvd__text out = hvd__text_at(text, sizeof text);
    const char *before = refused ? " was refused on " : " differs: ";

    for (int i = 0; i < p->nvariants; i++) {
        const struct hvd__statement *v = p->variants[i].what;

        if (refused && v->status == HVD_OK)
            continue;
        hvd__text_add(&out, "%s", before);
        hvd__text_add_ranks(&out, c->world, p->of, c->nranks, i + 1);
        hvd__text_add(&out, ": %s",
                      refused
                          ? hvd__statement_text(v)
                          : describe_variant(p, v, variant, sizeof variant));
        before = "; ";
    }
    if (!refused)
        hvd__text_add(&out, "; all ranks must submit the same");
    write_failure(c, p, refused ? HVD_ERR_PEER : HVD_ERR_MISMATCH, text);
}

/* Says in a text of HVD__MESSAGE_MAX bytes that an operation cannot complete
 * because of the ranks that are flagged in proposals.some, and why. */
static void write_missing(const struct hvd__coordinator *c, char *text,
                          const char *why)
{
    struct hvd__text out = hvd__text_at(text, HVD__MESSAGE_MAX);

    hvd__text_add(&out, " cannot complete: ");
    hvd__text_add_ranks(&out, c->world, c->proposals.some, c->nranks, 1);
    hvd__text_add(&out, " %s", why);
}

/* Flags in proposals.some the members that lack a proposal and are gone.
 * Returns true if there are any. */
static bool lacks(const struct hvd__coordinator *c,
                  const struct hvd__proposal *p, const int *gone)
{
    int *some = c->proposals.some;
    bool any = false;

    for (int rank = 0; rank < c->nranks; rank++) {
        some[rank] = gone[rank] && p->of[rank] == 0;
        any |= some[rank];
    }
    return any;
}

/* Answers the members that wait, always with the same text. Removes the
 * proposal when no other member can still announce it. */
static int fail_lacking(struct hvd__coordinator *c, struct hvd__proposal *p)
{
    char text[HVD__MESSAGE_MAX];
    bool expected = false;

    write_missing(c, text, "did not submit it before shutting down");
    if (!p->lacking && !(p->lacking = strdup(text)))
        return hvd__fail_memory(sizeof text);
    write_failure(c, p, HVD_ERR_SHUTDOWN, p->lacking);
    for (int rank = 0; rank < c->nranks; rank++) {
        if (p->of[rank] != 0)
            p->of[rank] = HVD__ANSWERED;
        expected |= p->of[rank] == 0 && !c->proposals.left[rank];
    }
    return expected ? HVD_OK : hvd__proposal_remove(&c->proposals, p);
}

/* Fails a proposal that cannot run without the members that have joined. */
static void fail_joined(struct hvd__coordinator *c,
                        const struct hvd__proposal *p)
{
    const struct hvd__statement *what = p->variants[0].what;
    char text[HVD__MESSAGE_MAX];

    lacks(c, p, c->proposals.joined);
    write_missing(
        c, text,
        what->signatures[0].flags & HVD__OF_STRATEGY
            ? "joined by hvd_join before this step, whose update its variables "
              "would lack for ever: join by hvd_strategy_join, after which all "
              "ranks hold the same"
            : "joined before submitting it, and only allreduce, reducescatter "
              "and reduce to a root that has not joined do without");
    write_failure(c, p, HVD_ERR_JOINED, text);
}

/* ------------------------------------------------------------ what is ready */

/* Returns true if all requests of a proposal can run without the members that
 * joined: reductions, but not to one of these, and not of a strategy whose
 * variables they would lack for ever. */
static bool does_without(const struct hvd__coordinator *c,
                         const struct hvd__proposal *p)
{
    const struct hvd__statement *what = p->variants[0].what;

    for (int i = 0; i < what->nsignatures; i++)
        for (int rank = 0; rank < c->nranks; rank++) {
            const struct hvd__signature *s = &what->signatures[i];

            if (p->of[rank] == 0 &&
                (!hvd__kind_has(s->kind, HVD__HAS_OP) ||
                 (s->kind == HVD_REDUCE && c->world[rank] == s->root) ||
                 (s->flags & HVD__OF_STRATEGY &&
                  c->proposals.joined[rank] != HVD__GONE_RESTORES)))
                return false;
        }
    return true;
}

/* Adds up the numbers that members carry with a request. Returns false if what
 * they give together does not fit into memory. */
static bool add_numbers(const struct hvd__coordinator *c,
                        const struct hvd__variant *v, int number,
                        const struct hvd__signature *s, int64_t *sum)
{
    size_t row = hvd__signature_varies(s) ? hvd__signature_row_bytes(s) : 1;

    for (int rank = 0; rank < c->nranks; rank++)
        if (__builtin_add_overflow(
                *sum, v->numbers[rank * v->what->nnumbers + number], sum))
            return false;
    return row == 0 || (uint64_t)*sum <= (uint64_t)PTRDIFF_MAX / row;
}

static int make_ready(struct hvd__coordinator *c, struct hvd__proposal *p)
{
    const struct hvd__variant *v = &p->variants[0];
    int nnumbers = 0;

    HVD_TRY(hvd__allocate(&p->items, (size_t)v->what->nsignatures,
                          sizeof *p->items));
    for (int i = 0; i < v->what->nsignatures; i++) {
        const struct hvd__signature *s = &v->what->signatures[i];
        int number = hvd__signature_carries(s) ? nnumbers++ : -1;
        int64_t rows = 0;

        if (number >= 0 && !add_numbers(c, v, number, s, &rows)) {
            write_failure(c, p, HVD_ERR_ARGUMENT,
                          ": what all ranks give together is more bytes than "
                          "memory can hold");
            return hvd__proposal_remove(&c->proposals, p);
        }
        p->items[i] =
            (struct hvd__item){.proposal = p,
                               .index = i,
                               .number = number,
                               .bytes = hvd__fusion_bytes(s, c->nranks, rows)};
    }
    HVD_TRY(hvd__proposal_take(&c->proposals, p));
    add_ready(c, p);
    return HVD_OK;
}

/* ----------------------------------------------------------------- verdicts */

/* Decides a proposal if it is time to. */
static int judge(void *owner, struct hvd__proposal *p, bool all)
{
    struct hvd__coordinator *c = owner;
    struct hvd__proposals *ps = &c->proposals;
    int refused = 0;

    (void)all;
    if (ps->nleft > 0 && p->nannounced < c->nranks && lacks(c, p, ps->left))
        return fail_lacking(c, p);
    if (!hvd__proposal_is_complete(ps, p))
        return HVD_OK;
    for (int i = 0; i < p->nvariants; i++)
        refused += p->variants[i].what->status < 0;
    if (refused > 0 || p->nvariants > 1)
        fail_differing(c, p, refused > 0);
    else if (p->nannounced < c->nranks && !does_without(c, p))
        fail_joined(c, p);
    else
        return make_ready(c, p);
    return hvd__proposal_remove(ps, p);
}

/* ----------------------------------------------------------------- its life */

int hvd__coordinator_new(const int *world, int nranks,
                         struct hvd__coordinator **coordinator)
{
    HVD_TRY(hvd__allocate(coordinator, 1, sizeof **coordinator));
    (*coordinator)->world = world;
    (*coordinator)->nranks = nranks;
    return hvd__proposals_init(&(*coordinator)->proposals, nranks, judge,
                               *coordinator);
}

void hvd__coordinator_free(struct hvd__coordinator *c)
{
    struct hvd__item *item;

    if (!c)
        return;
    hvd__proposals_fini(&c->proposals);
    while ((item = c->first_ready)) {
        c->first_ready = item->next;
        put_item(item);
    }
    hvd__writer_fini(&c->out);
    free(c);
}

int hvd__coordinator_gone(struct hvd__coordinator *c, int rank,
                          enum hvd__gone how)
{
    bool leaves = how == HVD__GONE_LEFT;

    if ((leaves ? c->proposals.left : c->proposals.joined)[rank])
        return hvd__fail(HVD_ERR_INTERNAL, "rank %d %s twice", c->world[rank],
                         leaves ? "left" : "joined");
    if (!leaves)
        c->last_joined = rank;
    return hvd__proposals_gone(&c->proposals, rank, how);
}

/* ---------------------------------------------------------------- decisions */

/* Ends a join when all have joined and nothing is left to decide, or when a
 * member has left, so that not all can join any more. */
static void end_join(struct hvd__coordinator *c)
{
    struct hvd__proposals *ps = &c->proposals;

    if (ps->njoined == c->nranks && !ps->table && !c->first_ready)
        write_end(c, hvd__join_key(), HVD_OK, "", ps->joined);
    else if (ps->nleft > 0)
        write_end(c, hvd__join_key(), HVD_ERR_SHUTDOWN,
                  " cannot complete: a rank shut down instead of joining",
                  ps->joined);
    else
        return;
    hvd__proposals_rejoin(ps);
}

struct hvd__writer hvd__coordinator_decide(struct hvd__coordinator *c, int room,
                                           const struct hvd__knobs *knobs)
{
    struct hvd__writer out;

    while (c->first_ready &&
           (signature_of(c->first_ready)->kind == HVD_BARRIER || room-- > 0))
        write_batch(c, knobs);
    if (c->proposals.njoined > 0)
        end_join(c);
    if (c->proposals.nleft == c->nranks && !c->first_ready && !c->closed) {
        hvd__write_type(&c->out, HVD__CLOSE);
        c->closed = true;
    }
    out = c->out;
    c->out = (struct hvd__writer){0};
    return out;
}
