/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - finds the launcher of this process in the environment.
 */
#ifndef HVD_CORE_LAUNCH_H
#define HVD_CORE_LAUNCH_H

#include <stdbool.h>

/* Returns true if an MPI launcher or batch system started this process. Without
 * one the process is alone and needs no MPI. */
bool hvd__launched(void);

/* Returns this process's rank in MPI_COMM_WORLD, which Open MPI's launcher sets
 * before MPI starts, or -1 if it did not set it. */
int hvd__launch_rank(void);

/* Fails with HVD_ERR_LAUNCH if srun started this process as one of several in a
 * way in which MPI_Init would end it. */
int hvd__launch_check_pmix(void);

/* Fails with HVD_ERR_LAUNCH if the environment says that this process is one of
 * several, but MPI found it alone. library is the name of the MPI library. */
int hvd__launch_check_alone(const char *library);

#endif
