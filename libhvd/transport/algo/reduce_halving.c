/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_halving.c - allreduces in the logarithm of the number of ranks.
 *
 * Doubling: in step i a rank exchanges all of its sums with the rank whose
 * number differs in bit i, and adds. Halving: it sends the half of its range
 * that the partner keeps and adds to its own half what the partner had for it,
 * and afterwards the steps are taken back, with sums that are complete:
 *
 *     rank 0   ABCD ── AB ── A ┐           ┌ A ── AB ── ABCD
 *     rank 1   ABCD ── CD ── C ┤ complete  ├ C ── CD ── ABCD
 *     rank 2   ABCD ── AB ── B ┤           ├ B ── AB ── ABCD
 *     rank 3   ABCD ── CD ── D ┘           └ D ── CD ── ABCD
 *                  0,1   0,2                  0,2    0,1
 *                  2,3   1,3                  1,3    2,3
 *
 * Any number of ranks and elements. If p ranks are r more than a power of two,
 * the even ones of the first 2r give their data to the next rank, which takes
 * part for both and sends the result back. Source: Thakur, Rabenseifner and
 * Gropp (2005). Cost on p ranks, m bytes, where q is p rounded down to a power
 * of two: log2 q (α + mβ + mγ) for doubling, 2 log2 q α + 2m(q−1)/q β +
 * m(q−1)/q γ for halving; if p is not q, 2(α + mβ) + mγ more.
 *
 * Both ways pair ranks alike, so every element of a tensor of any size goes
 * through the same bracket, the lower rank's sum first: the same bits on all
 * ranks, and the same whatever moves with it. The bracket is not the order of
 * the ranks, in which all other algorithms add; so sums of floating-point
 * numbers that must not depend on anything else do not go this way. Neither do
 * those of 16-bit floats, which would be rounded in every step, and what
 * hvd__reduction_nests excludes.
 *
 * In place: a range is received only when all sends from there are done. A
 * segment is a range of elements, with scratch for what one partner sends.
 */
#include "base/status.h"
#include "transport/algo/cost.h"

/* Ranges of RANGE_BYTES amortise the cost of 2 log2 p messages. */
enum { RANGE_BYTES = 1 << 20 };

/* The phases: FOLD, then 1 to steps for the way there, then, of halving, as
 * many for the way back, and UNFOLD last. In each the segment waits for the
 * transfers of the phase. */
enum { FOLD = 0 };

static struct hvd__pairing pairing_of(const struct hvd__team *team)
{
    return hvd__pairing_of(team->rank, team->size);
}

static bool halves(const struct hvd__collective *c)
{
    return c->algorithm == &hvd__reduce_halving;
}

/* Of two ranks all contributions meet in one place, in their order. */
static bool applies(const struct hvd__collective *c)
{
    const struct hvd__reduction *r = &c->reduction;
    bool narrow = r->dtype == HVD_FLOAT16 || r->dtype == HVD_BFLOAT16;

    if (c->motion != HVD__REDUCE_TO_ALL || r->op == HVD_ADASUM ||
        c->team->size == 1)
        return false;
    return c->team->size == 2 ||
           ((!narrow || r->op == HVD_MIN || r->op == HVD_MAX) &&
            hvd__reduction_nests(r, c->same_order));
}

/* Returns the most elements of a segment. */
static int64_t range_capacity(const struct hvd__collective *c)
{
    size_t most = c->workspace->segment_bytes;

    if (most > RANGE_BYTES)
        most = RANGE_BYTES;
    return (int64_t)(most / hvd__bytes_of(c, 1));
}

/* Returns the cost with what is moved and reduced in all steps. The two
 * additional steps of ranks that are folded in move everything. Before a step
 * begins, the link rests while what the one before has brought is copied. */
static int64_t cost_of(const struct hvd__collective *c, int64_t rounds,
                       int64_t moved, int64_t reduced)
{
    struct hvd__pairing p = pairing_of(c->team);
    int64_t bytes = (int64_t)hvd__bytes_of(c, c->count);
    int64_t most = range_capacity(c), folds = p.extra > 0;
    int64_t steps = rounds * p.steps + 2 * folds;

    moved += 2 * folds * bytes;
    return hvd__cost_ns(
        c->team,
        (struct hvd__cost){.steps = steps,
                           .messages = steps * ((c->count + most - 1) / most),
                           .moved = hvd__cost_flows(c->team) * moved,
                           .reduced = reduced + folds * bytes +
                                      moved / steps * (steps - 1)});
}

