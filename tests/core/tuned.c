/* SPDX-License-Identifier: Apache-2.0 */
/* tuned STEPS - makes steps of forty tensors, and checks their sums. */
#include <stdio.h>
#include <stdlib.h>

#include "hvd.h"

int main(int argc, char **argv)
{
    enum { N = 40, MOST = 60000 };
    static float in[N][MOST], out[N][MOST];
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    hvd_handle handles[N];
    char name[16];

    if (hvd_init() < 0) {
        fprintf(stderr, "%s\n", hvd_last_error());
        return 9;
    }
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < N; i++) {
            int count = i % 4 ? 700 * i + 1 : MOST;

            in[i][count - 1] = (float)(hvd_rank() + i + step);
            snprintf(name, sizeof name, "t/%d", i);
            hvd_allreduce_async(name, in[i], out[i], count, HVD_FLOAT32,
                                HVD_SUM, &handles[i]);
        }
        for (int i = 0; i < N; i++) {
            int count = i % 4 ? 700 * i + 1 : MOST, n = hvd_size();

            if (hvd_wait(handles[i]) < 0 ||
                out[i][count - 1] !=
                    (float)(n * (i + step) + n * (n - 1) / 2)) {
                fprintf(stderr, "step %d, tensor %d: %s\n", step, i,
                        hvd_last_error());
                return 1;
            }
        }
    }
    return hvd_shutdown() < 0;
}
