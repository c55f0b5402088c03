/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launcher.h - what mpirun, or another launcher of MPI, told this process by
 * its environment: all that is known before there is a world, and without MPI.
 */
#ifndef MODELS_LAUNCHER_H
#define MODELS_LAUNCHER_H

#include <stdbool.h>

/* Returns whether a launcher of MPI started this process. */
bool launcher_present(void);

/* Returns the rank that it gave the process; 0 without one. */
int launcher_rank(void);

/* Returns how many processes it started, and how many of them on this host; 0
 * if that is not known. */
int launcher_size(void);
int launcher_local_size(void);

#endif
