/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product_room.c - the plan of a product for the room that it is given: known
 * plans, and the way from the usual plan to one with less or more room.
 */
#include "base/error.h"
#include "target/cost.h"
#include "target/product.h"

/* Finds the plan, first among the known ones: the plan without a limit is the
 * best wherever there is room for it. */
int ipu__find_plan(const ipu_target *target, const ipu_product *d, int64_t room,
                   struct ipu__plans *plans, struct ipu__choice *best)
{
    const int64_t rooms[] = {IPU__UNLIMITED, room};
    const struct ipu__choice *known = NULL;

    if (room > 0 && !plans)
        *best = ipu__search_products(target, d, room, &ipu__no_bounds);
    for (int i = target->output_slices ? 1 : 0;
         i < 2 && plans && room > 0 && !known; i++) {
        if (!ipu__plans_find(plans, d, rooms[i])) {
            *best = ipu__search_products(target, d, rooms[i], &ipu__no_bounds);
            if (best->total == 0)
                best->needs = 0; /* no plan needs less either */
            else if (target->output_slices)
                best->needs = room; /* this search does not cover all plans */
            IPU_TRY(ipu__plans_add(plans, d, rooms[i], best));
        }
        known = ipu__plans_find(plans, d, room);
    }
    if (known)
        *best = *known;
    return IPU_OK;
}

/*
 * Goes from one plan to those with less room, in steps. Each is the best that
 * takes no more temporary memory and no fewer cycles than the one before, down
 * to one that fits into room, or to the last that there is. The way does not
 * depend on room, so that with less of it one goes further on the same way.
 */
static void go_down(const ipu_target *target, const ipu_product *d,
                    int64_t room, struct ipu__bounds bounds,
                    struct ipu__choice *best)
{
    enum { LEAST_ROOM = 64, STEPS = 12 };
    int64_t tried = best->needs;

    while (best->needs > room && tried > LEAST_ROOM) {
        struct ipu__choice next;

        tried -= 1 + tried / STEPS;
        bounds.most_bytes = best->cycles.temporary_bytes;
        bounds.least_cycles = best->total;
        next = ipu__search_products(target, d, tried, &bounds);
        /* Kernels' derivatives may need a little more than was tried. */
        if (next.total > 0 && next.needs < best->needs) {
            *best = next;
            tried = ipu__least(tried, next.needs);
        }
    }
}

/* Goes from the largest room down, over the plans that take more temporary
 * memory than the usual one and no more cycles. The usual one stays if there is
 * none. */
static void go_up(const ipu_target *target, const ipu_product *d, int64_t room,
                  int64_t most, struct ipu__choice *best)
{
    const struct ipu__bounds bounds = {.least_bytes =
                                           best->cycles.temporary_bytes,
                                       .most_bytes = INT64_MAX,
                                       .most_cycles = best->total};
    struct ipu__choice other = ipu__search_products(target, d, most, &bounds);

    if (other.total == 0)
        return;
    go_down(target, d, room, bounds, &other);
    if (other.needs <= room)
        *best = other;
}

/* Finds the plan for share bytes of room, where the usual plan was found with
 * usual bytes, and most is the room of the tile. */
int ipu__find_share(const ipu_target *target, const ipu_product *d,
                    const int64_t rooms[3], struct ipu__plans *plans,
                    struct ipu__choice *best)
{
    const int64_t share = rooms[0], usual = rooms[1], most = rooms[2];
    const struct ipu__choice *known =
        plans ? ipu__plans_find_share(plans, d, usual, share) : NULL;

    if (known) {
        *best = *known;
        return IPU_OK;
    }
    if (share < usual)
        go_down(target, d, share, ipu__no_bounds, best);
    else
        go_up(target, d, share, most, best);
    return plans ? ipu__plans_add_share(plans, d, usual, share, best) : IPU_OK;
}
