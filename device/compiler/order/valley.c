/* SPDX-License-Identifier: Apache-2.0 */
/*
 * valley.c - searches for the units to take next. search.c calls it.
 *
 * The bytes alive between two units depend on the set of units that have run,
 * and not on their order: a storage is alive from its maker to the last of its
 * users. The bytes are a submodular function of that set: the more units have
 * run, the fewer bytes another unit adds. This theorem follows:
 *
 *     Take a set of units that can run now. Assume that after it no more bytes
 *     are alive than now, and no more than after any part of it, and that it
 *     does not exceed the peak that is reached anyway. Then a best order begins
 *     with this set.
 *
 * Proof: take any order and move the set to its begin; then at no later point
 * are more bytes alive. Such a set is called a valley, and the largest number
 * of bytes on the way to it a hill. The search goes to the valley behind the
 * lowest hill, and to the nearest of several: it is Dijkstra's algorithm with
 * the maximum in place of the sum. It never goes back. No search is needed for
 * a unit that is a valley by itself, or for the only unit that can run.
 *
 *     alive |      __            a b first, which free more than they make;
 *           |     /  \   __      then c d
 *           |  __/    \_/  \_
 *           | a   b    c  d
 *
 * A search that ends in the nearest valley, or with all remaining units, loses
 * nothing, so orders of few units are optimal. If many units remain, a search
 * that takes long is restarted as a deep search. A deep search follows one path
 * to its end before it tries another. It takes the first valley that it finds,
 * without the units that only make it higher. If it finds none, the unit with
 * the lowest number is taken.
 *
 * The limit of a search depends on the length of the previous one, and the
 * limit of all searches on the number of units. No clock is used.
 *
 * The theorem also holds backward from the last unit. A search from both ends
 * was tried: it made no peak smaller in any network of bench/ and models/, and
 * took 1.6 times as long.
 */
#include "compiler/order/valley.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
    MOST_NODES = 1 << 15, /* nodes of one search */
    MOST_LOOKS = 4096,    /* nodes of one search that are expanded */
    USUAL_LOOKS = 256, /* expanded, plus four times those of the last search */
    FEWEST_LOOKS = 32,
    LOOKS_OF_ALL = 20000, /* for all searches, plus those of each unit */
    LOOKS_OF_UNIT = 8,
    FEW = 16, /* units that are looked at in all orders */
    MOST_DEPTH = 1024,
    MOST_CANDIDATES = 64, /* units that may follow a node */
    SOME_CANDIDATES = 16, /* the same, where many units are left */
    RECENT = 32,          /* units whose successors come first */
    SLOTS = 1 << 14 /* hash slots for the sets seen; more than MOST_LOOKS */
};

/* A set of units: those on its path from the root, which is empty. */
struct node {
    int32_t parent, unit, depth;
    int64_t hill; /* bytes: the most alive on the path, or the peak so far */
    int64_t live; /* bytes alive when just these have run */
    uint64_t hash;
};

struct slot {
    uint64_t hash;
    int32_t number; /* number of the search that put it there */
};

struct ipu__valleys {
    struct ipu__front front;
    int32_t looks;  /* looks that the next search may take */
    int32_t first;  /* no unit before it is left */
    int64_t budget; /* remaining looks for all searches */
    bool gave_up;
    /* State of one search */
    bool deep;
    int32_t most;       /* candidates that it looks at */
    int32_t looked;     /* nodes that it has expanded */
    struct node *nodes; /* owned, as all arrays */
    int32_t nnodes;
    int32_t *heap; /* nodes */
    int32_t nheap;
    struct slot *slots;
    int32_t number;
    int32_t path[MOST_DEPTH]; /* nodes that are run, without the root */
    int32_t way[MOST_DEPTH];  /* nodes that are to be */
    int32_t depth;
};

/* ----------------------------------------------------- units that can run */

/* Returns the unit that ran so long ago, on the path or before; or IPU__NONE.
 */
static int32_t ran_before(const struct ipu__valleys *s, int32_t ago)
{
    const struct ipu__front *f = &s->front;

    if (ago < s->depth)
        return s->nodes[s->path[s->depth - 1 - ago]].unit;
    ago -= s->depth;
    return ago < f->ntaken ? f->taken[f->ntaken - 1 - ago] : IPU__NONE;
}

