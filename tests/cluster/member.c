/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.c - a task of a cluster, which cluster.bats compiles and starts.
 *
 *     member                       starts with hvd_init
 *     member INDEX ADDRESS...      describes the workers itself
 *     member sleep                 is there until it is interrupted
 *     member twice                 starts, ends, and starts again
 */
#include <hvd.h>
#include <hvd_cluster.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, hvd_last_error());
    return 1;
}

/* Describes workers, of which this process is one. */
static int start_described(char **arguments, int n)
{
    hvd_cluster *cluster;
    int status = hvd_cluster_new(&cluster);

    for (int i = 1; i < n && status >= 0; i++)
        status = hvd_cluster_add(cluster, HVD_ROLE_WORKER, arguments[i]);
    if (status >= 0)
        status =
            hvd_cluster_set_task(cluster, HVD_ROLE_WORKER, atoi(arguments[0]));
    if (status >= 0)
        status = hvd_init_cluster(cluster);
    hvd_cluster_free(cluster);
    return status;
}

static int add_ranks(void)
{
    float sum = (float)hvd_rank() + 1;
    int has_mpi;

    if (hvd_allreduce(&sum, &sum, 1, HVD_FLOAT32, HVD_SUM) < 0)
        return fail("hvd_allreduce");
    MPI_Initialized(&has_mpi);
    printf("rank %d of %d, sum %g, %s MPI\n", hvd_rank(), hvd_size(),
           (double)sum, has_mpi ? "with" : "without");
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int status = argc > 2 ? start_described(argv + 1, argc - 1) : hvd_init();

    if (status < 0)
        return fail("hvd_init");
    if (add_ranks() != 0)
        return 1;
    if (strcmp(how, "twice") == 0) {
        if (hvd_shutdown() < 0 || hvd_init() < 0)
            return fail("again");
        return add_ranks();
    }
    if (strcmp(how, "sleep") == 0 && hvd_rank() == 1)
        pause();
    if (strcmp(how, "sleep") == 0 && hvd_barrier() < 0)
        return fail("hvd_barrier");
    return hvd_shutdown() < 0 ? fail("hvd_shutdown") : 0;
}
