/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variants.c - the variants of the kernels: which of them this processor can
 * run, and which is in use. All kernels ask hvd__kernel_variant.
 */
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "kernels/kernels.h"
#include "kernels/variant.h"

static bool always(void)
{
    return true;
}

/* The builtins also ask the operating system whether it keeps the registers. */
#ifdef __x86_64__
static bool has_avx2(void)
{
    unsigned a, b, c, d;

    /* The builtin of some compilers does not support F16C. */
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) &&
           (c & bit_F16C);
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

/* The variants, the best last. */
static const struct {
    const char *name;
    const struct hvd__kernel_variant *variant;
    bool (*runs_here)(void);
} variants[] = {
    {"generic", &hvd__variant_generic, always},
#ifdef __x86_64__
    {"avx2", &hvd__variant_avx2, has_avx2},
    {"avx512", &hvd__variant_avx512, has_avx512},
#endif
};

enum { NVARIANTS = sizeof variants / sizeof *variants };

/* The number of the variant in use, plus 1; 0: not chosen yet.
 * hvd__kernels_choose and the first caller of hvd__kernel_variant store it. It
 * publishes constants only, and threads that choose at the same time choose the
 * same. */
static atomic_int in_use;

/* The caller, which runs for every reduction, is quicker without it. */
static __attribute__((noinline)) int best(void)
{
    int i = NVARIANTS - 1;

    while (!variants[i].runs_here())
        i--;
    return i;
}

static int current(void)
{
    int found = atomic_load_explicit(&in_use, memory_order_relaxed) - 1;

    if (found < 0) {
        found = best();
        atomic_store_explicit(&in_use, found + 1, memory_order_relaxed);
    }
    return found;
}

const struct hvd__kernel_variant *hvd__kernel_variant(void)
{
    return variants[current()].variant;
}

const char *hvd__kernels_name(void)
{
    return variants[current()].name;
}

const char *hvd__kernels_offered(int i)
{
    for (int k = 0; k < NVARIANTS; k++)
        if (variants[k].runs_here() && i-- == 0)
            return variants[k].name;
    return NULL;
}

static int fail_to_choose(const char *name, const char *why)
{
    const char *offered;
    char list[80] = "";

    for (int i = 0; (offered = hvd__kernels_offered(i)); i++) {
        size_t length = strlen(list);

        snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "",
                 offered);
    }
    return hvd__fail(
        HVD_ERR_CONFIG,
        "HVD_KERNELS='%s' %s: give auto, or what this processor can "
        "run: %s",
        name, why, list);
}

int hvd__kernels_choose(const char *name)
{
    int found = -1;

    for (int i = 0; i < NVARIANTS; i++)
        if (strcmp(name, variants[i].name) == 0)
            found = i;
    if (strcmp(name, "auto") == 0)
        found = best();
    if (found < 0)
        return fail_to_choose(name, "is not a variant of the kernels");
    if (!variants[found].runs_here())
        return fail_to_choose(name, "needs instructions that are missing");
    atomic_store_explicit(&in_use, found + 1, memory_order_relaxed);
    return HVD_OK;
}
