/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/shm.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* GONE is published in place of an area that its rank no longer needs. It is an
 * offset within the header of the heap, where no area lies. */
#define GONE UINT64_C(1)

/* Shared segments that this rank no longer uses while other ranks may still
 * read its areas. One thread at a time changes the list, when sets are made or
 * end. */
static struct hvd__shm *retired;

static size_t places_offset(void)
{
    return sizeof(struct hvd__area);
}

static size_t pairs_offset(const struct hvd__shm *shm)
{
    return places_offset() + (size_t)shm->size * sizeof(struct hvd__shm_place);
}

static size_t buffers_offset(const struct hvd__shm *shm)
{
    size_t end =
        pairs_offset(shm) + (size_t)shm->size * sizeof(struct hvd__shm_pair);

    return (end + 63) / 64 * 64;
}

static size_t area_bytes(const struct hvd__shm *shm)
{
    return buffers_offset(shm) + shm->bounce_bytes;
}

/* Returns whether no rank uses its shared segment of this set any more. */
static bool is_unused(const struct hvd__shm *shm)
{
    uint64_t place;

    for (int i = 0; i < shm->size; i++)
        if (hvd__heap_look_up(shm->heap, shm->world[i], shm->number, shm->id,
                              &place) &&
            place != GONE)
            return false;
    return true;
}

static void destroy(struct hvd__shm *shm)
{
    free(shm->areas);
    free(shm->world);
    free(shm);
}

/* Frees the areas that all other ranks have done with as well. */
static void sweep(const struct hvd__heap *heap)
{
    struct hvd__shm **link = &retired, *shm;

    while ((shm = *link)) {
        if (shm->heap != heap || !is_unused(shm)) {
            link = &shm->next;
            continue;
        }
        *link = shm->next;
        if (shm->own)
            hvd__heap_free(shm->own);
        destroy(shm);
    }
}

void hvd__shm_retire(struct hvd__shm *shm)
{
    if (!shm)
        return;
    hvd__heap_publish(shm->heap, shm->number, shm->id, GONE);
    shm->next = retired;
    retired = shm;
}

void hvd__shm_forget(void)
{
    struct hvd__shm *shm;

    while ((shm = retired)) {
        retired = shm->next;
        if (shm->own)
            hvd__heap_forget(shm->own);
        destroy(shm);
    }
}

/* The most bytes of all buffers. Those that go over a network are
 * NETWORK_BLOCKS times larger: a few must keep it busy while ranks take turns.
 */
enum { BOUNCE_BYTES = 2 << 20 };
enum { NETWORK_BLOCKS = 8, NETWORK_BOUNCE_BYTES = 16 << 20 };

/* Each rank has blocks for every other, so blocks are smaller where there are
 * many ranks. */
size_t hvd__shm_bounce_bytes(size_t block, int nranks, bool over_network)
{
    size_t n = (size_t)nranks;
    size_t all = over_network ? NETWORK_BOUNCE_BYTES : BOUNCE_BYTES;

    if (over_network)
        block *= NETWORK_BLOCKS;
    if (block > all / n / HVD__BUFFERS)
        block = all / n / HVD__BUFFERS;
    block = (block < 64 ? 64 : block) / 64 * 64;
    return block * n * HVD__BUFFERS;
}

struct hvd__shm *hvd__shm_new(struct hvd__heap *heap, const int *world,
                              int size, int rank, int number, int32_t id,
                              size_t bounce)
{
    struct hvd__shm *shm = calloc(1, sizeof *shm);
    uint64_t place = 0;

    if (!shm)
        return NULL;
    sweep(heap);
    *shm = (struct hvd__shm){.heap = heap,
                             .rank = rank,
                             .size = size,
                             .number = number,
                             .id = id,
                             .bounce_bytes = bounce};
    shm->areas = calloc((size_t)size, sizeof *shm->areas);
    shm->world = calloc((size_t)size, sizeof *shm->world);
    if (!shm->areas || !shm->world) {
        destroy(shm);
        return NULL;
    }
    memcpy(shm->world, world, (size_t)size * sizeof *world);
    shm->own = hvd__heap_alloc(area_bytes(shm));
    if (shm->own)
        place = hvd__heap_place(heap, shm->own, area_bytes(shm));
    hvd__heap_publish(heap, number, id, place);
    return shm;
}

