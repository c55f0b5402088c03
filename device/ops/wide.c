/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of instructions, and the choice of the one in use. */
#include "ops/wide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

atomic_int ipu__kernels_in_use;

static const char *const names[IPU__KERNELS_END] = {
    [IPU__KERNELS_GENERIC] = "generic",
    [IPU__KERNELS_AVX2] = "avx2",
    [IPU__KERNELS_AVX512] = "avx512",
};

const char *ipu__kernels_name(enum ipu__kernels kernels)
{
    return names[kernels];
}

/* The builtin asks the operating system, too, whether it keeps the registers.
 */
int ipu__kernels_run_here(enum ipu__kernels kernels)
{
#ifdef __x86_64__
    if (kernels == IPU__KERNELS_AVX2)
        return __builtin_cpu_supports("avx2") != 0;
    if (kernels == IPU__KERNELS_AVX512)
        return ipu__kernels_run_here(IPU__KERNELS_AVX2) &&
               __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
#endif
    return kernels == IPU__KERNELS_GENERIC;
}

static enum ipu__kernels best(void)
{
    int kernels = IPU__KERNELS_END - 1;

    while (!ipu__kernels_run_here((enum ipu__kernels)kernels))
        kernels--;
    return (enum ipu__kernels)kernels;
}

/* "", where nothing is wanted. */
static const char *wanted(void)
{
    const char *text = getenv("IPU_KERNELS");

    return text ? text : "";
}

/* The set of that name, UNKNOWN if there is none. */
static enum ipu__kernels of_name(const char *name)
{
    if (!name[0] || strcmp(name, "auto") == 0)
        return best();
    for (int i = IPU__KERNELS_GENERIC; i < IPU__KERNELS_END; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum ipu__kernels)i;
    return IPU__KERNELS_UNKNOWN;
}

static int check_name(const char *name)
{
    enum ipu__kernels kernels = of_name(name);
    char list[80] = "auto";

    if (kernels && ipu__kernels_run_here(kernels))
        return IPU_OK;
    for (int i = IPU__KERNELS_GENERIC; i < IPU__KERNELS_END; i++) {
        size_t length = strlen(list);

        if (ipu__kernels_run_here((enum ipu__kernels)i))
            snprintf(list + length, sizeof list - length, ", %s", names[i]);
    }
    return ipu__fail(IPU_ERR_ARGUMENT, "IPU_KERNELS='%.40s' %s: give one of %s",
                     name,
                     kernels ? "needs instructions that this processor lacks"
                             : "is no set of instructions",
                     list);
}

int ipu__kernels_check(void)
{
    return check_name(wanted());
}

int ipu__kernels_choose(const char *name)
{
    IPU_TRY(check_name(name));
    atomic_store_explicit(&ipu__kernels_in_use, (int)of_name(name),
                          memory_order_relaxed);
    return IPU_OK;
}

/* A name that is none is reported by ipu__kernels_check, where a program is
 * compiled or loaded; whatever is computed before gets the best set. */
enum ipu__kernels ipu__kernels_find(void)
{
    enum ipu__kernels found = of_name(wanted());

    if (!found || !ipu__kernels_run_here(found))
        found = best();
    atomic_store_explicit(&ipu__kernels_in_use, (int)found,
                          memory_order_relaxed);
    return found;
}
