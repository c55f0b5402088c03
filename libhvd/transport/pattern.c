/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/pattern.h"

struct hvd__slice hvd__slice_of(int64_t count, int rank, int nranks)
{
    int64_t each = count / nranks, rest = count % nranks;
    int64_t extra = rank < rest ? rank : rest;

    return (struct hvd__slice){
        .start = rank * each + extra,
        .count = each + (rank < rest ? 1 : 0),
    };
}

struct hvd__slice hvd__slice_part(struct hvd__slice slice, int64_t start,
                                  int64_t most)
{
    int64_t left = slice.count > start ? slice.count - start : 0;

    return (struct hvd__slice){
        .start = slice.start + start,
        .count = left < most ? left : most,
    };
}

/* The tree counts ranks from the root: place 0 is the root, and the parent of a
 * place is the place without its lowest set bit. */

int hvd__binomial_parent(int rank, int root, int nranks)
{
    int place = (rank - root + nranks) % nranks;

    if (place == 0)
        return -1;
    return ((place & (place - 1)) + root) % nranks;
}

int hvd__binomial_children(int rank, int root, int nranks, int *children)
{
    int place = (rank - root + nranks) % nranks;
    int64_t bit = 1;
    int n = 0;

    while (bit < nranks && !(place & bit))
        bit <<= 1;
    for (bit >>= 1; bit > 0; bit >>= 1)
        if (place + bit < nranks)
            children[n++] = (int)((place + bit + root) % nranks);
    return n;
}

struct hvd__pairing hvd__pairing_of(int member, int size)
{
    struct hvd__pairing p = {.folded = -1};

    while (2 << p.steps <= size)
        p.steps++;
    p.extra = size - (1 << p.steps);
    if (member >= 2 * p.extra) {
        p.number = member - p.extra;
        return p;
    }
    p.number = member % 2 ? member / 2 : -1;
    p.folded = member ^ 1;
    return p;
}

int hvd__pairing_partner(const struct hvd__pairing *pairing, int step)
{
    int number = pairing->number ^ 1 << step;

    return number < pairing->extra ? 2 * number + 1 : number + pairing->extra;
}

struct hvd__slice hvd__pairing_part(struct hvd__slice range, int number,
                                    int steps)
{
    for (int i = 0; i < steps; i++) {
        struct hvd__slice half = hvd__slice_of(range.count, number >> i & 1, 2);

        range = (struct hvd__slice){range.start + half.start, half.count};
    }
    return range;
}
