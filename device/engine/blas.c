/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blas.c - what OpenBLAS may use, in the whole process: how many threads, and
 * which instructions.
 *
 * OpenBLAS has kernels for each processor that it knows, and chooses by the
 * number of the model. A model that is newer than the library gets the kernels
 * of 2004 ("Prescott", SSE3), which take four times as long as the processor
 * needs. So if it has chosen kernels from before AVX on a processor with AVX2,
 * it is told to choose again, by its own variable OPENBLAS_CORETYPE, which is
 * taken away afterwards. Whoever has set that variable has the last word.
 *
 * OpenBLAS has no lock around its choice. It is made where nobody multiplies:
 * when libipu is loaded, behind OpenBLAS itself, and before main.
 *
 * Both functions are those that OpenBLAS calls when it is loaded and unloaded.
 * One that was built for a single processor does not have them.
 */
#include <cblas.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/memory.h"
#include "ops/wide.h"

/* ----------------------------------------------------------------- threads */

enum { MOST_THREADS = 1024 };

/* ipu_set_threads stores it, and ipu__threads_apply loads it. It publishes
 * nothing else. */
static atomic_int threads = 1;

void ipu__threads_apply(void)
{
    openblas_set_num_threads(atomic_load(&threads));
}

int ipu_set_threads(int32_t count)
{
    if (count < 1 || count > MOST_THREADS)
        return ipu__fail(IPU_ERR_ARGUMENT, "%d threads: give 1 to %d",
                         (int)count, MOST_THREADS);
    atomic_store(&threads, count);
    ipu__threads_apply();
    return IPU_OK;
}

/* ----------------------------------------------------------------- kernels */

void gotoblas_dynamic_init(void) __attribute__((weak));
void gotoblas_dynamic_quit(void) __attribute__((weak));

/* Kernels from before AVX. */
static const char *const old[] = {"Prescott", "Core2", "Nehalem", "Barcelona"};

static bool is_old(const char *core)
{
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (strcmp(core, old[i]) == 0)
            return true;
    return false;
}

__attribute__((constructor)) static void choose_kernels(void)
{
    static const char variable[] = "OPENBLAS_CORETYPE";

    if (getenv(variable) || !is_old(openblas_get_corename()) ||
        !ipu__kernels_run_here(IPU__KERNELS_AVX2) || !gotoblas_dynamic_init ||
        !gotoblas_dynamic_quit)
        return;
    if (setenv(variable,
               ipu__kernels_run_here(IPU__KERNELS_AVX512) ? "SkylakeX"
                                                          : "Haswell",
               1) < 0)
        return;
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    unsetenv(variable);
}
