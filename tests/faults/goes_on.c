/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goes_on SECONDS [BEFORE] - sums for so long, whatever happens to other ranks.
 *
 * It does something else for BEFORE seconds before it calls hvd_init. Each step
 * sums a one, and the time; a rank that is lost is left out (hvd_recover). At
 * the end the lowest rank writes "ended with N ranks". A rank that the others
 * have given up writes "given up", and exits with 3.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "hvd.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int die(const char *what, int status)
{
    printf("%s: %s\n", what, hvd_last_error());
    fflush(stdout);
    _exit(status);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1, start;
    float one, passed = 0;

    if (argc > 2)
        usleep((useconds_t)(1e6 * atof(argv[2])));
    if (hvd_init() < 0)
        die("hvd_init", 1);
    start = now();
    while (passed < seconds) {
        int status;

        one = 1;
        passed = (float)(now() - start);
        status = hvd_allreduce(&one, &one, 1, HVD_FLOAT32, HVD_SUM);
        if (status >= 0)
            status = hvd_allreduce(&passed, &passed, 1, HVD_FLOAT32, HVD_MAX);
        if (status == HVD_ERR_LOST) {
            passed = 0;
            if (hvd_recover(NULL, 0) < 0)
                die("given up", 3);
        } else if (status < 0) {
            die("a sum failed", 1);
        } else if (one != (float)hvd_size()) {
            die("a sum is wrong", 1);
        }
        usleep(1000);
    }
    if (hvd_rank() == 0) {
        printf("ended with %d ranks\n", hvd_size());
        fflush(stdout);
    }
    /* A rank may be lost here, too, which harms nobody any more. */
    hvd_shutdown();
    return 0;
}
