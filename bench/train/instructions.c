/* SPDX-License-Identifier: Apache-2.0 */
#include "train/instructions.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const train_instructions[] = {"generic", "avx2", "avx512", NULL};

enum { SETS = 3 };

/* The variables that choose a set. In PyTorch, oneDNN multiplies and convolves,
 * and ATen does the rest. */
static const struct {
    const char *name, *values[SETS];
} variables[] = {
    {"HVD_KERNELS", {"generic", "avx2", "avx512"}},
    {"IPU_KERNELS", {"generic", "avx2", "avx512"}},
    {"OPENBLAS_CORETYPE", {"Prescott", "Haswell", "SkylakeX"}},
    {"ATEN_CPU_CAPABILITY", {"default", "avx2", "avx512"}},
    {"ONEDNN_MAX_CPU_ISA", {"SSE41", "AVX2", "AVX512_CORE"}},
};

int train_instruct(int set, char **argv)
{
    bool changes = false;

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = variables[i].values[set];
        const char *now = getenv(variables[i].name);

        if (now && strcmp(now, value) == 0)
            continue;
        changes = true;
        if (setenv(variables[i].name, value, 1) < 0) {
            perror("train-bench: setenv");
            return -1;
        }
    }
    if (!changes)
        return 0;
    execv("/proc/self/exe", argv);
    perror("train-bench: cannot start itself again");
    return -1;
}
