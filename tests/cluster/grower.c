/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grower STEPS [HOW] - a task of an elastic cluster, which grow.bats compiles
 * and starts. It counts steps together with the others, takes in whoever waits
 * after each of them, and goes on when others are lost. HOW is
 *
 *     until N     it makes no step before there are N ranks
 *     deaf 0      it lets nobody in, but sees whether one waits
 *
 * A line for each world says "world G: rank R of N, J joined, step S", and one
 * at the end "end: rank R of N, step S"; "wrong" is written if a sum is.
 */
#include <hvd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t step = -1; /* -1: it is not known yet */

static void pass_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* All continue where the first of them is. */
static int agree_on_step(void)
{
    hvd_recovery recovery;
    int status = hvd_allreduce(&step, &step, 1, HVD_INT64, HVD_MAX);

    if (status < 0)
        return status;
    if (hvd_last_recovery(&recovery, sizeof recovery) < 0)
        return HVD_ERR_INTERNAL;
    printf("world %d: rank %d of %d, old %d of %d, %d joined, step %d\n",
           (int)recovery.generation, hvd_rank(), hvd_size(),
           (int)recovery.old_rank, (int)recovery.old_size,
           (int)recovery.njoined, (int)step);
    fflush(stdout);
    return HVD_OK;
}

/* Returns 1 if there is a new world. */
static int work(bool is_deaf)
{
    int64_t sum = hvd_rank() + 1, expected = 0;
    int status = hvd_allreduce(&sum, &sum, 1, HVD_INT64, HVD_SUM);

    for (int rank = 0; rank < hvd_size(); rank++)
        expected += rank + 1;
    if (status == HVD_OK && sum != expected)
        printf("wrong: the sum is %d\n", (int)sum);
    if (status < 0)
        return status;
    status = is_deaf ? hvd_joiners() : hvd_grow(NULL, 0);
    if (is_deaf)
        return status < 0 ? status : 0;
    if (status == 1 && (status = agree_on_step()) == HVD_OK)
        status = 1;
    return status;
}

/* Goes on after losses. Returns 1 if there is a new world. */
static int survive(int status)
{
    while (status == HVD_ERR_LOST || status == HVD_ERR_STALLED) {
        if (hvd_is_initialized())
            status = hvd_recover(NULL, 0);
        else
            return status;
        if (status == HVD_OK)
            status = agree_on_step();
        if (status == HVD_OK)
            return 1;
    }
    return status;
}

int main(int argc, char **argv)
{
    const int64_t steps = argc > 1 ? atoi(argv[1]) : 1;
    const char *how = argc > 3 ? argv[2] : "";
    const int number = argc > 3 ? atoi(argv[3]) : 0;
    hvd_recovery recovery;
    int status = hvd_init();

    if (status == HVD_OK)
        status = hvd_last_recovery(&recovery, sizeof recovery);
    if (status == HVD_OK && recovery.generation == 0)
        step = 0;
    if (status == HVD_OK)
        status = survive(agree_on_step());
    while (status >= 0 && step < steps) {
        status = survive(work(strcmp(how, "deaf") == 0));
        if (status == 0 && (strcmp(how, "until") != 0 || hvd_size() >= number))
            step++;
        pass_ms(2);
    }
    if (status >= 0)
        printf("end: rank %d of %d, step %d\n", hvd_rank(), hvd_size(),
               (int)step);
    if (status < 0)
        fprintf(stderr, "%d: %s\n", status, hvd_last_error());
    return status < 0 || hvd_shutdown() < 0;
}
