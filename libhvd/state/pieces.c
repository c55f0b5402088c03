/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.c - the pieces of the state, and the memory of their copies.
 *
 * A copy is made when it is needed first, and stays until its piece is
 * unregistered: a commit then finds memory that is there, and takes no page
 * faults. Ranks compare what they have registered by one hash of all names,
 * sizes and flags, and only if it differs by the names themselves.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fingerprint.h"
#include "base/status.h"
#include "core/request/names.h"
#include "state/state.h"

/* MOST_NAME is that of a strategy's variables with what a strategy adds. */
enum { MOST_NAME = HVD_MAX_NAME - 32, ITEM_SIZE = 320, HUGE_BYTES = 2 << 20 };

struct hvd__state hvd__state;

/* ------------------------------------------------------------ registering */

static struct hvd__piece *find(const char *name)
{
    struct hvd__state *s = &hvd__state;

    for (int32_t i = 0; name && i < s->npieces; i++)
        if (strcmp(s->pieces[i].name, name) == 0)
            return &s->pieces[i];
    return NULL;
}

static int check(const char *name, const void *memory, size_t bytes,
                 uint32_t flags)
{
    if (!name || !name[0])
        return hvd__fail(HVD_ERR_ARGUMENT, "piece %d of the state has no name",
                         (int)hvd__state.npieces);
    if (strlen(name) > MOST_NAME)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the name of piece %d of the state, '%.32s...', is "
                         "longer than %d bytes",
                         (int)hvd__state.npieces, name, MOST_NAME);
    HVD_TRY(hvd__name_check(name));
    if (!memory && bytes > 0)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the memory of piece '%s' of the state is NULL", name);
    if (flags & ~(uint32_t)HVD_STATE_PER_RANK)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "flags 0x%x of piece '%s' are none that version %s "
                         "knows",
                         (unsigned)flags, name, HVD_VERSION_STRING);
    if (find(name))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "piece '%s' of the state was registered before: call "
                         "hvd_state_unregister first",
                         name);
    return HVD_OK;
}

static int reserve(struct hvd__state *s)
{
    const int32_t capacity = s->capacity ? 2 * s->capacity : 16;
    struct hvd__piece *grown;

    if (s->npieces < s->capacity)
        return HVD_OK;
    grown = realloc(s->pieces, (size_t)capacity * sizeof *grown);
    if (!grown)
        return hvd__fail_memory((size_t)capacity * sizeof *grown);
    s->pieces = grown;
    s->capacity = capacity;
    return HVD_OK;
}

int hvd_state_register(const char *name, void *memory, size_t bytes,
                       uint32_t flags)
{
    struct hvd__state *s = &hvd__state;
    struct hvd__piece piece = {
        .memory = memory, .bytes = bytes, .flags = flags};

    HVD_TRY(check(name, memory, bytes, flags));
    hvd__commit_settle();
    HVD_TRY(reserve(s));
    piece.name = strdup(name);
    if (!piece.name)
        return hvd__fail_memory(strlen(name) + 1);
    s->pieces[s->npieces++] = piece;
    return HVD_OK;
}

/* Copies that are large have pages of their own. */
static void free_copy(void *copy, size_t bytes)
{
    if (copy && bytes >= HUGE_BYTES)
        munmap(copy, bytes);
    else
        free(copy);
}

int hvd_state_unregister(const char *name)
{
    struct hvd__state *s = &hvd__state;
    struct hvd__piece *piece = find(name), *end = s->pieces + s->npieces;

    if (!piece)
        return hvd__fail(HVD_ERR_ARGUMENT, "the state has no piece '%s'",
                         name ? name : "NULL");
    hvd__commit_settle();
    for (int slot = 0; slot < 2; slot++)
        free_copy(piece->copies[slot], piece->bytes);
    free(piece->name);
    memmove(piece, piece + 1, (size_t)(end - piece - 1) * sizeof *piece);
    s->npieces--;
    if (s->npieces > 0)
        return HVD_OK;
    /* Commits of nothing are no commits. */
    hvd__slot_clear(0);
    hvd__slot_clear(1);
    s->last = 0;
    return HVD_OK;
}

/* ---------------------------------------------------------------- copies */

/* Returns memory, or NULL. Pages of 2 MB make the first commit cheaper. */
static void *new_copy(size_t bytes)
{
    void *copy;

    if (bytes < HUGE_BYTES)
        return malloc(bytes ? bytes : 1);
    copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return NULL;
    madvise(copy, bytes, MADV_HUGEPAGE);
    return copy;
}

