/* SPDX-License-Identifier: Apache-2.0 */
/*
 * valley.c - where to go from an end.
 *
 * What is alive between two units follows from the set of those that have run,
 * not from their order: a cell counts from its maker to the last of its users.
 * As a function of that set the bytes alive are submodular: what a unit adds
 * is the less, the more have run before. From this follows:
 *
 *     If some units can run now, with no more alive afterwards than there is
 *     now, nor than after only some of them, and if this does not go over the
 *     peak that is reached anyway, then a best order begins with them.
 *
 * Take any order and run them first instead: at no later point is more alive.
 * Such a set is a valley. The search goes to that with the lowest hill before
 * it, of these the nearest (Dijkstra's way, with the largest instead of the
 * sum), and never looks back. The same holds backward from the end. A unit
 * that is a valley by itself needs no search, nor does the only one that can
 * run.
 *
 *     alive |      __            forward:   a b, which free more than they
 *           |     /  \   __                 make; then c d
 *           |  __/    \_/  \_    backward:  d c b a
 *           | a   b    c  d
 *
 * A search that ends in the nearest valley, or in all that is left, loses
 * nothing: orders of few units are the best there are. Where many are left, one
 * that takes long is begun again, deep: it follows one way to its end before
 * it tries another, and takes whatever valley it finds, without the units that
 * only make it higher. If none is found, it goes to where it is the furthest
 * below a hill that is then behind, as an order of independent chains best
 * does that do not end lower than they begin (Liu 1987); and if there is no
 * hill either, to the unit that is numbered first.
 *
 * How long a search may take depends on how long the last took, and all
 * together on the number of units: there is no clock in it.
 */
#include "compiler/order/valley.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
    MOST_NODES = 1 << 15, /* of one search */
    MOST_LOOKS = 4096,    /* ... whose successors are looked at */
    USUAL_LOOKS = 256,    /* ... beside four times of what the last took */
    FEWEST_LOOKS = 32,
    LOOKS_OF_ALL = 20000, /* of all searches, beside those of each unit */
    LOOKS_OF_UNIT = 8,
    FEW = 16, /* units that are looked at in all orders */
    MOST_DEPTH = 1024,
    MOST_CANDIDATES = 64, /* of those that can run */
    SOME_CANDIDATES = 16, /* ... where many are left */
    RECENT = 32,          /* units whose successors come first */
    SLOTS = 1 << 14       /* of sets that were seen; more than MOST_LOOKS */
};

/* A set: the units of its path from the root, which is empty. */
struct node {
    int32_t parent, unit, depth;
    int64_t hill; /* the most alive on the way to it, or the peak so far */
    int64_t top;  /* ... without that */
    int64_t live; /* in it */
    uint64_t hash;
};

struct slot {
    uint64_t hash;
    int32_t number; /* of the search that put it there */
};

struct ipu__valleys {
    struct ipu__ends ends;
    int32_t looks[2];                /* of an end: that its next search may
                                        take */
    int32_t descents[2][MOST_DEPTH]; /* units, to behind a hill */
    int32_t ndescent[2];
    int32_t first;  /* no unit before it is left */
    int64_t budget; /* looks that are left for all searches */
    bool gave_up;
    /* Of one search */
    enum ipu__direction d;
    bool deep;
    int32_t most;         /* candidates that it looks at */
    int32_t looked;       /* nodes */
    int32_t lowest;       /* the node furthest below a hill; IPU__NONE */
    int32_t lowest_looks; /* ... when it was found */
    int64_t descent;      /* ... how far, bytes */
    struct node *nodes;   /* owned, as all arrays */
    int32_t nnodes;
    int32_t *heap; /* nodes */
    int32_t nheap;
    struct slot *slots;
    int32_t number;
    int32_t path[MOST_DEPTH]; /* nodes that are run, without the root */
    int32_t way[MOST_DEPTH];  /* ... that shall be */
    int32_t depth;
};

/* ---------------------------------------------------------- what can be run */

