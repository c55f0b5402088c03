/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_adasum_hosts.c - the adaptive sum of reduce_adasum.c over several
 * hosts, with the same bits, so that each byte passes between two hosts once.
 *
 * Where ranks are numbered host by host, the lowest levels of the tree have
 * pairs of ranks of one host. They are combined there, and what is left goes to
 * other hosts: of groups of g ranks, 1/g of the data.
 *
 *     NEAR     the ranks of a host divide the shares of all ranks among
 *              themselves: each gets a range of the vectors of its host
 *     NEAR_LEVELS   level by level below log2 g, each sends the others the dot
 *              products of its shares, and combines its range
 *     FAR      share p of what is left on each host goes to rank p: the holder
 *              of a share on a host sends all that the host has of it at once
 *     the levels from log2 g on, as in reduce_adasum.c (adasum_tree.h)
 *     BACK     share p of the result goes to its holder on each host
 *     SHARE    the ranks of a host send each other their ranges
 *
 * The dot products are those of the shares of all ranks, added up in the order
 * of the ranks, wherever they are computed.
 *
 * Any hosts of which one has several ranks. Floats of 16 bits are combined in
 * float32 and would pass between hosts as such, so they come this way only if
 * pairs are combined before. Source: reduce_adasum.c; Thakur, Rabenseifner and
 * Gropp (2005) for reducing inside hosts first. Cost on h hosts of n ranks, m
 * bytes: (1 + n/g) m (h−1)/h β on a host's link, where reduce_adasum.c needs
 * 2nm (h−1)/h, and 4 + log2 g + 2 log2 (hn/g) times all partners' α.
 */
#include <string.h>

#include "base/status.h"
#include "transport/algo/adasum_tree.h"
#include "transport/hosts.h"

enum { NEAR, FAR, BACK, SHARE, NEAR_LEVELS }; /* NEAR_LEVELS + level */

static bool applies(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;

    return h && h->widest > 1 && c->motion == HVD__REDUCE_TO_ALL &&
           c->reduction.op == HVD_ADASUM &&
           (h->group > 1 ||
            hvd__adasum_middle(c->reduction.dtype) == c->reduction.dtype);
}

static int64_t total(const struct hvd__collective *c)
{
    return c->count > 0;
}

/* --------------------------------------------------------------- the places */

/* Returns the members of this host. */
static int width(const struct hvd__hosts *h)
{
    return hvd__hosts_size(h, h->own);
}

/* Returns the member that holds a rank's share on a host. */
static int holder(const struct hvd__collective *c, int host, int rank)
{
    const struct hvd__hosts *h = c->team->hosts;
    int64_t n = hvd__hosts_size(h, host);

    return h->members[h->first[host] + ((rank + 1) * n - 1) / c->team->size];
}

/* Returns the ranks whose shares a member of this host holds. */
static struct hvd__slice held_by(const struct hvd__collective *c, int local)
{
    int64_t n = c->team->size, w = width(c->team->hosts);
    int64_t start = n * local / w;

    return (struct hvd__slice){start, n * (local + 1) / w - start};
}

static bool holds(const struct hvd__collective *c, int rank)
{
    return holder(c, c->team->hosts->own, rank) == c->team->rank;
}

/* Returns the elements that a member of this host holds. */
static struct hvd__slice range_of(const struct hvd__collective *c, int local)
{
    struct hvd__slice held = held_by(c, local), first, last;

    if (held.count == 0)
        return (struct hvd__slice){0, 0};
    first = hvd__share_of(c, (int)held.start);
    last = hvd__share_of(c, (int)(held.start + held.count - 1));
    return (struct hvd__slice){first.start,
                               last.start + last.count - first.start};
}

static int own_local(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;

    return h->places[c->team->rank] - h->first[h->own];
}

/* Returns a member's number on this host, or -1 if it is on another. */
static int local_of(const struct hvd__collective *c, int member)
{
    const struct hvd__hosts *h = c->team->hosts;
    int local = h->places[member] - h->first[h->own];

    return local < width(h) ? local < 0 ? -1 : local : -1;
}

/* Returns the level from which on the tree is one of groups. */
static int first_level(const struct hvd__collective *c)
{
    int level = 0;

    while (2 << level <= c->team->hosts->group)
        level++;
    return level;
}

