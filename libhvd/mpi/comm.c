/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.c - which communicators libhvd can work on, and the process sets that it
 * needs for them. Each rank finds out by itself whether libhvd can, and all
 * find the same.
 *
 * What is known of a communicator is an attribute of it, which MPI deletes when
 * the communicator is freed. Its duplicates have attributes of their own.
 *
 * Communicators with the ranks of MPI_COMM_WORLD in their order use libhvd's
 * world. Two of them are two orders of collectives: a program may start
 * nonblocking ones on them in one order on one rank and in another on another
 * rank, and so may threads. Their requests therefore have names, which begin
 * with the number of the communicator.
 *
 * Every other communicator gets a process set of its own, which its members
 * alone make (core/api/own_sets.h), with collectives of MPI's on it. That takes
 * time and memory, so it must have made some collectives first: programs make
 * many communicators that they use once or never. If it fails, because libhvd
 * has no place for more sets or another thread was faster, the communicator has
 * to make more of them before the next attempt.
 */
#include <stdlib.h>
#include <string.h>

#include "core/api/own_sets.h"
#include "mpi/accelerate.h"

/* The number of collectives before a process set is made, and how much larger
 * it becomes when that failed. */
enum { ENOUGH = 20, MORE = 4, MOST = 1 << 28 };

static int key = MPI_KEYVAL_INVALID;
/* Grows when a communicator is freed, whose handle MPI may use again: loaded
 * by threads that have remembered it. */
static atomic_uint generation = 1;
static struct hvd__accel_comm untaken = {.id = -1};
static atomic_int last_id;

/* Each thread keeps the states of the communicators that it used last, because
 * to ask MPI for the attribute of a communicator takes longer. */
enum { REMEMBERED = 8 };
struct memory {
    MPI_Comm comm;
    struct hvd__accel_comm *state;
    unsigned generation; /* 0: nothing */
};
static _Thread_local struct memory memories[REMEMBERED]
    __attribute__((tls_model("initial-exec")));

static void state_free(struct hvd__accel_comm *state)
{
    if (!state || state == &untaken)
        return;
    free(state->ranks);
    free(state);
}

static int forget(MPI_Comm comm, int deleted, void *value, void *extra)
{
    struct hvd__accel_comm *state = value;

    (void)comm, (void)deleted, (void)extra;
    atomic_fetch_add(&generation, 1);
    if (state->set > 0) {
        hvd__accel_thread.inside++;
        hvd__own_set_leave(state->set);
        hvd__accel_thread.inside--;
    }
    state_free(state);
    return MPI_SUCCESS;
}

int hvd__accel_comm_init(void)
{
    return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
}

/* ------------------------------------------------------------- who is in it */

/* Writes the members' ranks in MPI_COMM_WORLD, or MPI_UNDEFINED. Returns MPI's
 * code. */
static int translate(MPI_Comm comm, int size, int *ranks)
{
    MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
    int *numbers = malloc((size_t)size * sizeof *numbers);
    int code = numbers ? PMPI_Comm_group(comm, &group) : MPI_ERR_NO_MEM;

    for (int i = 0; numbers && i < size; i++)
        numbers[i] = i;
    if (code == MPI_SUCCESS)
        code = PMPI_Comm_group(MPI_COMM_WORLD, &world);
    if (code == MPI_SUCCESS)
        code = PMPI_Group_translate_ranks(group, size, numbers, world, ranks);
    if (group != MPI_GROUP_NULL)
        PMPI_Group_free(&group);
    if (world != MPI_GROUP_NULL)
        PMPI_Group_free(&world);
    free(numbers);
    return code;
}

/* Looks at the members, whose ranks are in state->ranks. */
static void judge(struct hvd__accel_comm *state)
{
    const int *ranks = state->ranks;
    bool is_world = state->size == hvd__accel.size;

    state->is_taken = state->is_ordered = state->is_near = true;
    for (int i = 0; i < state->size && state->is_taken; i++) {
        /* MPI may have processes that libhvd does not know. */
        state->is_taken = ranks[i] >= 0 && ranks[i] < hvd__accel.size;
        if (!state->is_taken)
            return;
        state->is_ordered &= i == 0 || ranks[i] > ranks[i - 1];
        state->is_near &= hvd__own_host(ranks[i]) == hvd__own_host(ranks[0]);
        is_world &= ranks[i] == i;
    }
    if (is_world) {
        free(state->ranks);
        state->ranks = NULL;
        state->set = 0;
    }
}

/* Returns the state of an intracommunicator of two ranks or more; NULL: memory
 * has run out. */
static struct hvd__accel_comm *state_new(MPI_Comm comm, int size)
{
    struct hvd__accel_comm *state = calloc(1, sizeof *state);

