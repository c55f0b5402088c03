/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leave.c - ends in the way that its argument names. process.bats compiles it.
 */
#include <hvd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int report(const char *what, int status)
{
    printf("rank %d: %s: %s\n", hvd_rank(), what,
           status < 0 ? hvd_last_error() : "ok");
    fflush(stdout);
    return status < 0;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    float x = 1;
    int last;

    if (hvd_init() < 0) {
        fprintf(stderr, "hvd_init: %s\n", hvd_last_error());
        return 9;
    }
    last = hvd_rank() == hvd_size() - 1;
    if (hvd_allreduce(&x, &x, 1, HVD_FLOAT32, HVD_SUM) < 0)
        return report("sum", -1);
    if (strcmp(how, "all-return") == 0)
        return 0; /* nobody shuts down */
    if (strcmp(how, "one-exits") == 0) {
        if (last)
            exit(4);
        return report("sum", hvd_allreduce(&x, &x, 1, HVD_FLOAT32, HVD_SUM));
    }
    if (strcmp(how, "one-is-killed") == 0) {
        if (last)
            abort();
        return report("sum", hvd_allreduce(&x, &x, 1, HVD_FLOAT32, HVD_SUM));
    }
    if (strcmp(how, "others-abort") == 0) {
        if (last)
            _Exit(3);
        if (hvd_allreduce(&x, &x, 1, HVD_FLOAT32, HVD_SUM) < 0)
            abort();
        return 0;
    }
    if (strcmp(how, "sleep") == 0) {
        report("sum", HVD_OK);
        sleep(100);
    }
    printf("%g of %d\n", (double)x, hvd_size());
    return hvd_shutdown() < 0;
}
