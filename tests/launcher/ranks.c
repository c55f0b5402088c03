/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - what the jobs of slurm.bats run.
 *
 *     ranks                   each rank says who it is, and the sum of all
 *     ranks exit R STATUS     rank R leaves with the status, and the others
 *                             wait for it
 *     ranks kill R            the same, by SIGKILL
 */
#include <hvd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(void)
{
    fprintf(stderr, "%s\n", hvd_last_error());
    return 1;
}

static int sum(double *value)
{
    return hvd_allreduce(value, value, 1, HVD_FLOAT64, HVD_SUM);
}

int main(int argc, char **argv)
{
    double value;
    char host[64];

    if (hvd_init() < 0)
        return fail();
    value = hvd_rank() + 1;
    if (sum(&value) < 0)
        return fail();
    gethostname(host, sizeof host);
    printf("rank %d of %d, %d of %d on %s: %g\n", hvd_rank(), hvd_size(),
           hvd_local_rank(), hvd_local_size(), host, value);
    fflush(stdout);
    if (argc > 2) {
        if (hvd_rank() == atoi(argv[2]) && strcmp(argv[1], "kill") == 0)
            raise(SIGKILL);
        if (hvd_rank() == atoi(argv[2]))
            _exit(atoi(argv[3]));
        if (sum(&value) < 0)
            return fail();
    }
    return hvd_shutdown() < 0 ? fail() : 0;
}