    if (!state)
        return NULL;
    *state = (struct hvd__accel_comm){
        .size = size,
        .set = -1,
        .id = comm == MPI_COMM_WORLD ? 0 : -1,
        .enough = hvd__accel.takes_all ? 1 : ENOUGH,
        .ranks = malloc((size_t)size * sizeof *state->ranks)};
    if (!state->ranks || translate(comm, size, state->ranks) != MPI_SUCCESS) {
        state_free(state);
        return NULL;
    }
    PMPI_Comm_rank(comm, &state->rank);
    judge(state);
    if (state->is_taken)
        return state;
    state_free(state);
    return &untaken;
}

/* Returns NULL if there is no memory. */
static struct hvd__accel_comm *examine(MPI_Comm comm)
{
    struct hvd__accel_comm *state = &untaken;
    int inter = 0, size = 0;

    if (PMPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && !inter &&
        PMPI_Comm_size(comm, &size) == MPI_SUCCESS && size > 1)
        state = state_new(comm, size);
    if (state && PMPI_Comm_set_attr(comm, key, state) == MPI_SUCCESS)
        return state;
    state_free(state);
    return NULL;
}

struct hvd__accel_comm *hvd__accel_comm_of(MPI_Comm comm)
{
    struct memory *memory =
        &memories[((uintptr_t)comm >> 6 ^ (uintptr_t)comm >> 9) % REMEMBERED];
    unsigned now = atomic_load(&generation);
    void *value = NULL;
    int found = 0;

    if (memory->comm == comm && memory->generation == now)
        return memory->state;
    PMPI_Comm_get_attr(comm, key, &value, &found);
    if (!found)
        value = examine(comm);
    if (!value) {
        /* The other ranks expect this one in libhvd. */
        PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
        return &untaken;
    }
    *memory = (struct memory){comm, value, now};
    return value;
}

int hvd__accel_comm_world(const struct hvd__accel_comm *state, int rank)
{
    return state->ranks ? state->ranks[rank] : rank;
}

/* ------------------------------------------------------ what requests need */

/* Gives a communicator that uses the world its number. Collective over it. */
static bool make_number(struct hvd__accel_comm *state, MPI_Comm comm)
{
    int id = 0;

    /* Rank 0 of each such communicator is rank 0 of the world. */
    if (state->rank == 0)
        id = atomic_fetch_add(&last_id, 1) + 1;
    if (PMPI_Bcast(&id, 1, MPI_INT, 0, comm) != MPI_SUCCESS)
        return false;
    state->id = id;
    return true;
}

static int compare(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* Makes this rank's part of a process set. Returns its id, or a status. */
static int32_t make_part(const struct hvd__accel_comm *state,
                         const struct hvd__own_offer *all)
{
    const size_t bytes = (size_t)state->size * sizeof *state->ranks;
    int32_t *ascending = malloc(bytes), id = HVD_ERR_MEMORY;

    if (!ascending)
        return id;
    memcpy(ascending, state->ranks, bytes);
    qsort(ascending, (size_t)state->size, sizeof *ascending, compare);
    id = hvd__own_set_make(all, ascending, state->size);
    free(ascending);
    return id;
}

/* Makes the process set of a communicator. Collective over it. Returns the same
 * on all of its ranks, as far as MPI does. */
static bool make_set(struct hvd__accel_comm *state, MPI_Comm comm)
{
    struct hvd__own_offer mine, all;
    int32_t id, least = -1;

    hvd__accel_thread.inside++;
    mine = hvd__own_offer();
    hvd__accel_thread.inside--;
    if (PMPI_Allreduce(&mine.taken, &all.taken, 1, MPI_UINT64_T, MPI_BOR,
                       comm) != MPI_SUCCESS ||
        PMPI_Allreduce(&mine.newest, &all.newest, 1, MPI_UINT64_T, MPI_MAX,
                       comm) != MPI_SUCCESS)
        return false;
    hvd__accel_thread.inside++;
    id = make_part(state, &all);
    hvd__accel_thread.inside--;
    PMPI_Allreduce(&id, &least, 1, MPI_INT32_T, MPI_MIN, comm);
    if (least > 0)
        hvd__own_set_begin(id);
    else if (id > 0)
        hvd__own_set_drop(id);
    if (least > 0)
        state->set = state->id = id;
    return least > 0;
}

bool hvd__accel_comm_ready(struct hvd__accel_comm *state, MPI_Comm comm,
                           bool may_make)
{
    if (state->id >= 0)
        return true;
    /* All ranks make a blocking call before or after a nonblocking one. */
    if (!may_make)
        return false;
    if (state->set == 0)
        return make_number(state, comm);
    if (++state->ncounted < state->enough)
        return false;
    if (make_set(state, comm))
        return true;
    state->ncounted = 0;
    if (state->enough < MOST)
        state->enough *= MORE;
    return false;
}