static int64_t cost_of_doubling(const struct hvd__collective *c)
{
    int64_t bytes = (int64_t)hvd__bytes_of(c, c->count);
    int64_t all = pairing_of(c->team).steps * bytes;

    return cost_of(c, 1, all, all);
}

static int64_t cost_of_halving(const struct hvd__collective *c)
{
    int64_t bytes = (int64_t)hvd__bytes_of(c, c->count);
    int64_t most = bytes - (bytes >> pairing_of(c->team).steps);

    return cost_of(c, 2, 2 * most, most);
}

/* Returns the elements of a segment that a rank has sums of after a number of
 * steps. */
static struct hvd__slice range_after(const struct hvd__collective *c,
                                     const struct hvd__segment *segment,
                                     int number, int steps)
{
    struct hvd__slice all = {segment->start, segment->count};

    return halves(c) ? hvd__pairing_part(all, number, steps) : all;
}

/* Returns true if sums of inputs and inputs meet in the first step, so that
 * inputs must be scaled before. */
static bool scales_first(const struct hvd__collective *c,
                         const struct hvd__pairing *p)
{
    return p->extra > 0 && c->reduction.prescale != 1;
}

/* Returns this rank's data for a range before a step: what it was given, until
 * something is in the output. */
static const unsigned char *data_at(const struct hvd__collective *c,
                                    const struct hvd__pairing *p, int step,
                                    struct hvd__slice range)
{
    bool given = step == 0 && p->folded < 0 && !scales_first(c, p);
    const unsigned char *data = given ? c->input : c->output;

    return data + hvd__bytes_of(c, range.start);
}

/* ---------------------------------------------------------------- computing */

/* Makes sums of a range in the output. Inputs are scaled when they are first
 * added up, and sums in the last step. */
static void add(struct hvd__collective *c, struct hvd__slice range,
                const void *const *sources, int nsources, bool is_first,
                bool is_last)
{
    struct hvd__reduction reduction = c->reduction;
    void *target = (char *)c->output + hvd__bytes_of(c, range.start);

    if (!is_first)
        reduction.prescale = 1;
    if (reduction.divisor == 0)
        reduction.divisor = c->team->size;
    if (!is_last) {
        reduction.postscale = 1;
        if (reduction.op == HVD_AVERAGE)
            reduction.op = HVD_SUM;
    }
    hvd__timed_reduce(&c->computing_ns, &reduction, &target, 1, sources,
                      nsources, range.count);
}

static void compute_fold(struct hvd__collective *c,
                         struct hvd__segment *segment,
                         const struct hvd__pairing *p)
{
    struct hvd__slice all = {segment->start, segment->count};
    const void *mine = (const char *)c->input + hvd__bytes_of(c, all.start);

    if (p->number >= 0 && p->folded >= 0)
        add(c, all, (const void *[]){hvd__segment_scratch(c, segment), mine}, 2,
            true, false);
    else if (p->number >= 0 && scales_first(c, p))
        add(c, all, &mine, 1, true, false);
}

static void compute_step(struct hvd__collective *c,
                         struct hvd__segment *segment,
                         const struct hvd__pairing *p, int step)
{
    struct hvd__slice range = range_after(c, segment, p->number, step + 1);
    const void *sources[] = {data_at(c, p, step, range),
                             hvd__segment_scratch(c, segment)};

    if (p->number >> step & 1) {
        sources[1] = sources[0];
        sources[0] = hvd__segment_scratch(c, segment);
    }
    add(c, range, sources, 2, step == 0 && p->extra == 0, step == p->steps - 1);
}

/* ------------------------------------------------------------------- moving */

static int last_phase(const struct hvd__collective *c,
                      const struct hvd__pairing *p)
{
    return (halves(c) ? 2 : 1) * p->steps + 1;
}

static int send(struct hvd__collective *c, int peer, int tag, const void *data,
                struct hvd__slice range, struct hvd__transfer *transfer)
{
    return hvd__team_send(c->team, peer, c->tag + tag, data,
                          hvd__bytes_of(c, range.count), transfer);
}

static int receive(struct hvd__collective *c, int peer, int tag, void *data,
                   struct hvd__slice range, struct hvd__transfer *transfer)
{
    return hvd__team_receive(c->team, peer, c->tag + tag, data,
                             hvd__bytes_of(c, range.count), transfer);
}

