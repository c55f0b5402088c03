/* SPDX-License-Identifier: Apache-2.0 */
/* The one file of this room that knows what an MPI_Comm is. */
#include "hvd_mpi.h"

#include "base/status.h"
#include "core/world.h"

static int check(MPI_Comm comm)
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
    HVD_TRY(check(comm));
    return hvd__world_init(&comm);
}

int hvd_init_fint(int32_t comm)
{
    HVD_TRY(check_live());
    return hvd_init_mpi(MPI_Comm_f2c(comm));
}
