/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - what the environment says of the launcher.
 */
#ifndef HVD_CORE_LAUNCH_H
#define HVD_CORE_LAUNCH_H

#include <stdbool.h>

/* Returns true if an MPI launcher or batch system started this process: without
 * one it is alone and needs no MPI. */
bool hvd__launched(void);

/* Returns this process's rank in MPI_COMM_WORLD, which Open MPI's launcher
 * gives before MPI does; -1: it does not. */
int hvd__launch_rank(void);

/* HVD_ERR_LAUNCH if the environment says that this process is one of
 * several, and MPI, in a library of that name, found it alone. */
int hvd__launch_check_alone(const char *library);

#endif