/* Returns the vectors that a host has left for the tree of groups. */
static int left_on(const struct hvd__collective *c, int host)
{
    return hvd__adasum_left(hvd__hosts_size(c->team->hosts, host),
                            first_level(c));
}

/* -------------------------------------------------------------- the scratch */

/* The scratch has two halves, and dot products behind them. In the first half
 * are the ranges as they came, and then shares packed for other hosts; in the
 * second the ranges in the middle type, and then the shares of all groups. */
size_t hvd__adasum_scratch(hvd_dtype dtype, int64_t count, int nranks,
                           int widest)
{
    size_t n = (size_t)nranks, w = (size_t)widest;

    return 2 * (n + w) * hvd__adasum_stride(dtype, count, nranks) +
           hvd__adasum_dots_bytes(nranks) +
           (w > 1 ? n * (w / 2) * HVD__DOTS_BYTES : 0);
}

static unsigned char *half(const struct hvd__collective *c, int number)
{
    size_t ranks = (size_t)(c->team->size + c->team->hosts->widest);

    return (unsigned char *)c->scratch +
           (size_t)number * ranks *
               hvd__adasum_stride(c->reduction.dtype, c->count, c->team->size);
}

static size_t middle_bytes(const struct hvd__collective *c, int64_t count)
{
    return (size_t)count *
           hvd__dtype_bytes(hvd__adasum_middle(c->reduction.dtype));
}

/* Returns the bytes of what this rank holds of one vector. */
static size_t range_bytes(const struct hvd__collective *c)
{
    return middle_bytes(c, range_of(c, own_local(c)).count);
}

static unsigned char *came_from(const struct hvd__collective *c, int local)
{
    return half(c, 0) + (size_t)local * range_bytes(c);
}

/* Returns where a rank's share of a vector of this host is. */
static unsigned char *near_share(const struct hvd__collective *c, int vector,
                                 int rank)
{
    int64_t before =
        hvd__share_of(c, rank).start - range_of(c, own_local(c)).start;

    return half(c, 1) + (size_t)vector * range_bytes(c) +
           middle_bytes(c, before);
}

/* Returns where a rank's share, which this rank holds, is packed, and its bytes
 * of all vectors that are left here. */
static unsigned char *packed(const struct hvd__collective *c, int rank,
                             size_t *bytes)
{
    size_t left = (size_t)left_on(c, c->team->hosts->own);
    int64_t before =
        hvd__share_of(c, rank).start - range_of(c, own_local(c)).start;

    *bytes = left * middle_bytes(c, hvd__share_of(c, rank).count);
    return half(c, 0) + left * middle_bytes(c, before);
}

static struct hvd__adasum tree_of(const struct hvd__collective *c)
{
    int64_t count = hvd__share_of(c, c->team->rank).count;

    return (struct hvd__adasum){
        .first = first_level(c),
        .vectors = half(c, 1),
        .places = c->team->hosts->places,
        .stride = middle_bytes(c, count),
        .dots = (double *)(void *)half(c, 2),
    };
}

/* Returns where what is left on a host, of this rank's share, comes to. */
static unsigned char *left_from(const struct hvd__collective *c, int host)
{
    struct hvd__adasum tree = tree_of(c);

    return tree.vectors +
           (size_t)(c->team->hosts->first[host] >> tree.first) * tree.stride;
}

/* Returns the dot products of a rank's share of the pairs of this host. */
static double *near_dots(const struct hvd__collective *c, int pairs,
                         int64_t rank)
{
    double *dots = tree_of(c).dots;

    return dots + hvd__adasum_dots_bytes(c->team->size) / sizeof *dots +
           HVD__DOTS * pairs * rank;
}

/* ---------------------------------------------------------- inside the host */

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    struct hvd__slice range = range_of(c, own_local(c));

    segment->count = 1;
    segment->phase = NEAR;
    if (range.count > 0)
        memcpy(came_from(c, own_local(c)),
               (const char *)c->input + hvd__bytes_of(c, range.start),
               hvd__bytes_of(c, range.count));
    return HVD_OK;
}

