/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.c - counts calls, bytes and time of the collectives, where the user
 * wants to know them (HVD_MPI_SUMMARY).
 */
#include <stdio.h>

#include "mpi/accelerate.h"

static const char *const collective_names[HVD__ACCEL_KINDS] = {
    [HVD__ACCEL_ALLREDUCE] = "Allreduce",
    [HVD__ACCEL_REDUCE] = "Reduce",
    [HVD__ACCEL_BCAST] = "Bcast",
    [HVD__ACCEL_ALLGATHER] = "Allgather",
    [HVD__ACCEL_ALLGATHERV] = "Allgatherv",
    [HVD__ACCEL_REDUCE_SCATTER] = "Reduce_scatter",
    [HVD__ACCEL_REDUCE_SCATTER_BLOCK] = "Reduce_scatter_block",
    [HVD__ACCEL_ALLTOALL] = "Alltoall",
    [HVD__ACCEL_ALLTOALLV] = "Alltoallv",
    [HVD__ACCEL_BARRIER] = "Barrier"};

enum { BY_MPI, BY_LIBHVD, DOERS };
enum { CALLS, BYTES, NS, COUNTERS };

static atomic_llong counters[HVD__ACCEL_KINDS][DOERS][COUNTERS];

void hvd__accel_summary_add(const struct hvd__accel_call *call, int64_t ns,
                            bool taken)
{
    atomic_llong *line = counters[call->kind][taken ? BY_LIBHVD : BY_MPI];

    atomic_fetch_add_explicit(&line[CALLS], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&line[BYTES], call->bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&line[NS], ns, memory_order_relaxed);
}

static void print_line(const char *name, const long long *line)
{
    fprintf(stderr, "  %-20s", name);
    for (int doer = BY_LIBHVD; doer >= BY_MPI; doer--)
        fprintf(stderr, " %11.0f %15.0f %10.3f",
                (double)line[doer * COUNTERS + CALLS] / hvd__accel.size,
                (double)line[doer * COUNTERS + BYTES] / hvd__accel.size,
                (double)line[doer * COUNTERS + NS] / 1e9 / hvd__accel.size);
    fputc('\n', stderr);
}

void hvd__accel_summary_print(void)
{
    enum { LINE = DOERS * COUNTERS };
    static long long own[HVD__ACCEL_KINDS * LINE],
        sums[HVD__ACCEL_KINDS * LINE];
    long long all[LINE] = {0};

    for (int i = 0; i < HVD__ACCEL_KINDS * LINE; i++)
        own[i] = atomic_load(&(&counters[0][0][0])[i]);
    if (PMPI_Reduce(own, sums, HVD__ACCEL_KINDS * LINE, MPI_LONG_LONG, MPI_SUM,
                    0, MPI_COMM_WORLD) != MPI_SUCCESS ||
        hvd__accel.rank != 0)
        return;
    fprintf(stderr,
            "libhvd-mpi: collectives, the mean of %d ranks\n"
            "  %-20s %38s %38s\n  %-20s %11s %15s %10s %11s %15s %10s\n",
            hvd__accel.size, "", "by libhvd", "by MPI", "collective", "calls",
            "bytes", "seconds", "calls", "bytes", "seconds");
    for (int i = 0; i < HVD__ACCEL_KINDS; i++) {
        const long long *line = &sums[i * LINE];

        for (int j = 0; j < LINE; j++)
            all[j] += line[j];
        if (line[BY_MPI * COUNTERS + CALLS] > 0 ||
            line[BY_LIBHVD * COUNTERS + CALLS] > 0)
            print_line(collective_names[i], line);
    }
    print_line("all", all);
}
