/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - recognises launchers.
 *
 * A process that another MPI's launcher started as one of four finds itself
 * alone when it initialises this MPI, and four such processes would train the
 * same rank 0 over each other's files. Each launcher leaves variables in the
 * environment; the table says which of them holds the number of processes.
 */
#include "core/world/launch.h"

#include <stdlib.h>

#include "base/status.h"

/* count names the variable with the number of processes; NULL: there is none.
 */
static const struct {
    const char *launcher;
    const char *mark;
    const char *count;
} launchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MPICH or Intel MPI (Hydra)", "PMI_RANK", "PMI_SIZE"},
    {"MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"Slurm (srun)", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS"},
    {"PALS", "PALS_RANKID", NULL},
    {"a PMIx launcher", "PMIX_RANK", NULL},
};

enum { NLAUNCHERS = sizeof launchers / sizeof *launchers };

bool hvd__launched(void)
{
    for (int i = 0; i < NLAUNCHERS; i++)
        if (getenv(launchers[i].mark))
            return true;
    return false;
}

int hvd__launch_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    return rank && *rank >= '0' && *rank <= '9' ? atoi(rank) : -1;
}

int hvd__launch_check_alone(const char *library)
{
    for (int i = 0; i < NLAUNCHERS; i++) {
        const char *count =
            launchers[i].count ? getenv(launchers[i].count) : NULL;

        if (count && atoi(count) > 1)
            return hvd__fail(
                HVD_ERR_LAUNCH,
                "%s started this process as one of %s (%s), but %s, which "
                "libhvd is linked with, finds it alone: start it with the "
                "mpirun of %s",
                launchers[i].launcher, count, launchers[i].count, library,
                library);
    }
    return HVD_OK;
}
