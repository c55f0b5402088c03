/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_world.h - the life of MPI itself in this process; for mpi.c.
 */
#ifndef HVD_TRANSPORT_MPI_WORLD_H
#define HVD_TRANSPORT_MPI_WORLD_H

#include <stdbool.h>

/* Make MPI live, initialising it if the program has not. *threads: whether a
 * thread of ours may call MPI while the program runs; if not, *note says in
 * words what that costs. */
int hvd__mpi_start(bool *threads, const char **note);

#endif