/* Converts the ranges that have come. */
static void convert_ranges(const struct hvd__collective *c)
{
    int64_t count = range_of(c, own_local(c)).count;

    for (int i = 0; i < width(c->team->hosts); i++)
        hvd__convert(hvd__adasum_middle(c->reduction.dtype),
                     half(c, 1) + (size_t)i * range_bytes(c),
                     c->reduction.dtype, came_from(c, i), count,
                     c->reduction.prescale);
}

static int near_pairs(const struct hvd__collective *c, int level)
{
    return hvd__adasum_left(width(c->team->hosts), level) / 2;
}

/* Computes the dot products of the shares that this rank holds. */
static void compute_dots(const struct hvd__collective *c, int level)
{
    struct hvd__slice held = held_by(c, own_local(c));
    int pairs = near_pairs(c, level);

    for (int rank = (int)held.start; rank < held.start + held.count; rank++)
        for (int i = 0; i < pairs; i++)
            hvd__adasum_dots(hvd__adasum_middle(c->reduction.dtype),
                             near_share(c, 2 * i << level, rank),
                             near_share(c, (2 * i + 1) << level, rank),
                             hvd__share_of(c, rank).count,
                             near_dots(c, pairs, rank) + HVD__DOTS * i);
}

/* Combines this rank's range of each pair. All dot products have come. */
static void combine(const struct hvd__collective *c, int level)
{
    int pairs = near_pairs(c, level);
    struct hvd__slice range = range_of(c, own_local(c));
    int first = (int)held_by(c, own_local(c)).start;

    for (int i = 0; i < pairs && range.count > 0; i++) {
        unsigned char *a = near_share(c, 2 * i << level, first);
        double sums[HVD__DOTS] = {0};

        for (int rank = 0; rank < c->team->size; rank++)
            for (int k = 0; k < HVD__DOTS; k++)
                sums[k] += near_dots(c, pairs, rank)[HVD__DOTS * i + k];
        hvd__adasum_combine(hvd__adasum_middle(c->reduction.dtype), a, a,
                            near_share(c, (2 * i + 1) << level, first),
                            range.count, sums);
    }
}

/* Packs what is left, share by share. This rank's own share, if it holds that,
 * goes to its place. */
static void pack_shares(const struct hvd__collective *c)
{
    struct hvd__slice held = held_by(c, own_local(c));
    int own = c->team->hosts->own;
    size_t bytes;

    for (int rank = (int)held.start; rank < held.start + held.count; rank++) {
        size_t each = middle_bytes(c, hvd__share_of(c, rank).count);
        unsigned char *to = packed(c, rank, &bytes);

        for (int i = 0; i < left_on(c, own); i++)
            memcpy(to + (size_t)i * each,
                   near_share(c, i << first_level(c), rank), each);
    }
    if (holds(c, c->team->rank)) {
        unsigned char *from = packed(c, c->team->rank, &bytes);

        memcpy(left_from(c, own), from, bytes);
    }
}

/* ------------------------------------------------------------ the transfers */

/* Starts the transfers of what a member of this host has and what this rank
 * has for it. */
static int swap(const struct hvd__collective *c, int from, int to, void *in,
                size_t in_bytes, const void *out, size_t out_bytes,
                struct hvd__transfer *transfers)
{
    if (in)
        HVD_TRY(hvd__team_receive(c->team, from, c->tag, in, in_bytes,
                                  &transfers[0]));
    return out ? hvd__team_send(c->team, to, c->tag, out, out_bytes,
                                &transfers[1])
               : HVD_OK;
}

/* Phases between the members of a host. */
static int meet_near(struct hvd__collective *c, int phase, int from, int to,
                     struct hvd__transfer *transfers)
{
    int there = local_of(c, from), here = local_of(c, to);
    int pairs = phase >= NEAR_LEVELS ? near_pairs(c, phase - NEAR_LEVELS) : 0;
    struct hvd__slice own = range_of(c, own_local(c)), theirs = {0, 0};
    struct hvd__slice held = held_by(c, own_local(c));
    size_t dots = (size_t)pairs * HVD__DOTS_BYTES;
    char *output = c->output;

