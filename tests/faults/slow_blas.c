/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_blas.c - loaded before OpenBLAS, makes the rank SLOW_RANK of mpirun, or
 * every process if that is not set, sleep for SLOW_MS (5) milliseconds in each
 * product of matrices: it computes longer than others, and leaves the processor
 * to them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void gemm(int, int, int, int, int, int, float, const float *, int,
                  const float *, int, float, float *, int);

void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta,
                 float *c, int ldc)
{
    static gemm *real;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    const char *slow = getenv("SLOW_RANK");
    const char *ms = getenv("SLOW_MS");

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "cblas_sgemm");
    if (!slow || (rank && strcmp(rank, slow) == 0))
        usleep(1000 * (ms ? (unsigned)atoi(ms) : 5));
    real(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
