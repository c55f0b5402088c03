/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/slate.h"

#include <stdlib.h>
#include <string.h>

/* Published in the place of a part that its rank no longer needs: within the
 * header of the heap, where nothing lies. */
#define GONE UINT64_C(1)

/* Slates of this rank that are done with, while other ranks may still look at
 * our parts. Changed by one thread at a time: while sets are made or ended. */
static struct hvd__slate *retired;

static size_t places_offset(void)
{
    return sizeof(struct hvd__part);
}

static size_t pairs_offset(const struct hvd__slate *slate)
{
    return places_offset() +
           (size_t)slate->size * sizeof(struct hvd__slate_place);
}

static size_t buffers_offset(const struct hvd__slate *slate)
{
    size_t end = pairs_offset(slate) +
                 (size_t)slate->size * sizeof(struct hvd__slate_pair);

    return (end + 63) / 64 * 64;
}

static size_t part_bytes(const struct hvd__slate *slate)
{
    return buffers_offset(slate) + slate->bounce_bytes;
}

/* Whether no rank looks at its slate of this set any more. */
static bool is_unused(const struct hvd__slate *slate)
{
    uint64_t place;

    for (int i = 0; i < slate->size; i++)
        if (hvd__heap_look_up(slate->heap, slate->world[i], slate->number,
                              slate->id, &place) &&
            place != GONE)
            return false;
    return true;
}

static void destroy(struct hvd__slate *slate)
{
    free(slate->parts);
    free(slate->world);
    free(slate);
}

/* Give back the parts that all others have done with as well. */
static void sweep(const struct hvd__heap *heap)
{
    struct hvd__slate **link = &retired, *slate;

    while ((slate = *link)) {
        if (slate->heap != heap || !is_unused(slate)) {
            link = &slate->next;
            continue;
        }
        *link = slate->next;
        if (slate->own)
            hvd__heap_free(slate->own);
        destroy(slate);
    }
}

void hvd__slate_retire(struct hvd__slate *slate)
{
    if (!slate)
        return;
    hvd__heap_publish(slate->heap, slate->number, slate->id, GONE);
    slate->next = retired;
    retired = slate;
}

void hvd__slate_forget(void)
{
    struct hvd__slate *slate;

    while ((slate = retired)) {
        retired = slate->next;
        if (slate->own)
            hvd__heap_forget(slate->own);
        destroy(slate);
    }
}

struct hvd__slate *hvd__slate_new(struct hvd__heap *heap, const int *world,
                                  int size, int rank, int number, int32_t id,
                                  size_t bounce)
{
    struct hvd__slate *slate = calloc(1, sizeof *slate);
    uint64_t place = 0;

    if (!slate)
        return NULL;
    sweep(heap);
    *slate = (struct hvd__slate){.heap = heap,
                                 .rank = rank,
                                 .size = size,
                                 .number = number,
                                 .id = id,
                                 .bounce_bytes = bounce};
    slate->parts = calloc((size_t)size, sizeof *slate->parts);
    slate->world = calloc((size_t)size, sizeof *slate->world);
    if (!slate->parts || !slate->world) {
        destroy(slate);
        return NULL;
    }
    memcpy(slate->world, world, (size_t)size * sizeof *world);
    slate->own = hvd__heap_alloc(part_bytes(slate));
    if (slate->own)
        place = hvd__heap_place(heap, slate->own, part_bytes(slate));
    hvd__heap_publish(heap, number, id, place);
    return slate;
}

int hvd__slate_ready(struct hvd__slate *slate)
{
    uint64_t place;

    while (!slate->failed && slate->nseen < slate->size) {
        int rank = slate->world[slate->nseen];

        if (!hvd__heap_look_up(slate->heap, rank, slate->number, slate->id,
                               &place))
            return 0;
        slate->parts[slate->nseen] =
            hvd__heap_at(slate->heap, rank, place, part_bytes(slate));
        if (slate->parts[slate->nseen])
            slate->nseen++;
        else
            slate->failed = true;
    }
    return slate->failed ? -1 : 1;
}

struct hvd__slate_place *hvd__slate_places(const struct hvd__slate *slate,
                                           int rank)
{
    return (void *)((unsigned char *)slate->parts[rank] + places_offset());
}

struct hvd__slate_pair *hvd__slate_pairs(const struct hvd__slate *slate,
                                         int rank)
{
    return (void *)((unsigned char *)slate->parts[rank] + pairs_offset(slate));
}

unsigned char *hvd__slate_buffers(const struct hvd__slate *slate, int rank)
{
    return (unsigned char *)slate->parts[rank] + buffers_offset(slate);
}

bool hvd__slate_may_begin(const struct hvd__slate *slate, uint32_t round)
{
    for (int rank = 0; rank < slate->size; rank++) {
        uint64_t finished = atomic_load_explicit(&slate->parts[rank]->finished,
                                                 memory_order_acquire);
        if ((uint32_t)finished + 1 != round)
            return false;
    }
    return true;
}

void hvd__slate_finish(struct hvd__slate *slate, uint32_t round)
{
    atomic_store_explicit(&slate->own->finished, round, memory_order_release);
}

int64_t hvd__slate_least(const struct hvd__slate *slate, uint32_t round,
                         size_t count)
{
    int64_t least = INT64_MAX;

    for (int rank = 0; rank < slate->size; rank++) {
        const unsigned char *part = (const unsigned char *)slate->parts[rank];
        int64_t there;

        if (rank == slate->rank)
            continue;
        there = hvd__round_get(
            (const hvd__round_count *)(const void *)(part + count), round);
        if (there < least)
            least = there;
    }
    return least;
}