/* The unit that ran so long ago, on the path or before; IPU__NONE: none. */
static int32_t ran_before(const struct ipu__valleys *s, int32_t ago)
{
    const struct ipu__end *end = &s->ends.end[s->d];

    if (ago < s->depth)
        return s->nodes[s->path[s->depth - 1 - ago]].unit;
    ago -= s->depth;
    return ago < end->ntaken ? end->taken[end->ntaken - 1 - ago] : IPU__NONE;
}

/* First those that have waited for what has just run. */
static int32_t find_candidates(struct ipu__valleys *s, int32_t *units)
{
    int32_t count = 0, nnext, unit;

    for (int32_t i = 0; i < RECENT && (unit = ran_before(s, i)) >= 0; i++) {
        const int32_t *next = ipu__end_next(s->ends.o, s->d, unit, &nnext);

        for (int32_t k = 0; k < nnext; k++)
            ipu__end_candidate(&s->ends, s->d, next[k], s->most, units, &count);
    }
    ipu__end_ready(&s->ends, s->d, s->most, units, &count);
    return count;
}

/* -------------------------------------------------------------- the search */

/* The lower hill first; then the smaller set, or, to get somewhere, the
 * newest. */
static bool is_before(const struct ipu__valleys *s, int32_t a, int32_t b)
{
    const struct node *x = &s->nodes[a], *y = &s->nodes[b];

    if (x->hill != y->hill)
        return x->hill < y->hill;
    if (!s->deep && x->depth != y->depth)
        return x->depth < y->depth;
    return a > b;
}

