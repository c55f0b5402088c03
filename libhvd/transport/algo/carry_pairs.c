/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carry_pairs.c - sums over hosts in the logarithm of their number: the
 * carriers of a slice exchange all sums, or halves of them, with one partner
 * after the other, as the ranks of reduce_halving.c do.
 *
 * Any number of hosts. Of two, both send all that they have at once, which
 * takes one message time where halving takes two, for the same bytes. Cost over
 * h hosts, m bytes of a slice, where q is h rounded down to a power of two:
 * log2 q (α + mβ + mγ) for doubling, 2 log2 q α + 2m(q−1)/q β + m(q−1)/q γ for
 * halving; if h is not q, 2(α + mβ) + mγ more.
 *
 * The lower host's sum comes first, and every element goes through the same
 * bracket, of hosts. A sum of 16-bit floats would be rounded in every step, and
 * so would sums that travel as a narrower type: of three hosts or more, those
 * are not made this way.
 */
#include "base/status.h"
#include "transport/algo/carry.h"

enum { THERE, BACK }; /* tags */

/* Phase 0 is the fold, then come the steps there and those back, and the last
 * one returns what was folded. */
static int nphases(const struct hvd__carry *carry, const struct hvd__hosts *h)
{
    return (carry->halves ? 2 : 1) * hvd__pairing_of(0, h->n).steps + 2;
}

static bool nests(const struct hvd__collective *c, size_t chunk_bytes)
{
    (void)chunk_bytes;
    return !c->narrows && hvd__carry_rounds_once(c);
}

static int ntransfers(const struct hvd__hosts *h)
{
    (void)h;
    return 2;
}

/* Before a step begins, the link rests while what the one before has brought is
 * copied. */
static struct hvd__cost cost(const struct hvd__carry *carry,
                             const struct hvd__hosts *h, int64_t bytes,
                             int64_t narrow_bytes)
{
    struct hvd__pairing p = hvd__pairing_of(0, h->n);
    int64_t folds = p.extra > 0, most = bytes - (bytes >> p.steps);
    int64_t steps = (carry->halves ? 2 : 1) * p.steps + 2 * folds;
    int64_t all = p.steps * bytes;
    int64_t moved = (carry->halves ? 2 * most : all) + 2 * folds * bytes;

    (void)narrow_bytes;
    return (struct hvd__cost){
        .steps = steps,
        .messages = steps,
        .moved = moved,
        .reduced = (carry->halves ? most : all) + folds * bytes +
                   moved / steps * (steps - 1),
    };
}

/* Hosts that take part for others would have to pass everything back. Halves
 * must gain a twentieth: a round has other tensors, which wait for them. */
bool hvd__sum_halves(const struct hvd__team *team, const struct hvd__hosts *h,
                     int64_t bytes, bool goes_whole)
{
    const struct hvd__carry *c = &hvd__carry_doubling;
    int64_t whole = hvd__cost_ns(team, cost(c, h, bytes, bytes));
    int64_t halving =
        hvd__cost_ns(team, cost(&hvd__carry_halving, h, bytes, bytes));

    if (!goes_whole)
        whole += hvd__cost_ns(team, cost(c, h, 0, 0));
    return hvd__pairing_of(0, h->n).extra == 0 &&
           halving + halving / 20 < whole;
}

/* A host that takes part for another gets all of a sum, exchanges all of it,
 * and returns all of it: in a lane each host sends the others only parts. That
 * must gain a quarter, because a round and then a lane wake ranks more often.
 */
bool hvd__sum_waits(const struct hvd__team *team, const struct hvd__hosts *h,
                    int64_t bytes)
{
    const struct hvd__carry *pairs = &hvd__carry_doubling;
    const struct hvd__carry *all = &hvd__carry_all;
    int64_t whole = hvd__cost_ns(team, cost(pairs, h, bytes, bytes));
    int64_t waiting = hvd__cost_ns(team, cost(pairs, h, 0, 0)) +
                      hvd__cost_ns(team, all->cost(all, h, bytes, bytes));

    return hvd__pairing_of(0, h->n).extra > 0 && waiting + waiting / 4 < whole;
}

