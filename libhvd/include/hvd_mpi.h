/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_mpi.h - for programs that call MPI themselves: libhvd on a communicator
 * of theirs instead of MPI_COMM_WORLD.
 */
#ifndef HVD_MPI_H
#define HVD_MPI_H

/* MPI's C++ bindings, removed from the standard in 2012, are left out: they
 * would make every C++ program that includes this header link with them. A
 * program that wants them includes mpi.h first. */
#if defined(__cplusplus) && !defined(OMPI_SKIP_MPICXX)
#define OMPI_SKIP_MPICXX 1
#endif
#if defined(__cplusplus) && !defined(MPICH_SKIP_MPICXX)
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include "hvd.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/*
 * Does the same as hvd_init, on the ranks of comm. Every process of comm must
 * call it. comm is copied (the caller may free it at once). Returns
 * HVD_ERR_ARGUMENT if MPI is not initialised, or for MPI_COMM_NULL.
 */
int hvd_init_mpi(MPI_Comm comm);

/* Does the same for a Fortran handle (MPI_Comm_c2f, mpi4py's comm.py2f()), for
 * languages without mpi.h. */
int hvd_init_fint(int32_t comm);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