static void push(struct ipu__valleys *s, int32_t node)
{
    int32_t i = s->nheap++;

    while (i > 0 && is_before(s, node, s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = node;
}

static int32_t pop(struct ipu__valleys *s)
{
    int32_t top = s->heap[0], last = s->heap[--s->nheap], i = 0;

    for (;;) {
        int32_t child = 2 * i + 1;

        if (child >= s->nheap)
            break;
        if (child + 1 < s->nheap &&
            is_before(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (!is_before(s, s->heap[child], last))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = last;
    return top;
}

static uint64_t hash_of(int32_t unit)
{
    uint64_t x = (uint64_t)unit + 1;

    x *= 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Whether this search was at the set before; it is from now on. */
static bool was_seen(struct ipu__valleys *s, uint64_t hash)
{
    size_t at = hash & (SLOTS - 1);

    while (s->slots[at].number == s->number) {
        if (s->slots[at].hash == hash)
            return true;
        at = (at + 1) & (SLOTS - 1);
    }
    s->slots[at] = (struct slot){hash, s->number};
    return false;
}

/* Undo and run units until the path is that of the node. */
static void go_to(struct ipu__valleys *s, int32_t node)
{
    int32_t depth = s->nodes[node].depth, keep = 0;
    int32_t *way = s->way;

    for (int32_t n = node, i = depth; i > 0; n = s->nodes[n].parent)
        way[--i] = n;
    while (keep < s->depth && keep < depth && s->path[keep] == way[keep])
        keep++;
    while (s->depth > keep)
        ipu__end_unrun(&s->ends, s->d, s->nodes[s->path[--s->depth]].unit);
    while (s->depth < depth) {
        s->path[s->depth] = way[s->depth];
        ipu__end_run(&s->ends, s->d, s->nodes[way[s->depth++]].unit);
    }
    s->ends.end[s->d].live = s->nodes[node].live;
}

static struct node child_of(const struct ipu__valleys *s, int32_t parent,
                            int32_t unit)
{
    const struct node *from = &s->nodes[parent];
    const struct ipu__effect effect = ipu__end_effect(&s->ends, s->d, unit);

    return (struct node){.parent = parent,
                         .unit = unit,
                         .depth = from->depth + 1,
                         .hill = from->hill < effect.during ? effect.during
                                                            : from->hill,
                         .live = effect.after,
                         .hash = from->hash ^ hash_of(unit)};
}

/* Least alive last, as the newest of equals is looked at first. */
static void sort_children(struct node *children, int32_t count)
{
    for (int32_t i = 1; i < count; i++) {
        struct node child = children[i];
        int32_t k = i;

        for (; k > 0 && children[k - 1].live < child.live; k--)
            children[k] = children[k - 1];
        children[k] = child;
    }
}

/* The sets one unit larger. Of one that is a valley seen from here, and over
 * no hill, nothing is lost by going there. */
static void expand(struct ipu__valleys *s, int32_t node)
{
    int32_t units[MOST_CANDIDATES], count = find_candidates(s, units);
    struct node children[MOST_CANDIDATES];
    int32_t nchildren = 0;

    for (int32_t i = 0; i < count; i++) {
        struct node child = child_of(s, node, units[i]);

        if (child.live <= s->nodes[node].live &&
            child.hill == s->nodes[node].hill) {
            children[count - 1] = child;
            nchildren = 1;
            break;
        }
        children[count - ++nchildren] = child; /* the first the newest */
    }
    sort_children(children + count - nchildren, nchildren);
    for (int32_t i = count - nchildren; i < count && s->nnodes < MOST_NODES;
         i++) {
        s->nodes[s->nnodes] = children[i];
        push(s, s->nnodes++);
    }
}

/* What a node that is no valley is good for: it is far below a hill that is
 * then behind. */
static void note_descent(struct ipu__valleys *s, int32_t node)
{
    int64_t descent = s->nodes[node].top - s->nodes[node].live;

    if (node == 0 || descent <= s->descent)
        return;
    s->descent = descent;
    s->lowest = node;
    s->lowest_looks = s->looked;
}

/* A descent was found, and nothing better for long. */
static bool has_settled(const struct ipu__valleys *s)
{
    return s->ends.rest > FEW && s->lowest > 0 &&
           s->looked > 4 * s->lowest_looks + USUAL_LOOKS;
}

/* The node of a valley, or of all that is left; -1: not found. looks: how many
 * nodes it may expand. */
static int32_t find_valley(struct ipu__valleys *s, bool deep, int32_t looks)
{
    int64_t live = s->ends.end[s->d].live;

    s->deep = deep;
    s->number++;
    s->nodes[0] = (struct node){
        .parent = -1, .hill = s->ends.peak, .top = live, .live = live};
    s->nnodes = 1;
    s->nheap = s->looked = 0;
    s->descent = 0;
    s->lowest = -1;
    push(s, 0);
    while (s->nheap > 0 && s->looked < looks && !has_settled(s)) {
        int32_t node = pop(s);
        const struct node *n = &s->nodes[node];

        if (node > 0 && (n->live <= live || n->depth == s->ends.rest))
            return node;
        if (n->depth == MOST_DEPTH || s->nnodes == MOST_NODES)
            return -1;
        if (was_seen(s, n->hash))
            continue;
        note_descent(s, node);
        go_to(s, node);
        expand(s, node);
        s->looked++;
        s->budget--;
    }
    return -1;
}

/* Of two that can run at an end, or more: none; of one: that. */
static int32_t only_one(struct ipu__valleys *s, enum ipu__direction d)
{
    int32_t units[2], count = 0;

    ipu__end_ready(&s->ends, d, 2, units, &count);
    return count == 1 ? units[0] : -1;
}

static int32_t at_most(int64_t looks, int64_t most)
{
    if (looks > most)
        looks = most;
    return looks < FEWEST_LOOKS ? FEWEST_LOOKS : (int32_t)looks;
}

/* Take units from the path that only make it higher. Of a valley: it stays
 * one. */
static void smooth(struct ipu__valleys *s)
{
    int32_t kept = s->depth;

    for (int32_t i = s->depth - 1; i >= 0 && kept > 1; i--) {
        int32_t unit = s->nodes[s->path[i]].unit;

        if (!ipu__end_is_outermost(&s->ends, s->d, unit) ||
            ipu__end_without(&s->ends, s->d, unit) >= 0)
            continue;
        ipu__end_unrun(&s->ends, s->d, unit);
        kept--;
    }
}

/* The units on the way to a node; how many. The path is then empty. */
static int32_t leave(struct ipu__valleys *s, int32_t node, int32_t *units)
{
    int32_t count = 0;

    go_to(s, node);
    if (s->nodes[node].live <= s->nodes[0].live)
        smooth(s);
    for (int32_t i = 0; i < s->depth; i++)
        if (s->ends.done[s->nodes[s->path[i]].unit])
            units[count++] = s->nodes[s->path[i]].unit;
    for (int32_t i = count - 1; i >= 0; i--)
        ipu__end_unrun(&s->ends, s->d, units[i]);
    s->depth = 0;
    s->ends.end[s->d].live = s->nodes[0].live;
    return count;
}

/* The nearest valley first, if that can be found; then any. -1: none. */
static int32_t find_any_valley(struct ipu__valleys *s, int32_t looks)
{
    bool few = s->ends.rest <= FEW;
    int32_t valley;

    s->most = few ? MOST_CANDIDATES : SOME_CANDIDATES;
    valley =
        find_valley(s, false, few ? MOST_LOOKS : at_most(looks / 4, looks));
    if (valley >= 0 || few)
        return valley;
    go_to(s, 0);
    return find_valley(s, true, looks);
}

/* Go on from an end to the next valley; false: none was found, but perhaps a
 * descent. */
static bool advance(struct ipu__valleys *s, enum ipu__direction d)
{
    int32_t only = only_one(s, d), valley;

    s->ndescent[d] = 0;
    if (only >= 0) {
        ipu__end_take(&s->ends, d, only);
        return true;
    }
    s->d = d;
    valley = find_any_valley(s, at_most(s->looks[d], s->budget));
    if (valley >= 0) {
        int32_t *units = s->descents[d], count = leave(s, valley, units);

        s->looks[d] = at_most(4 * (int64_t)s->looked + USUAL_LOOKS, MOST_LOOKS);
        for (int32_t i = 0; i < count; i++)
            ipu__end_take(&s->ends, d, units[i]);
        return true;
    }
    if (s->lowest > 0) {
        s->looks[d] =
            at_most(4 * (int64_t)s->lowest_looks + USUAL_LOOKS, MOST_LOOKS);
        s->ndescent[d] = leave(s, s->lowest, s->descents[d]);
    } else {
        s->looks[d] = at_most(s->looks[d] / 2, MOST_LOOKS);
        go_to(s, 0);
    }
    return false;
}

/* Where no valley was found: behind the next hill, or what was numbered first.
 */
static void go_on(struct ipu__valleys *s)
{
    enum ipu__direction d =
        s->ndescent[IPU__FORWARD] > 0 ? IPU__FORWARD : IPU__BACKWARD;

    s->gave_up = true;
    for (int32_t i = 0; i < s->ndescent[d]; i++)
        ipu__end_take(&s->ends, d, s->descents[d][i]);
    if (s->ndescent[d] > 0)
        return;
    while (s->ends.done[s->first])
        s->first++;
    ipu__end_take(&s->ends, IPU__FORWARD, s->first);
}

void ipu__valleys_next(struct ipu__valleys *s)
{
    if (!advance(s, IPU__FORWARD) && !advance(s, IPU__BACKWARD))
        go_on(s);
}

bool ipu__valleys_gave_up(const struct ipu__valleys *s)
{
    return s->gave_up;
}

struct ipu__ends *ipu__valleys_begin(struct ipu__valleys *s, int64_t allowed)
{
    ipu__ends_begin(&s->ends, allowed);
    s->looks[IPU__FORWARD] = s->looks[IPU__BACKWARD] = MOST_LOOKS;
    s->first = 0;
    s->budget = LOOKS_OF_ALL + (int64_t)LOOKS_OF_UNIT * s->ends.o->nunits;
    s->gave_up = false;
    return &s->ends;
}

struct ipu__valleys *ipu__valleys_new(const struct ipu__order *order)
{
    struct ipu__valleys *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->nodes = calloc(MOST_NODES, sizeof *s->nodes);
    s->heap = calloc(MOST_NODES, sizeof *s->heap);
    s->slots = calloc(SLOTS, sizeof *s->slots);
    if (ipu__ends_init(&s->ends, order) >= 0 && s->nodes && s->heap && s->slots)
        return s;
    ipu__valleys_free(s);
    return NULL;
}

void ipu__valleys_free(struct ipu__valleys *s)
{
    if (!s)
        return;
    ipu__ends_fini(&s->ends);
    free(s->nodes);
    free(s->heap);
    free(s->slots);
    free(s);
}
