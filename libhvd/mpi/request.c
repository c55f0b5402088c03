/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - nonblocking collectives.
 *
 * The program gets a generalized request, a request of MPI's that every
 * function for requests knows (MPI_Wait, MPI_Testsome, MPI_Request_free, ...),
 * in C and in Fortran, alone or among others. Something has to complete it, and
 * has to move libhvd while the program is in any call of MPI's: another rank
 * may wait for this collective before it sends what this rank waits for. Open
 * MPI calls functions that were registered with opal_progress_register whenever
 * it waits; its own nonblocking collectives live from that. So does move_all.
 * Where there is no such function, nonblocking collectives go to MPI.
 *
 * move_all must not run inside libhvd, which calls MPI: not in a thread that
 * has called libhvd from here, and not in libhvd's own threads. These are made
 * by hvd__accel_pthread_create, which libhvd's copy in this library calls in
 * the place of pthread_create.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/accelerate.h"

/* A collective under way. */
struct pending {
    struct pending *next;
    struct hvd__accel_call call;
    MPI_Request request;
    hvd_handle handle;
    int counts_and_displs[]; /* copies of what call.to borrows */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending *pendings; /* owned list, guarded by lock */
/* The number of entries of pendings. Without any, the progress of MPI takes no
 * lock. */
static atomic_int npending;

/* ----------------------------------------------------- generalized requests */

static int query(void *state, MPI_Status *status)
{
    (void)state;
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    return *(int *)state;
}

static int release(void *state)
{
    free(state);
    return MPI_SUCCESS;
}

/* MPI allows no cancelling of collectives. */
static int cancel(void *state, int is_complete)
{
    (void)state;
    return is_complete ? MPI_SUCCESS : MPI_ERR_REQUEST;
}

/* ---------------------------------------------------------------- progress */

/* Ends a collective whose request of libhvd is done. */
static void complete(struct pending *pending)
{
    int status = hvd_wait(pending->handle);
    int *code = pending->call.state_of_request;

    if (status == HVD_OK) {
        *code = hvd__accel_finish(&pending->call);
    } else {
        hvd__accel_drop(&pending->call);
        *code = hvd__accel_code(status);
    }
    PMPI_Grequest_complete(pending->request);
    free(pending);
}

/* Moves libhvd, and completes what is done. Returns how many there were. The
 * lock is held while libhvd moves, so that a request is taken by one thread. */
static int move_pending(void)
{
    struct pending **at = &pendings;
    int done = 0;

    if (pthread_mutex_trylock(&lock) != 0)
        return 0;
    hvd__accel_thread.inside++;
    while (*at) {
        struct pending *pending = *at;

        if (hvd_poll(pending->handle) == 0) {
            at = &pending->next;
            continue;
        }
        *at = pending->next;
        atomic_fetch_sub(&npending, 1);
        complete(pending);
        done++;
    }
    hvd__accel_thread.inside--;
    pthread_mutex_unlock(&lock);
    return done;
}

static int move_all(void)
{
    if (atomic_load_explicit(&npending, memory_order_relaxed) == 0 ||
        hvd__accel_thread.inside > 0 || hvd__accel_thread.is_libhvd)
        return 0;
    return move_pending();
}

/* opal_progress_register, which returns 0, or an error; NULL: there is none. */
static int (*add_progress)(int (*move)(void));
/* Open MPI calls move_all, from the first nonblocking collective on. Until
 * then a program that tests for messages often should not pay for it. Guarded
 * by lock. */
static bool is_hooked;

bool hvd__accel_can_hook(void)
{
    *(void **)&add_progress = dlsym(RTLD_DEFAULT, "opal_progress_register");
    return add_progress;
}

/* Returns false if memory has run out. */
static bool hook(void)
{
    bool done;

    pthread_mutex_lock(&lock);
    if (!is_hooked)
        is_hooked = add_progress(move_all) == 0;
    done = is_hooked;
    pthread_mutex_unlock(&lock);
    return done;
}

void hvd__accel_drain(void)
{
    int flag;

    while (atomic_load(&npending) > 0)
        if (move_pending() == 0)
            PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag,
                        MPI_STATUS_IGNORE);
}