/* Lists units that can run: first those that waited for what has just run. */
static int32_t find_candidates(struct ipu__valleys *s, int32_t *units)
{
    const struct ipu__order_problem *o = s->front.problem;
    int32_t count = 0, unit;

    for (int32_t i = 0; i < RECENT && (unit = ran_before(s, i)) >= 0; i++) {
        const struct ipu__order_unit *u = &o->units[unit];

        for (int32_t k = 0; k < u->nsuccs; k++)
            ipu__front_add_if_ready(&s->front, o->succs[u->succs + k], s->most,
                                    units, &count);
    }
    ipu__front_add_ready(&s->front, s->most, units, &count);
    return count;
}

/* -------------------------------------------------------------- the search */

/* Orders nodes by the lower hill; then by the smaller set or, in a deep search,
 * by the newer node. */
static bool is_before(const struct ipu__valleys *s, int32_t a, int32_t b)
{
    const struct node *x = &s->nodes[a], *y = &s->nodes[b];

    if (x->hill != y->hill)
        return x->hill < y->hill;
    if (!s->deep && x->depth != y->depth)
        return x->depth < y->depth;
    return a > b;
}

static void push_node(struct ipu__valleys *s, int32_t node)
{
    int32_t i = s->nheap++;

    while (i > 0 && is_before(s, node, s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = node;
}

static int32_t pop_node(struct ipu__valleys *s)
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

/* Returns whether this search was at the set before, and notes that it is. */
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

/* Undoes and runs units until the path is that of the node. */
static void go_to(struct ipu__valleys *s, int32_t node)
{
    int32_t depth = s->nodes[node].depth, keep = 0;
    int32_t *way = s->way;

    for (int32_t n = node, i = depth; i > 0; n = s->nodes[n].parent)
        way[--i] = n;
    while (keep < s->depth && keep < depth && s->path[keep] == way[keep])
        keep++;
    while (s->depth > keep)
        ipu__front_undo(&s->front, s->nodes[s->path[--s->depth]].unit);
    while (s->depth < depth) {
        s->path[s->depth] = way[s->depth];
        ipu__front_run(&s->front, s->nodes[way[s->depth++]].unit);
    }
    s->front.live = s->nodes[node].live;
}

static struct node child_of(const struct ipu__valleys *s, int32_t parent,
                            int32_t unit)
{
    const struct node *from = &s->nodes[parent];
    const struct ipu__effect effect = ipu__front_effect(&s->front, unit);

    return (struct node){.parent = parent,
                         .unit = unit,
                         .depth = from->depth + 1,
                         .hill = from->hill < effect.during ? effect.during
                                                            : from->hill,
                         .live = effect.after,
                         .hash = from->hash ^ hash_of(unit)};
}

/* Sorts the child with the fewest bytes alive last, since the newest of equal
 * nodes is expanded first. */
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

/* Adds the sets that are one unit larger. If one of them is a valley seen from
 * here, over no hill, it is the only one: going there loses nothing. */
static void expand_node(struct ipu__valleys *s, int32_t node)
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
        children[count - ++nchildren] = child; /* the first is the newest */
    }
    sort_children(children + count - nchildren, nchildren);
    for (int32_t i = count - nchildren; i < count && s->nnodes < MOST_NODES;
         i++) {
        s->nodes[s->nnodes] = children[i];
        push_node(s, s->nnodes++);
    }
}

/* Returns the node of a valley, or of all units that are left; -1 if it found
 * none in that many looks. */
static int32_t find_valley(struct ipu__valleys *s, bool deep, int32_t looks)
{
    int64_t live = s->front.live;

    s->deep = deep;
    s->number++;
    s->nodes[0] =
        (struct node){.parent = -1, .hill = s->front.peak, .live = live};
    s->nnodes = 1;
    s->nheap = s->looked = 0;
    push_node(s, 0);
    while (s->nheap > 0 && s->looked < looks) {
        int32_t node = pop_node(s);
        const struct node *n = &s->nodes[node];

        if (node > 0 &&
            (n->live <= live || n->depth == ipu__front_rest(&s->front)))
            return node;
        if (n->depth == MOST_DEPTH || s->nnodes == MOST_NODES)
            return -1;
        if (was_seen(s, n->hash))
            continue;
        go_to(s, node);
        expand_node(s, node);
        s->looked++;
        s->budget--;
    }
    return -1;
}