static void *output_at(const struct hvd__collective *c, struct hvd__slice range)
{
    return (unsigned char *)c->output + hvd__bytes_of(c, range.start);
}

/* Exchanges inputs and sums with a partner. */
static int move_there(struct hvd__collective *c, struct hvd__segment *segment,
                      const struct hvd__pairing *p, int step,
                      struct hvd__transfer *transfer)
{
    int peer = hvd__pairing_partner(p, step);
    struct hvd__slice mine = range_after(c, segment, p->number, step + 1);
    struct hvd__slice theirs =
        range_after(c, segment, p->number ^ 1 << step, step + 1);

    HVD_TRY(receive(c, peer, 0, hvd__segment_scratch(c, segment), mine,
                    &transfer[0]));
    return send(c, peer, 0, data_at(c, p, step, theirs), theirs, &transfer[1]);
}

/* Exchanges complete sums with a partner. */
static int move_back(struct hvd__collective *c, struct hvd__segment *segment,
                     const struct hvd__pairing *p, int step,
                     struct hvd__transfer *transfer)
{
    int peer = hvd__pairing_partner(p, step);
    struct hvd__slice mine = range_after(c, segment, p->number, step + 1);
    struct hvd__slice theirs =
        range_after(c, segment, p->number ^ 1 << step, step + 1);

    HVD_TRY(receive(c, peer, 1, output_at(c, theirs), theirs, &transfer[0]));
    return send(c, peer, 1, output_at(c, mine), mine, &transfer[1]);
}

/* Starts the transfers of a phase. */
static int move(struct hvd__collective *c, struct hvd__segment *segment,
                const struct hvd__pairing *p, int phase)
{
    struct hvd__transfer *transfer = hvd__segment_transfers(c, segment);
    struct hvd__slice all = {segment->start, segment->count};

    transfer[0] = transfer[1] = (struct hvd__transfer){0};
    segment->phase = phase;
    if (phase == FOLD && p->number < 0)
        return send(c, p->folded, 0,
                    (const char *)c->input + hvd__bytes_of(c, all.start), all,
                    transfer);
    if (phase == FOLD && p->folded >= 0)
        return receive(c, p->folded, 0, hvd__segment_scratch(c, segment), all,
                       transfer);
    if (phase == last_phase(c, p) && p->number < 0)
        return receive(c, p->folded, 1, output_at(c, all), all, transfer);
    if (phase == last_phase(c, p) && p->folded >= 0)
        return send(c, p->folded, 1, output_at(c, all), all, transfer);
    if (phase == FOLD || phase == last_phase(c, p) || p->number < 0)
        return HVD_OK;
    if (phase <= p->steps)
        return move_there(c, segment, p, phase - 1, transfer);
    return move_back(c, segment, p, 2 * p->steps - phase, transfer);
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    struct hvd__pairing p = pairing_of(c->team);

    hvd__segment_take(c, segment, range_capacity(c));
    return move(c, segment, &p, FOLD);
}

/* Moves with a partner match by order, so the older segment goes first. */
static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    struct hvd__transfer *transfers = hvd__segment_transfers(c, segment);
    struct hvd__pairing p = pairing_of(c->team);
    int last = last_phase(c, &p), done;

    while ((done = hvd__transfers_done(c->team, transfers, 2)) == 1 &&
           segment->phase < last) {
        int phase = segment->phase;

        if (before && before->phase <= phase)
            return 0;
        if (phase == FOLD)
            compute_fold(c, segment, &p);
        else if (phase <= p.steps && p.number >= 0)
            compute_step(c, segment, &p, phase - 1);
        HVD_TRY(move(c, segment, &p, phase + 1));
    }
    return done;
}

const struct hvd__algorithm hvd__reduce_doubling = {
    .name = "doubling",
    .description = "all sums with one partner after the other; allreduces",
    .applies = applies,
    .cost = cost_of_doubling,
    .total = hvd__total_count,
    .start = start_segment,
    .step = step_segment,
};

const struct hvd__algorithm hvd__reduce_halving = {
    .name = "halving",
    .description = "halves of them, and complete sums back; allreduces",
    .applies = applies,
    .cost = cost_of_halving,
    .total = hvd__total_count,
    .start = start_segment,
    .step = step_segment,
};
