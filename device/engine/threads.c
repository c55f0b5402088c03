/* SPDX-License-Identifier: Apache-2.0 */
/* The number of threads that OpenBLAS may use: one number for the whole
 * process. */
#include <cblas.h>
#include <stdatomic.h>

#include "base/error.h"
#include "engine/memory.h"

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
