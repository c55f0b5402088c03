/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plans.c - plans of products that were found once.
 *
 * With less room a plan takes as many cycles or more. So the plan found with
 * some room is the best with any less, too, down to the bytes that it needs
 * itself: an entry holds for all rooms in between. The search goes through its
 * grids in one order and takes the first of the cheapest; that is the same for
 * all of them.
 *
 * The store is a hash table of products, each with the number of its first
 * entry; entries of the same place are a list.
 */
#include "target/plans.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { FIRST_SIZE = 64 };

struct entry {
    ipu_product product;
    int64_t room;
    int64_t share; /* the share that it had to do with; 0: the room */
    struct ipu__choice choice;
    int32_t next; /* next entry of the same place; -1: none */
};

struct ipu__plans {
    struct entry *entries; /* owned, [capacity] */
    int32_t *places;       /* owned, [capacity], which is a power of 2 */
    int32_t count, capacity;
};

struct ipu__plans *ipu__plans_new(void)
{
    return calloc(1, sizeof(struct ipu__plans));
}

void ipu__plans_free(struct ipu__plans *plans)
{
    if (!plans)
        return;
    free(plans->entries);
    free(plans->places);
    free(plans);
}

static bool same(const ipu_product *a, const ipu_product *b)
{
    return a->batch == b->batch && a->m == b->m && a->k == b->k &&
           a->n == b->n && a->element_bytes == b->element_bytes &&
           a->kernel[0] == b->kernel[0] && a->kernel[1] == b->kernel[1] &&
           a->stride[0] == b->stride[0] && a->stride[1] == b->stride[1] &&
           a->of_kernel == b->of_kernel && a->grouped == b->grouped;
}

static size_t place_of(const struct ipu__plans *plans, const ipu_product *p)
{
    const int64_t words[] = {p->batch,     p->m,         p->k,
                             p->n,         p->kernel[0], p->kernel[1],
                             p->stride[0], p->stride[1], p->element_bytes,
                             p->of_kernel, p->grouped};
    uint64_t hash = 0;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = (hash ^ (uint64_t)words[i]) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 32) & ((size_t)plans->capacity - 1);
}

const struct ipu__choice *ipu__plans_find(const struct ipu__plans *plans,
                                          const ipu_product *product,
                                          int64_t room)
{
    if (plans->count == 0)
        return NULL;
    for (int32_t i = plans->places[place_of(plans, product)]; i >= 0;
         i = plans->entries[i].next) {
        const struct entry *e = &plans->entries[i];

        if (e->share == 0 && room <= e->room && e->choice.needs <= room &&
            same(&e->product, product))
            return &e->choice;
    }
    return NULL;
}

static void link_entry(struct ipu__plans *plans, int32_t i)
{
    size_t place = place_of(plans, &plans->entries[i].product);

    plans->entries[i].next = plans->places[place];
    plans->places[place] = i;
}

static bool grow_table(struct ipu__plans *plans)
{
    int32_t capacity = plans->capacity ? 2 * plans->capacity : FIRST_SIZE;
    struct entry *entries =
        realloc(plans->entries, (size_t)capacity * sizeof *entries);
    int32_t *places;

    if (!entries)
        return false;
    plans->entries = entries;
    places = realloc(plans->places, (size_t)capacity * sizeof *places);
    if (!places)
        return false;
    plans->places = places;
    plans->capacity = capacity;
    memset(places, -1, (size_t)capacity * sizeof *places);
    for (int32_t i = 0; i < plans->count; i++)
        link_entry(plans, i);
    return true;
}

const struct ipu__choice *ipu__plans_find_share(const struct ipu__plans *plans,
                                                const ipu_product *product,
                                                int64_t room, int64_t share)
{
    if (plans->count == 0)
        return NULL;
    for (int32_t i = plans->places[place_of(plans, product)]; i >= 0;
         i = plans->entries[i].next) {
        const struct entry *e = &plans->entries[i];

        if (e->share == share && e->room == room && same(&e->product, product))
            return &e->choice;
    }
    return NULL;
}

int ipu__plans_add(struct ipu__plans *plans, const ipu_product *product,
                   int64_t room, const struct ipu__choice *choice)
{
    return ipu__plans_add_share(plans, product, room, 0, choice);
}

int ipu__plans_add_share(struct ipu__plans *plans, const ipu_product *product,
                         int64_t room, int64_t share,
                         const struct ipu__choice *choice)
{
    if (plans->count == plans->capacity && !grow_table(plans))
        return ipu__fail_memory((size_t)plans->count * sizeof *plans->entries);
    plans->entries[plans->count] = (struct entry){
        .product = *product, .room = room, .share = share, .choice = *choice};
    link_entry(plans, plans->count++);
    return IPU_OK;
}