struct hvd__shm *hvd__shm_alone(size_t bounce)
{
    struct hvd__shm *shm = calloc(1, sizeof *shm);

    if (!shm)
        return NULL;
    *shm = (struct hvd__shm){.size = 1, .bounce_bytes = bounce, .nseen = 1};
    shm->areas = calloc(1, sizeof *shm->areas);
    shm->own = aligned_alloc(_Alignof(struct hvd__area),
                             offsetof(struct hvd__area, slots));
    if (!shm->areas || !shm->own) {
        hvd__shm_alone_free(shm);
        return NULL;
    }
    memset(shm->own, 0, offsetof(struct hvd__area, slots));
    shm->areas[0] = shm->own;
    return shm;
}

void hvd__shm_alone_free(struct hvd__shm *shm)
{
    if (!shm)
        return;
    free(shm->own);
    destroy(shm);
}

/* The fences pair: either a rank that has read memory of this one sees the
 * store, or it has read nothing that the program wrote after it. */
void hvd__shm_give_up(struct hvd__shm *shm)
{
    if (!shm->own)
        return;
    atomic_store_explicit(&shm->own->gave_up, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

bool hvd__shm_is_given_up(const struct hvd__shm *shm)
{
    uint64_t gave_up = 0;

    atomic_thread_fence(memory_order_acquire);
    for (int i = 0; i < shm->size; i++)
        gave_up |=
            atomic_load_explicit(&shm->areas[i]->gave_up, memory_order_relaxed);
    return gave_up != 0;
}

int hvd__shm_ready(struct hvd__shm *shm)
{
    uint64_t place;

    while (!shm->failed && shm->nseen < shm->size) {
        int rank = shm->world[shm->nseen];

        if (!hvd__heap_look_up(shm->heap, rank, shm->number, shm->id, &place))
            return 0;
        shm->areas[shm->nseen] =
            hvd__heap_at(shm->heap, rank, place, area_bytes(shm));
        if (shm->areas[shm->nseen])
            shm->nseen++;
        else
            shm->failed = true;
    }
    return shm->failed ? -1 : 1;
}

struct hvd__shm_place *hvd__shm_places(const struct hvd__shm *shm, int rank)
{
    return (void *)((unsigned char *)shm->areas[rank] + places_offset());
}

struct hvd__shm_pair *hvd__shm_pairs(const struct hvd__shm *shm, int rank)
{
    return (void *)((unsigned char *)shm->areas[rank] + pairs_offset(shm));
}

unsigned char *hvd__shm_buffers(const struct hvd__shm *shm, int rank)
{
    return (unsigned char *)shm->areas[rank] + buffers_offset(shm);
}

bool hvd__shm_may_begin(const struct hvd__shm *shm, uint32_t round)
{
    for (int rank = 0; rank < shm->size; rank++) {
        uint64_t finished;

        if (rank == shm->rank)
            continue;
        finished = atomic_load_explicit(&shm->areas[rank]->finished,
                                        memory_order_acquire);
        if ((int32_t)((uint32_t)finished + 1 - round) < 0)
            return false; /* others may have finished this round, too */
    }
    return true;
}

void hvd__shm_finish(struct hvd__shm *shm, uint32_t round)
{
    atomic_store_explicit(&shm->own->finished, round, memory_order_release);
}

int64_t hvd__shm_least(const struct hvd__shm *shm, uint32_t round, size_t count)
{
    int64_t least = INT64_MAX;

    for (int rank = 0; rank < shm->size; rank++) {
        const unsigned char *area = (const unsigned char *)shm->areas[rank];
        int64_t there;

        if (rank == shm->rank)
            continue;
        there = hvd__round_get(
            (const hvd__round_count *)(const void *)(area + count), round);
        if (there < least)
            least = there;
    }
    return least;
}