/* ------------------------------------------------------------------- start */

/* Keeps the type, which the program may free before the end. */
static bool keep_type(struct hvd__accel_call *call)
{
    MPI_Datatype copy;

    if (!call->result || call->tail || call->to.is_dense)
        return true;
    if (PMPI_Type_dup(call->to.type, &copy) != MPI_SUCCESS)
        return false;
    call->to.type = copy;
    call->to.owns_type = true;
    return true;
}

/* Copies the counts and displacements of the blocks that are unpacked at the
 * end. MPI forbids programs to change them before, but Open MPI reads them in
 * the call alone, and mpi4py frees them behind it. */
static void keep_blocks(struct pending *pending, size_t bytes)
{
    struct hvd__accel_layout *to = &pending->call.to;
    int *counts = pending->counts_and_displs, *displs = counts + to->nblocks;

    memcpy(counts, to->counts, bytes);
    memcpy(displs, to->displs, bytes);
    to->counts = counts;
    to->displs = displs;
}

/* Returns NULL if memory runs out, or MPI makes no request. */
static struct pending *pending_new(const struct hvd__accel_call *call)
{
    const bool has_counts = call->result && !call->tail && call->to.counts;
    const size_t bytes =
        has_counts ? (size_t)call->to.nblocks * sizeof(int) : 0;
    struct pending *pending = malloc(sizeof *pending + 2 * bytes);
    int *code = malloc(sizeof *code);

    if (pending && code) {
        *code = MPI_SUCCESS;
        pending->call = *call;
        if (has_counts)
            keep_blocks(pending, bytes);
        pending->call.request.shape = &pending->call.count;
        pending->call.state_of_request = code;
        /* The program may free its own before the end. */
        pending->call.comm = MPI_COMM_WORLD;
        if (PMPI_Grequest_start(query, release, cancel, code,
                                &pending->request) == MPI_SUCCESS)
            return pending;
    }
    free(code);
    free(pending);
    return NULL;
}

static int submit(struct pending *pending)
{
    char name[64];
    int status;

    hvd__accel_name(pending->call.state, name, sizeof name);
    pending->call.request.name = name;
    hvd__accel_thread.inside++;
    status = hvd_submit(&pending->call.request, &pending->handle);
    hvd__accel_thread.inside--;
    return status;
}

/* Enters it among those that move_all looks after. */
static void enter(struct pending *pending)
{
    hvd__accel_thread.inside++;
    pthread_mutex_lock(&lock);
    pending->next = pendings;
    pendings = pending;
    atomic_fetch_add(&npending, 1);
    pthread_mutex_unlock(&lock);
    hvd__accel_thread.inside--;
}

bool hvd__accel_start(struct hvd__accel_call *call, enum hvd__accel_plan plan,
                      MPI_Request *request)
{
    struct pending *pending;
    int status;

    if (plan == HVD__ACCEL_LEFT)
        return false;
    pending = hook() && keep_type(call) ? pending_new(call) : NULL;
    status = pending ? submit(pending) : HVD_ERR_MEMORY;
    if (status == HVD_OK) {
        *request = pending->request;
        call->code = MPI_SUCCESS;
        hvd__accel_taken(call);
        enter(pending);
        return true;
    }
    if (pending) {
        PMPI_Grequest_complete(pending->request);
        PMPI_Request_free(&pending->request);
        free(pending);
    }
    hvd__accel_drop(call);
    call->code = hvd__accel_fail(call->comm, status);
    return true;
}

/* ------------------------------------------------------- libhvd's threads */

struct beginning {
    void *(*run)(void *);
    void *argument;
};

static void *run_marked(void *argument)
{
    struct beginning beginning = *(struct beginning *)argument;

    free(argument);
    hvd__accel_thread.is_libhvd = true;
    return beginning.run(beginning.argument);
}

int hvd__accel_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                              void *(*run)(void *), void *argument)
{
    struct beginning *beginning = malloc(sizeof *beginning);
    int code = ENOMEM;

    if (!beginning)
        return code;
    *beginning = (struct beginning){run, argument};
    code = pthread_create(thread, attr, run_marked, beginning);
    if (code != 0)
        free(beginning);
    return code;
}
