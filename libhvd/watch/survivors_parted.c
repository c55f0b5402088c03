/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survivors_parted.c - which of those who are left can be in one world, if some
 * hosts do not reach each other.
 *
 * A member says in its letters whom it misses. Two hosts are parted if a member
 * of the one misses a member of the other, and both may go on. A leader wants
 * the most members that there are on hosts of which no two are parted, its own
 * host among them.
 *
 * The search is for the heaviest independent set of a graph, which has a
 * node for each host that is parted from another one; all others are in the
 * set anyway. Few hosts are parted, as a rule. Those with the fewest parted
 * hosts are taken first, the lowest of them before others, so already the first
 * set is a good one; the search goes on to better ones for MOST_STEPS. The
 * graph of a cut through the middle of a network, where two groups of hosts do
 * not reach each other, takes two steps a host.
 */
#include "watch/survivors_state.h"

#include <string.h>

enum { MOST_STEPS = 4096 };

/* The node of a host is the lowest of its members that may go on. */
struct search {
    int n;
    struct hvd__member_set live;
    struct hvd__member_set parted; /* the nodes of the graph */
    struct hvd__member_set from[HVD__SURVIVORS_MOST]; /* the edges of each */
    int weight[HVD__SURVIVORS_MOST]; /* of each: its host's members */
    int node[HVD__SURVIVORS_MOST];   /* of each member in live */
    struct hvd__member_set best;
    int most, nsteps;
};

static void list_hosts(struct search *search, const struct hvd__survivors *s)
{
    int first[HVD__SURVIVORS_MOST];

    for (int i = s->n - 1; i >= 0; i--)
        if (hvd__member_set_has(&search->live, i))
            first[s->host[i]] = i;
    for (int i = 0; i < s->n; i++)
        if (hvd__member_set_has(&search->live, i)) {
            search->node[i] = first[s->host[i]];
            search->weight[search->node[i]]++;
        }
}

static void part(struct search *search, int a, int b)
{
    hvd__member_set_add(&search->from[a], b);
    hvd__member_set_add(&search->from[b], a);
    hvd__member_set_add(&search->parted, a);
    hvd__member_set_add(&search->parted, b);
}

static void find_parted(struct search *search, const struct hvd__survivors *s)
{
    for (int i = 0; i < s->n; i++) {
        struct hvd__member_set missed = s->missed[i];
        int j;

        hvd__member_set_intersect(&missed, &search->live);
        if (!hvd__member_set_has(&search->live, i))
            continue;
        while ((j = hvd__member_set_lowest(&missed)) >= 0) {
            hvd__member_set_drop(&missed, j);
            if (search->node[i] != search->node[j])
                part(search, search->node[i], search->node[j]);
        }
    }
}

/* Returns the node with the fewest edges to others of a set; -1: it is empty.
 * Adds up what they all weigh. */
static int choose_node(const struct search *search,
                       const struct hvd__member_set *nodes, int *weight)
{
    int found = -1, fewest = 0;

    *weight = 0;
    for (int i = 0; i < search->n; i++) {
        struct hvd__member_set others = search->from[i];
        int n;

        if (!hvd__member_set_has(nodes, i))
            continue;
        *weight += search->weight[i];
        hvd__member_set_intersect(&others, nodes);
        n = hvd__member_set_count(&others);
        if (found < 0 || n < fewest) {
            found = i;
            fewest = n;
        }
    }
    return found;
}

/* Looks for a set that weighs more than the best one, which has some nodes, of
 * this weight, and others of which none is parted from those. */
static void look_for_more(struct search *search,
                          const struct hvd__member_set *taken, int weight,
                          const struct hvd__member_set *others)
{
    struct hvd__member_set with = *taken, rest = *others, joined;
    int more, node = choose_node(search, others, &more);

    if (weight > search->most) {
        search->most = weight;
        search->best = *taken;
    }
    if (node < 0 || weight + more <= search->most ||
        ++search->nsteps > MOST_STEPS)
        return;
    hvd__member_set_drop(&rest, node);
    hvd__member_set_add(&with, node);
    joined = rest;
    hvd__member_set_subtract(&joined, &search->from[node]);
    look_for_more(search, &with, weight + search->weight[node], &joined);
    look_for_more(search, taken, weight, &rest);
}

/* Finds the best set with the node of this member. */
static void look_around(struct search *search, int own)
{
    struct hvd__member_set taken = {{0}}, others = search->parted;

    hvd__member_set_add(&taken, own);
    hvd__member_set_drop(&others, own);
    hvd__member_set_subtract(&others, &search->from[own]);
    look_for_more(search, &taken, search->weight[own], &others);
}

static struct hvd__member_set find_joined(const struct hvd__survivors *s,
                                          const struct hvd__member_set *live)
{
    struct search search = {.n = s->n, .live = *live};
    struct hvd__member_set joined = *live;

    list_hosts(&search, s);
    find_parted(&search, s);
    if (hvd__member_set_lowest(&search.parted) < 0)
        return joined;
    look_around(&search, search.node[s->self]);
    for (int i = 0; i < s->n; i++)
        if (hvd__member_set_has(live, i) &&
            hvd__member_set_has(&search.parted, search.node[i]) &&
            !hvd__member_set_has(&search.best, search.node[i]))
            hvd__member_set_drop(&joined, i);
    return joined;
}

struct hvd__member_set hvd__survivors_all_joined(struct hvd__survivors *s)
{
    struct hvd__member_set live = hvd__survivors_all_live(s);

    if (!hvd__member_set_has(&live, s->self))
        return live;
    if (s->is_parted_anew || !hvd__member_set_equal(&live, &s->joined_of)) {
        s->joined = find_joined(s, &live);
        s->joined_of = live;
        s->is_parted_anew = false;
    }
    return s->joined;
}

bool hvd__survivors_may_join(const struct hvd__survivors *s, int member,
                             const struct hvd__member_set *list)
{
    struct hvd__member_set missed = s->missed[member];

    hvd__member_set_intersect(&missed, list);
    if (hvd__member_set_lowest(&missed) >= 0)
        return false;
    for (int i = 0; i < s->n; i++)
        if (hvd__member_set_has(list, i) &&
            hvd__member_set_has(&s->missed[i], member))
            return false;
    return true;
}

void hvd__survivors_hear_of_missed(struct hvd__survivors *s,
                                   const struct hvd__letter *letter)
{
    if (hvd__member_set_equal(&letter->suspected, &s->missed[letter->from]))
        return;
    s->missed[letter->from] = letter->suspected;
    s->is_parted_anew = true;
    if (s->leader == s->self)
        hvd__survivors_unsettle(s);
}

void hvd__survivors_forget_missed(struct hvd__survivors *s)
{
    memset(s->missed, 0, (size_t)s->n * sizeof *s->missed);
    s->is_parted_anew = true;
}

bool hvd__survivors_speaks(const struct hvd__survivors *s, int member)
{
    for (int i = 0; i < member; i++)
        if (s->host[i] == s->host[member] && hvd__member_set_has(&s->list, i))
            return false;
    return hvd__member_set_has(&s->list, member);
}
