/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/agree.h"

#include <mpi.h>

int agree_well(int well)
{
    int all;

    MPI_Allreduce(&well, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return all;
}

int agree_same(uint64_t value)
{
    uint64_t first = value;

    MPI_Bcast(&first, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return agree_well(first == value);
}

void agree_text(char *text, size_t size)
{
    int rank, nranks, mine, first;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    mine = *text ? rank : nranks;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first < nranks)
        MPI_Bcast(text, (int)size, MPI_CHAR, first, MPI_COMM_WORLD);
}
