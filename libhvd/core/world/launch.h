/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - what a launcher left in the environment.
 */
#ifndef HVD_CORE_LAUNCH_H
#define HVD_CORE_LAUNCH_H

#include <stdbool.h>

/* Whether some MPI launcher or batch system started this process: without
 * one it is alone, and MPI is not needed. */
bool hvd__launched(void);

/* This process's rank in MPI_COMM_WORLD, as Open MPI's launcher tells it before
 * MPI does; -1: it does not. */
int hvd__launch_rank(void);

/* HVD_ERR_LAUNCH if the environment says that this process is one of
 * several, and MPI, in a library of that name, found it alone. */
int hvd__launch_check_alone(const char *library);

#endif
