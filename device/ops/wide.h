/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.h - loops that are compiled for several sets of instructions: the best
 * that the processor offers runs, or the one that IPU_KERNELS names.
 *
 * Every set gives the same bits: nothing in such a loop may depend on how many
 * elements a register holds, and products and sums are not contracted
 * (-ffp-contract=off).
 *
 *     IPU__WIDE(static, void, add_each, (float *y, const float *x, int64_t n),
 *               (y, x, n))
 *     {
 *         IPU__BY_ELEMENT
 *         for (int64_t i = 0; i < n; i++)
 *             y[i] += x[i];
 *     }
 *
 * defines a static function add_each that calls add_each_avx512, add_each_avx2
 * or add_each_generic, which have this body. tests/tools/check-vectors looks
 * for these names and fails if a loop in them is not vector code.
 */
#ifndef IPU_OPS_WIDE_H
#define IPU_OPS_WIDE_H

#include <stdatomic.h>

/* Sets of instructions, the plainest first. */
enum ipu__kernels {
    IPU__KERNELS_UNKNOWN, /* the choice has not been made yet */
    IPU__KERNELS_GENERIC, /* the instructions of every processor of the
                             architecture */
    IPU__KERNELS_AVX2,
    IPU__KERNELS_AVX512, /* F, BW, DQ and VL */
    IPU__KERNELS_END
};

/* The set in use. ipu__kernels_find and ipu__kernels_choose store it, and
 * ipu__kernels loads it. It publishes nothing else, so relaxed order is enough;
 * threads that ask first at the same time all find the same. */
extern atomic_int ipu__kernels_in_use;

/* Finds the set to use, keeps it in ipu__kernels_in_use and returns it. */
enum ipu__kernels ipu__kernels_find(void);

static inline enum ipu__kernels ipu__kernels(void)
{
    int kernels =
        atomic_load_explicit(&ipu__kernels_in_use, memory_order_relaxed);

    return kernels ? (enum ipu__kernels)kernels : ipu__kernels_find();
}

/* Returns whether this processor can run the set. */
int ipu__kernels_run_here(enum ipu__kernels kernels);

/* The name of a set: "avx2"; NULL: there is none. */
const char *ipu__kernels_name(enum ipu__kernels kernels);

/* Uses the set of that name from now on, in all threads; "auto" and "": the
 * best. IPU_ERR_ARGUMENT, with the names of those that there are: there is none
 * of that name, or this processor lacks instructions that it needs. */
int ipu__kernels_choose(const char *name);

/* IPU_ERR_ARGUMENT, with the reason, if IPU_KERNELS names none that can be
 * used. */
int ipu__kernels_check(void);

/* A small function that must become part of the loop that calls it: a call
 * would keep the loop from being vector code. */
#define IPU__INLINE static inline __attribute__((always_inline))

/* Variants keep their names, bodies and loops: they are not inlined, cloned
 * or merged with equal ones. */
#if defined(__has_attribute) && __has_attribute(noipa)
#define IPU__APART __attribute__((noipa))
#else
#define IPU__APART __attribute__((noinline))
#endif

#ifdef __x86_64__
#define IPU__AVX2 __attribute__((target("avx2")))
#define IPU__AVX512                                                            \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define IPU__VARIANTS(scope, result, name, parameters, arguments)              \
    IPU__INLINE result name##_body parameters;                                 \
    IPU__APART static result name##_generic parameters                         \
    {                                                                          \
        return name##_body arguments;                                          \
    }                                                                          \
    IPU__APART IPU__AVX2 static result name##_avx2 parameters                  \
    {                                                                          \
        return name##_body arguments;                                          \
    }                                                                          \
    IPU__APART IPU__AVX512 static result name##_avx512 parameters              \
    {                                                                          \
        return name##_body arguments;                                          \
    }                                                                          \
    scope result name parameters                                               \
    {                                                                          \
        switch (ipu__kernels()) {                                              \
        case IPU__KERNELS_AVX512: return name##_avx512 arguments;              \
        case IPU__KERNELS_AVX2: return name##_avx2 arguments;                  \
        default: return name##_generic arguments;                              \
        }                                                                      \
    }                                                                          \
    IPU__INLINE result name##_body parameters
#else
#define IPU__VARIANTS(scope, result, name, parameters, arguments)              \
    scope result name parameters
#endif

/* scope: static or extern. parameters and arguments stand in parentheses. */
#define IPU__WIDE(scope, result, name, parameters, arguments)                  \
    IPU__VARIANTS(scope, result, name, parameters, arguments)

/* IPU__BY_ELEMENT stands before a loop whose element i depends on nothing but
 * elements i, in place or not. IPU__BY_LANE stands before a loop over the lanes
 * of a vector with a choice in it, which would be split before it can become a
 * vector. */
#ifdef __clang__
#define IPU__BY_LANE _Pragma("clang loop vectorize(enable)")
#define IPU__BY_ELEMENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define IPU__BY_LANE _Pragma("GCC unroll 1")
#define IPU__BY_ELEMENT _Pragma("GCC ivdep")
#endif

#endif
