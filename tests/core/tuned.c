/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tuned STEPS [FILE] - makes steps of forty tensors, and checks their sums. If
 * a file is given, the steps are counted from the one after which it exists:
 * autotuning writes it when it is over, which takes more steps the quicker they
 * are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hvd.h"

/* Returns 0, or the exit status after a wrong sum. */
static int make_step(int step)
{
    enum { N = 40, MOST = 60000 };
    static float in[N][MOST], out[N][MOST];
    hvd_handle handles[N];
    char name[16];

    for (int i = 0; i < N; i++) {
        int count = i % 4 ? 700 * i + 1 : MOST;

        in[i][count - 1] = (float)(hvd_rank() + i + step);
        snprintf(name, sizeof name, "t/%d", i);
        hvd_allreduce_async(name, in[i], out[i], count, HVD_FLOAT32, HVD_SUM,
                            &handles[i]);
    }
    for (int i = 0; i < N; i++) {
        int count = i % 4 ? 700 * i + 1 : MOST, n = hvd_size();

        if (hvd_wait(handles[i]) < 0 ||
            out[i][count - 1] != (float)(n * (i + step) + n * (n - 1) / 2)) {
            fprintf(stderr, "step %d, tensor %d: %s\n", step, i,
                    hvd_last_error());
            return 1;
        }
    }
    return 0;
}

/* Returns on all ranks whether rank 0 sees the file; a negative status after an
 * error. Collective. */
static int exists(const char *file)
{
    int32_t there = hvd_rank() == 0 && access(file, F_OK) == 0;
    int status = hvd_broadcast(&there, 1, HVD_INT32, 0);

    return status < 0 ? status : there;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 10, step = 0, status = 0;

    if (hvd_init() < 0) {
        fprintf(stderr, "%s\n", hvd_last_error());
        return 9;
    }
    if (argc > 2)
        while (!status && exists(argv[2]) == 0)
            status = make_step(step++);
    for (int i = 0; i < steps && !status; i++)
        status = make_step(step++);
    return status ? status : hvd_shutdown() < 0;
}
