/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - does a collective by libhvd, and waits as MPI would.
 *
 * While a rank waits in libhvd, MPI must go on: another rank may be in an
 * MPI_Send that returns only when this rank has taken its message. So libhvd
 * waits for short times, and in between MPI_Iprobe moves MPI. Before that, the
 * quick way of hvd_run polls for some microseconds, in which most requests are
 * done.
 *
 * If ranks ask for different things, libhvd tells all of them, before a byte
 * has moved. Such a program is wrong, but MPI may let it pass: all ranks then
 * do this call by MPI. If libhvd's world has ended, MPI's error handler is
 * called.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpi/accelerate.h"

/* The time for which a rank waits in libhvd before it calls MPI_Iprobe. */
#define SLICE_NS INT64_C(20000)

_Thread_local struct hvd__accel_thread hvd__accel_thread
    __attribute__((tls_model("initial-exec")));

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Collectives that give each rank a place of its own, by its number. */
static const bool is_by_rank[HVD__ACCEL_KINDS] = {
    [HVD__ACCEL_ALLGATHER] = true,
    [HVD__ACCEL_ALLGATHERV] = true,
    [HVD__ACCEL_REDUCE_SCATTER] = true,
    [HVD__ACCEL_REDUCE_SCATTER_BLOCK] = true,
    [HVD__ACCEL_ALLTOALL] = true,
    [HVD__ACCEL_ALLTOALLV] = true};

/* Begins a call. The members that a plan sets are cleared, but not the layout
 * and the request, which are large. */
static bool begin(struct hvd__accel_call *call, enum hvd__accel_kind kind,
                  bool is_nonblocking, MPI_Comm comm)
{
    call->kind = kind;
    call->is_nonblocking = is_nonblocking;
    call->comm = comm;
    call->began_ns = hvd__accel.wants_summary ? now_ns() : 0;
    call->bytes = 0;
    call->room = NULL;
    call->result = NULL;
    call->tail = NULL;
    call->to.owns_type = false;
    if (!atomic_load_explicit(&hvd__accel.is_on, memory_order_acquire) ||
        comm == MPI_COMM_NULL)
        return false;
    call->state = hvd__accel_comm_of(comm);
    return call->state->is_taken &&
           (call->state->is_ordered || !is_by_rank[kind]);
}

bool hvd__accel_enter(struct hvd__accel_call *call, enum hvd__accel_kind kind,
                      MPI_Comm comm)
{
    return begin(call, kind, false, comm);
}

bool hvd__accel_enter_nonblocking(struct hvd__accel_call *call,
                                  enum hvd__accel_kind kind, MPI_Comm comm)
{
    return begin(call, kind, true, comm) && hvd__accel.may_start;
}

void hvd__accel_drop(struct hvd__accel_call *call)
{
    free(call->room);
    call->room = NULL;
    if (call->to.owns_type)
        PMPI_Type_free(&call->to.type);
}

void hvd__accel_taken(struct hvd__accel_call *call)
{
    if (call->began_ns > 0)
        hvd__accel_summary_add(call, now_ns() - call->began_ns, true);
}

int hvd__accel_left(struct hvd__accel_call *call, int code)
{
    if (call->began_ns > 0)
        hvd__accel_summary_add(call, now_ns() - call->began_ns, false);
    return code;
}

bool hvd__accel_is_over(int status)
{
    return status <= HVD_ERR_NOT_INITIALIZED;
}

int hvd__accel_code(int status)
{
    return status == HVD_ERR_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
}

int hvd__accel_fail(MPI_Comm comm, int status)
{
    const int code = hvd__accel_code(status);

    fprintf(stderr, "libhvd-mpi: rank %d: %s\n", hvd__accel.rank,
            hvd_last_error());
    PMPI_Comm_call_errhandler(comm, code);
    return code;
}

static int wait_for(hvd_handle handle)
{
    int flag;

    while (hvd_wait_for(handle, SLICE_NS) == 0) {
        hvd__accel_thread.inside--;
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag,
                    MPI_STATUS_IGNORE);
        hvd__accel_thread.inside++;
    }
    return hvd_wait(handle);
}

int hvd__accel_wait(struct hvd__accel_call *call, const hvd_request *request)
{
    hvd_request named;
    char name[64];
    hvd_handle handle = 0;
    int status;

    /* Threads may use several communicators of a process set at a time. */
    if (hvd__accel.is_threaded && call->state->set == 0 &&
        call->state->id > 0) {
        hvd__accel_name(call->state, name, sizeof name);
        named = *request;
        named.name = name;
        request = &named;
    }
    hvd__accel_thread.inside++;
    status = hvd_run(request, &handle);
    if (status == HVD_OK && handle != 0)
        status = wait_for(handle);
    hvd__accel_thread.inside--;
    return status;
}

void hvd__accel_name(struct hvd__accel_comm *state, char *name, size_t size)
{
    snprintf(name, size, "mpi%d.%lld", state->id,
             (long long)atomic_fetch_add(&state->nnamed, 1));
}

int hvd__accel_finish(struct hvd__accel_call *call)
{
    int code = MPI_SUCCESS;

    if (call->tail) {
        memcpy(call->tail, call->result, call->tail_bytes);
    } else if (call->result) {
        for (int i = 0; i < call->to.nblocks && code == MPI_SUCCESS; i++)
            if (i != call->skip)
                code = hvd__accel_layout_unpack(
                    &call->to, i, call->result + i * call->stride, call->comm);
    }
    hvd__accel_drop(call);
    return code;
}

bool hvd__accel_run(struct hvd__accel_call *call, enum hvd__accel_plan plan)
{
    int status;

    if (plan == HVD__ACCEL_LEFT) {
        hvd__accel_drop(call);
        return false;
    }
    if (plan == HVD__ACCEL_DONE) {
        hvd__accel_drop(call);
        hvd__accel_taken(call);
        return true;
    }
    status = hvd__accel_wait(call, &call->request);
    if (status == HVD_OK) {
        call->code = MPI_SUCCESS;
        if (call->room || call->result)
            call->code = hvd__accel_finish(call);
    } else {
        hvd__accel_drop(call);
        if (!hvd__accel_is_over(status))
            return false;
        call->code = hvd__accel_fail(call->comm, status);
    }
    hvd__accel_taken(call);
    return true;
}
