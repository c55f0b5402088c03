/* SPDX-License-Identifier: Apache-2.0 */
/* init_mpi.c - the only file of this room that uses MPI_Comm. */
#include "hvd_mpi.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/world/launch.h"
#include "core/world/world.h"

static int check_comm(MPI_Comm comm)
{
    int inter = 0;

    if (comm == MPI_COMM_NULL)
        return hvd__fail(HVD_ERR_ARGUMENT, "the communicator is null");
    if (MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the communicator is an intercommunicator: merge it "
                         "with MPI_Intercomm_merge first");
    return HVD_OK;
}

static int check_live(void)
{
    if (hvd__mpi_is_live())
        return HVD_OK;
    return hvd__fail(HVD_ERR_ARGUMENT, "MPI is not initialised: call "
                                       "MPI_Init_thread first, or hvd_init");
}

int hvd_init_mpi(MPI_Comm comm)
{
    HVD_TRY(check_live());
    HVD_TRY(check_comm(comm));
    return hvd__world_init(&(struct hvd__origin){.comm = &comm});
}

int hvd_init_fint(int32_t comm)
{
    HVD_TRY(check_live());
    return hvd_init_mpi(MPI_Comm_f2c(comm));
}

/* -------------------------------------------------------- some of the ranks */

static int compare_ranks(const void *a, const void *b)
{
    int one = *(const int *)a, other = *(const int *)b;

    return (one > other) - (one < other);
}

/* ranks: [n], ascending. */
static int check_ranks(const int *ranks, int n)
{
    int mine = -1, size = 0;
    bool listed = false;

    if (MPI_Comm_rank(MPI_COMM_WORLD, &mine) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS)
        return hvd__fail(HVD_ERR_MPI, "MPI does not tell who is who");
    for (int i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= size)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "there is no rank %d: mpirun started 0 to %d",
                             ranks[i], size - 1);
        if (i > 0 && ranks[i] == ranks[i - 1])
            return hvd__fail(HVD_ERR_ARGUMENT, "rank %d is there twice",
                             ranks[i]);
        listed = listed || ranks[i] == mine;
    }
    if (!listed)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "this process is rank %d of %d, which is not among "
                         "the %d ranks: those that are call hvd_init_ranks",
                         mine, size, n);
    return HVD_OK;
}

/* Blocks until all ranks of the group have called it. */
static int make_comm(const int *ranks, int n, MPI_Comm *comm)
{
    MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
    int code = MPI_Comm_group(MPI_COMM_WORLD, &world);

    if (code == MPI_SUCCESS)
        code = MPI_Group_incl(world, n, ranks, &group);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_create_group(MPI_COMM_WORLD, group, ranks[0], comm);
    if (group != MPI_GROUP_NULL)
        MPI_Group_free(&group);
    if (world != MPI_GROUP_NULL)
        MPI_Group_free(&world);
    if (code != MPI_SUCCESS)
        return hvd__fail(HVD_ERR_MPI,
                         "MPI makes no communicator of %d ranks: code %d", n,
                         code);
    return HVD_OK;
}

int hvd__group_make(const struct hvd__origin *origin, const void **comm)
{
    static MPI_Comm group; /* one hvd_init at a time */

    HVD_TRY(check_ranks(origin->ranks, origin->nranks));
    HVD_TRY(make_comm(origin->ranks, origin->nranks, &group));
    *comm = &group;
    return HVD_OK;
}

void hvd__group_free(const void *comm)
{
    MPI_Comm group = *(const MPI_Comm *)comm;

    MPI_Comm_free(&group);
}

int hvd_init_ranks(const int32_t *ranks, int32_t n)
{
    int *sorted;
    int status;

    if (n < 1 || !ranks)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         n < 1 ? "the list of ranks has %d of them, it needs 1 "
                                 "or more"
                               : "the list of %d ranks is NULL",
                         (int)n);
    if (hvd_is_initialized())
        return HVD_OK;
    /* A process that is alone needs no MPI, as in hvd_init. */
    if (n == 1 && ranks[0] == 0 && !hvd__launched() && !hvd__mpi_is_live())
        return hvd_init();
    sorted = malloc((size_t)n * sizeof *sorted);
    if (!sorted)
        return hvd__fail_memory((size_t)n * sizeof *sorted);
    for (int32_t i = 0; i < n; i++)
        sorted[i] = ranks[i];
    qsort(sorted, (size_t)n, sizeof *sorted, compare_ranks);
    status = hvd__world_init(
        &(struct hvd__origin){.ranks = sorted, .nranks = (int)n});
    free(sorted);
    return status;
}
