/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.c - which communicators libhvd can work on: those with the ranks of
 * MPI_COMM_WORLD in their order, whose collectives are collectives of libhvd's
 * world. Each rank finds that out by itself, and all find the same.
 *
 * What is known of a communicator is an attribute of it, which MPI deletes when
 * the communicator is freed. Its duplicates have attributes of their own.
 *
 * Two communicators with the same ranks are two orders of collectives: a
 * program may start nonblocking ones on them in one order on one rank and in
 * another on another rank, and so may threads. Their requests therefore have
 * names, which begin with the number of the communicator.
 */
#include <stdlib.h>

#include "mpi/accelerate.h"

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

static int forget(MPI_Comm comm, int deleted, void *value, void *extra)
{
    (void)comm, (void)deleted, (void)extra;
    atomic_fetch_add(&generation, 1);
    if (value != &untaken)
        free(value);
    return MPI_SUCCESS;
}

int hvd__accel_comm_init(void)
{
    return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
}

/* Returns NULL if there is no memory. */
static struct hvd__accel_comm *examine(MPI_Comm comm)
{
    struct hvd__accel_comm *state = &untaken;
    int inter = 0, result = MPI_UNEQUAL;

    if (PMPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && !inter)
        PMPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
    if (result == MPI_IDENT || result == MPI_CONGRUENT) {
        state = malloc(sizeof *state);
        if (!state)
            return NULL;
        *state = (struct hvd__accel_comm){.is_taken = true,
                                          .id = result == MPI_IDENT ? 0 : -1};
    }
    if (PMPI_Comm_set_attr(comm, key, state) == MPI_SUCCESS)
        return state;
    if (state != &untaken)
        free(state);
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

void hvd__accel_comm_number(struct hvd__accel_comm *state, MPI_Comm comm)
{
    int id = 0;

    /* Rank 0 of each such communicator is rank 0 of the world. */
    if (hvd__accel.rank == 0)
        id = atomic_fetch_add(&last_id, 1) + 1;
    if (PMPI_Bcast(&id, 1, MPI_INT, 0, comm) == MPI_SUCCESS)
        state->id = id;
}