    if (phase == NEAR) {
        theirs = here < 0 ? theirs : range_of(c, here);
        return swap(c, from, to, there < 0 ? NULL : came_from(c, there),
                    hvd__bytes_of(c, own.count),
                    here < 0 ? NULL
                             : (const char *)c->input +
                                   hvd__bytes_of(c, theirs.start),
                    hvd__bytes_of(c, theirs.count), transfers);
    }
    if (phase == SHARE) {
        theirs = there < 0 ? theirs : range_of(c, there);
        return swap(c, from, to,
                    there < 0 ? NULL : output + hvd__bytes_of(c, theirs.start),
                    hvd__bytes_of(c, theirs.count),
                    here < 0 ? NULL : output + hvd__bytes_of(c, own.start),
                    hvd__bytes_of(c, own.count), transfers);
    }
    theirs = there < 0 ? theirs : held_by(c, there);
    return swap(c, from, to,
                there < 0 ? NULL : near_dots(c, pairs, theirs.start),
                (size_t)theirs.count * dots,
                here < 0 ? NULL : near_dots(c, pairs, held.start),
                (size_t)held.count * dots, transfers);
}

/* Sends the owner of a share what is left here of it. */
static int meet_far(struct hvd__collective *c, int from, int to,
                    struct hvd__transfer *transfers)
{
    int local, host = hvd__hosts_find(c->team->hosts, from, &local);
    bool comes = holder(c, host, c->team->rank) == from;
    size_t out_bytes = 0,
           in_bytes = (size_t)left_on(c, host) * tree_of(c).stride;
    const unsigned char *out = holds(c, to) ? packed(c, to, &out_bytes) : NULL;

    return swap(c, from, to, comes ? left_from(c, host) : NULL, in_bytes, out,
                out_bytes, transfers);
}

/* Sends the holder of a share on its host what has become of it. */
static int meet_back(struct hvd__collective *c, int from, int to,
                     struct hvd__transfer *transfers)
{
    int local, host = hvd__hosts_find(c->team->hosts, to, &local);
    int us = c->team->rank;

    return swap(c, from, to, holds(c, from) ? hvd__adasum_share(c, from) : NULL,
                hvd__bytes_of(c, hvd__share_of(c, from).count),
                holder(c, host, us) == to ? hvd__adasum_share(c, us) : NULL,
                hvd__bytes_of(c, hvd__share_of(c, us).count), transfers);
}

static int meet(struct hvd__collective *c, struct hvd__segment *segment, int i,
                struct hvd__transfer *transfers)
{
    int from = hvd__team_from(c->team, i), to = hvd__team_to(c->team, i);
    struct hvd__adasum tree;

    if (segment->phase >= HVD__ADASUM_TREE) {
        tree = tree_of(c);
        return hvd__adasum_meet(c, &tree, segment->phase, i, transfers);
    }
    if (segment->phase == FAR)
        return meet_far(c, from, to, transfers);
    if (segment->phase == BACK)
        return meet_back(c, from, to, transfers);
    return meet_near(c, segment->phase, from, to, transfers);
}

/* Begins a level inside the host, or the phase behind the last. */
static int begin_near(struct hvd__collective *c, int level)
{
    if (level < first_level(c)) {
        compute_dots(c, level);
        return NEAR_LEVELS + level;
    }
    pack_shares(c);
    return FAR;
}

/* Ends a phase. Returns the next. */
static int next_phase(struct hvd__collective *c, int phase)
{
    struct hvd__adasum tree = tree_of(c);
    int next;

    if (phase == NEAR) {
        convert_ranges(c);
        return begin_near(c, 0);
    }
    if (phase >= NEAR_LEVELS && phase < HVD__ADASUM_TREE) {
        combine(c, phase - NEAR_LEVELS);
        return begin_near(c, phase - NEAR_LEVELS + 1);
    }
    if (phase == BACK)
        return SHARE;
    next = phase == FAR ? hvd__adasum_begin(c, &tree, tree.first)
                        : hvd__adasum_next(c, &tree, phase);
    return next < 0 ? BACK : next;
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    int done =
        hvd__segment_meet(c, segment, before, hvd__adasum_share_bytes(c), meet);

    if (done <= 0 || segment->phase == SHARE)
        return done;
    segment->phase = next_phase(c, segment->phase);
    segment->met = 0;
    return 0;
}

const struct hvd__algorithm hvd__reduce_adasum_hosts = {
    .name = "adasum-hosts",
    .description = "adaptive sums pair by pair, on each host first; any size",
    .applies = applies,
    .total = total,
    .start = start_segment,
    .step = step_segment,
};