/* ------------------------------------------------------------------- moving */

/* A turn is what a host does in a phase. */
struct turn {
    struct hvd__pairing pairing;
    int step;   /* of the pairing; -1: none, so this is the fold or its end */
    bool back;  /* sums are complete */
    bool takes; /* this carrier receives */
    bool gives;
    int host;                      /* the partner's; -1: none */
    struct hvd__slice own, theirs; /* the part that each has afterwards there,
                                      or before back */
};

static struct turn turn_of(const struct hvd__carry *carry,
                           const struct hvd__collective *c,
                           const struct hvd__carried *s, int phase)
{
    const struct hvd__hosts *h = c->team->hosts;
    struct hvd__slice all = {0, s->count};
    struct turn t = {.pairing = hvd__pairing_of(h->own, h->n),
                     .step = phase - 1,
                     .own = all,
                     .theirs = all};
    const struct hvd__pairing *p = &t.pairing;
    bool folds = phase == 0 || phase == nphases(carry, h) - 1;

    t.back = phase > p->steps;
    t.host = p->folded;
    if (folds) {
        t.step = -1;
        t.gives = p->folded >= 0 && (p->number < 0) == (phase == 0);
        t.takes = p->folded >= 0 && !t.gives;
        return t;
    }
    if (p->number < 0) {
        t.host = -1;
        return t;
    }
    if (t.back)
        t.step = 2 * p->steps - phase;
    t.gives = t.takes = true;
    t.host = hvd__pairing_partner(p, t.step);
    if (carry->halves) {
        t.own = hvd__pairing_part(all, p->number, t.step + 1);
        t.theirs = hvd__pairing_part(all, p->number ^ 1 << t.step, t.step + 1);
    }
    return t;
}

/* Sends the partner its part of the sums, or back what is complete of this
 * one's. */
static int start(const struct hvd__carry *carry, struct hvd__collective *c,
                 const struct hvd__carried *s, int phase,
                 struct hvd__transfer *transfers)
{
    struct turn t = turn_of(carry, c, s, phase);
    int tag = c->tag + (t.back ? BACK : THERE), peer;
    struct hvd__slice in = t.back ? t.theirs : t.own;
    struct hvd__slice out = t.back ? t.own : t.theirs;
    unsigned char *to =
        t.back ? s->range + hvd__bytes_of(c, in.start) : s->scratch;

    if (!t.takes && !t.gives)
        return HVD_OK;
    peer = hvd__carry_peer(c, s, t.host);
    if (t.takes)
        HVD_TRY(hvd__team_receive(c->team, peer, tag, to,
                                  hvd__bytes_of(c, in.count), &transfers[0]));
    if (!t.gives)
        return HVD_OK;
    return hvd__team_send(c->team, peer, tag,
                          s->range + hvd__bytes_of(c, out.start),
                          hvd__bytes_of(c, out.count), &transfers[1]);
}

/* Adds what has come to this host's sums. */
static void finish(const struct hvd__carry *carry, struct hvd__collective *c,
                   const struct hvd__carried *s, int phase)
{
    struct turn t = turn_of(carry, c, s, phase);
    void *mine = s->range + hvd__bytes_of(c, t.own.start);
    const void *sources[] = {mine, s->scratch};
    struct hvd__reduction reduction =
        hvd__carry_reduction(c, t.step == t.pairing.steps - 1);

    if (!t.takes || t.back)
        return;
    if (t.host < c->team->hosts->own) {
        sources[0] = s->scratch;
        sources[1] = mine;
    }
    hvd__timed_reduce(&c->computing_ns, &reduction, &mine, 1, sources, 2,
                      t.own.count);
}

const struct hvd__carry hvd__carry_doubling = {
    .applies = nests,
    .ntransfers = ntransfers,
    .nphases = nphases,
    .cost = cost,
    .start = start,
    .finish = finish,
};

const struct hvd__carry hvd__carry_halving = {
    .halves = true,
    .applies = nests,
    .ntransfers = ntransfers,
    .nphases = nphases,
    .cost = cost,
    .start = start,
    .finish = finish,
};