int hvd__piece_allocate(struct hvd__piece *piece, int slot)
{
    if (!piece->copies[slot])
        piece->copies[slot] = new_copy(piece->bytes);
    return piece->copies[slot]
               ? HVD_OK
               : hvd__fail(HVD_ERR_MEMORY,
                           "no memory for a copy of piece '%s' of the state, "
                           "of %zu bytes",
                           piece->name, piece->bytes);
}

int hvd__pieces_allocate(int slot)
{
    for (int32_t i = 0; i < hvd__state.npieces; i++)
        HVD_TRY(hvd__piece_allocate(&hvd__state.pieces[i], slot));
    return HVD_OK;
}

/* -------------------------------------------------------------- comparing */

uint64_t hvd__pieces_hash(int slot)
{
    const struct hvd__state *s = &hvd__state;
    uint64_t h = 0;

    for (int32_t i = 0; i < s->npieces; i++)
        if (!(s->pieces[i].flags & HVD_STATE_PER_RANK))
            h = hvd__fingerprint(h, &s->pieces[i].hashes[slot],
                                 sizeof s->pieces[i].hashes[slot]);
    return h;
}

static void write_item(int32_t number, char text[ITEM_SIZE])
{
    const struct hvd__piece *p = &hvd__state.pieces[number];

    memset(text, 0, ITEM_SIZE);
    if (number >= hvd__state.npieces)
        snprintf(text, ITEM_SIZE, "nothing");
    else
        snprintf(text, ITEM_SIZE, "'%s' of %zu bytes%s", p->name, p->bytes,
                 p->flags & HVD_STATE_PER_RANK ? ", each rank its own" : "");
}

uint64_t hvd__pieces_list_hash(void)
{
    const struct hvd__state *s = &hvd__state;
    uint64_t h = (uint64_t)s->npieces;
    char text[ITEM_SIZE];

    for (int32_t i = 0; i < s->npieces; i++) {
        write_item(i, text);
        h = hvd__fingerprint(h, text, sizeof text);
    }
    return h;
}

/* Collective. Finds the first item that differs from rank 0's here; nitems if
 * there is none. */
static int first_difference(int32_t nitems, int64_t *first)
{
    char mine[ITEM_SIZE], theirs[ITEM_SIZE];

    *first = nitems;
    for (int32_t i = 0; i < nitems; i++) {
        write_item(i, mine);
        memcpy(theirs, mine, sizeof theirs);
        HVD_TRY(hvd_broadcast(theirs, sizeof theirs, HVD_UINT8, 0));
        if (*first == nitems && memcmp(mine, theirs, sizeof mine) != 0)
            *first = i;
    }
    return HVD_OK;
}

/* Names the lowest rank that differs from rank 0. */
static int name_difference(int *odd)
{
    char first[ITEM_SIZE], other[ITEM_SIZE];
    int64_t place, nplaces;
    int32_t nitems = hvd__state.npieces;
    int64_t item;

    HVD_TRY(hvd_allreduce(&nitems, &nitems, 1, HVD_INT32, HVD_MAX));
    HVD_TRY(first_difference(nitems, &item));
    nplaces = nitems + 1;
    place = (item < nitems ? hvd_rank() : hvd_size()) * nplaces + item;
    HVD_TRY(hvd_allreduce(&place, &place, 1, HVD_INT64, HVD_MIN));
    item = place % nplaces;
    *odd = (int)(place / nplaces) % hvd_size();
    write_item((int32_t)item, first);
    memcpy(other, first, sizeof other);
    HVD_TRY(hvd_broadcast(first, sizeof first, HVD_UINT8, 0));
    HVD_TRY(hvd_broadcast(other, sizeof other, HVD_UINT8, *odd));
    return hvd__fail(HVD_ERR_MISMATCH,
                     "the ranks have registered different pieces of the state: "
                     "number %d is %s on rank 0, and %s on rank %d",
                     (int)item, first, other, *odd);
}

int hvd__pieces_compare(int *odd)
{
    const int64_t hash = (int64_t)hvd__pieces_list_hash();
    /* The complement has the opposite order: its least is the largest of all.
     */
    int64_t least[2] = {hash, ~hash};

    HVD_TRY(hvd_allreduce(least, least, 2, HVD_INT64, HVD_MIN));
    return least[0] == ~least[1] ? HVD_OK : name_difference(odd);
}
