/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - recognises launchers.
 *
 * A process that another MPI's launcher started as one of four finds itself
 * alone when it initialises this MPI, and four such processes would train the
 * same rank 0 over each other's files. Each launcher leaves variables in the
 * environment; the table says which of them holds the number of processes.
 *
 * Launchers start each other: in a job of Slurm, mpirun has its daemons started
 * by srun, whose variables the ranks inherit. So the first row that is found
 * counts, and Slurm's stands behind those of launchers that it may have
 * started. The shell of "srun --pty bash" is a task, too, but a single one,
 * whose programs nobody has launched.
 */
#include "core/world/launch.h"

#include <stdlib.h>

#include "base/status.h"

enum { SLURM = 3 }; /* its row */

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
    [SLURM] = {"Slurm (srun)", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS"},
    {"PALS", "PALS_RANKID", NULL},
    {"a PMIx launcher", "PMIX_RANK", NULL},
};

enum { NLAUNCHERS = sizeof launchers / sizeof *launchers };

/* Returns the row of the launcher that started this process; NLAUNCHERS: none
 * did. */
static int find_launcher(void)
{
    int i = 0;

    while (i < NLAUNCHERS && !getenv(launchers[i].mark))
        i++;
    return i;
}

static int count_of(int i)
{
    const char *count = launchers[i].count ? getenv(launchers[i].count) : NULL;

    return count ? atoi(count) : 0;
}

/* PMIx rows are behind Slurm's: srun sets both if it offers PMIx. */
static bool has_pmix(void)
{
    return getenv("PMIX_RANK") != NULL;
}

bool hvd__launched(void)
{
    int i = find_launcher();

    return i < NLAUNCHERS && (i != SLURM || count_of(i) > 1 || has_pmix());
}

int hvd__launch_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    return rank && *rank >= '0' && *rank <= '9' ? atoi(rank) : -1;
}

int hvd__launch_check_pmix(void)
{
    if (find_launcher() != SLURM || count_of(SLURM) < 2 || has_pmix())
        return HVD_OK;
    return hvd__fail(HVD_ERR_LAUNCH,
                     "srun started this process as one of %d without PMIx, by "
                     "which MPI finds the others: start it with srun "
                     "--mpi=pmix, or with mpirun",
                     count_of(SLURM));
}

int hvd__launch_check_alone(const char *library)
{
    int i = find_launcher();

    if (i == NLAUNCHERS || count_of(i) < 2)
        return HVD_OK;
    return hvd__fail(HVD_ERR_LAUNCH,
                     "%s started this process as one of %d (%s), but %s, which "
                     "libhvd is linked with, finds it alone: start it with the "
                     "mpirun of %s",
                     launchers[i].launcher, count_of(i), launchers[i].count,
                     library, library);
}