/* Returns the only unit that can run; -1 if there are several. */
static int32_t only_one(struct ipu__valleys *s)
{
    int32_t units[2], count = 0;

    ipu__front_add_ready(&s->front, 2, units, &count);
    return count == 1 ? units[0] : -1;
}

static int32_t at_most(int64_t looks, int64_t most)
{
    if (looks > most)
        looks = most;
    return looks < FEWEST_LOOKS ? FEWEST_LOOKS : (int32_t)looks;
}

/* Undoes units of the path to a valley that only make it higher. What is left
 * is a valley, too. */
static void smooth_path(struct ipu__valleys *s)
{
    int32_t kept = s->depth;

    for (int32_t i = s->depth - 1; i >= 0 && kept > 1; i--) {
        int32_t unit = s->nodes[s->path[i]].unit;

        if (!ipu__front_can_undo(&s->front, unit) ||
            ipu__front_without(&s->front, unit) >= 0)
            continue;
        ipu__front_undo(&s->front, unit);
        kept--;
    }
}

/* Takes the units on the way to a node. The path is then empty. */
static void take_path(struct ipu__valleys *s, int32_t node)
{
    int32_t units[MOST_DEPTH], count = 0;

    go_to(s, node);
    if (s->nodes[node].live <= s->nodes[0].live)
        smooth_path(s);
    for (int32_t i = 0; i < s->depth; i++)
        if (s->front.done[s->nodes[s->path[i]].unit])
            units[count++] = s->nodes[s->path[i]].unit;
    for (int32_t i = count - 1; i >= 0; i--)
        ipu__front_undo(&s->front, units[i]);
    s->depth = 0;
    s->front.live = s->nodes[0].live;
    for (int32_t i = 0; i < count; i++)
        ipu__front_take(&s->front, units[i]);
}

/* Returns the nearest valley, if that can be found soon, or any; -1 if none was
 * found. */
static int32_t find_any_valley(struct ipu__valleys *s, int32_t looks)
{
    bool few = ipu__front_rest(&s->front) <= FEW;
    int32_t valley;

    s->most = few ? MOST_CANDIDATES : SOME_CANDIDATES;
    valley =
        find_valley(s, false, few ? MOST_LOOKS : at_most(looks / 4, looks));
    if (valley >= 0 || few)
        return valley;
    go_to(s, 0);
    return find_valley(s, true, looks);
}

void ipu__valleys_next(struct ipu__valleys *s)
{
    int32_t only = only_one(s), valley;

    if (only >= 0) {
        ipu__front_take(&s->front, only);
        return;
    }
    valley = find_any_valley(s, at_most(s->looks, s->budget));
    if (valley >= 0) {
        take_path(s, valley);
        s->looks = at_most(4 * (int64_t)s->looked + USUAL_LOOKS, MOST_LOOKS);
        return;
    }
    s->looks = at_most(s->looks / 2, MOST_LOOKS);
    go_to(s, 0);
    s->gave_up = true;
    while (s->front.done[s->first])
        s->first++;
    ipu__front_take(&s->front, s->first);
}

bool ipu__valleys_gave_up(const struct ipu__valleys *s)
{
    return s->gave_up;
}

struct ipu__front *ipu__valleys_begin(struct ipu__valleys *s, int64_t allowed)
{
    ipu__front_begin(&s->front, allowed);
    s->looks = MOST_LOOKS;
    s->budget =
        LOOKS_OF_ALL + (int64_t)LOOKS_OF_UNIT * s->front.problem->nunits;
    s->first = s->depth = 0;
    s->gave_up = false;
    return &s->front;
}
struct ipu__valleys *ipu__valleys_new(const struct ipu__order_problem *problem)
{
    struct ipu__valleys *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->nodes = calloc(MOST_NODES, sizeof *s->nodes);
    s->heap = calloc(MOST_NODES, sizeof *s->heap);
    s->slots = calloc(SLOTS, sizeof *s->slots);
    if (ipu__front_init(&s->front, problem) >= 0 && s->nodes && s->heap &&
        s->slots)
        return s;
    ipu__valleys_free(s);
    return NULL;
}

void ipu__valleys_free(struct ipu__valleys *s)
{
    if (!s)
        return;
    ipu__front_fini(&s->front);
    free(s->nodes);
    free(s->heap);
    free(s->slots);
    free(s);
}
