/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subnormals.h - whether a thread's floats keep numbers below 2^-126.
 *
 * A processor takes a hundred cycles and more for a subnormal number, and a
 * training makes many: the running averages of an optimiser fall by a tenth a
 * step where a gradient stays zero, and end there. So ops take them for zero
 * and give zero instead, as TensorFlow's do. The mode is a thread's own; it
 * is set for an op, and a program's functions run in the program's.
 */
#ifndef IPU_SUBNORMALS_H
#define IPU_SUBNORMALS_H

#ifdef __SSE__
#include <xmmintrin.h>

enum {
    IPU__FLUSH_RESULTS = 0x8000, /* FTZ of Intel's manual */
    IPU__FLUSH_OPERANDS = 0x40   /* DAZ */
};

/* Returns the mode before, for ipu__subnormals_restore. */
static inline unsigned ipu__subnormals_flush(void)
{
    unsigned before = _mm_getcsr();

    _mm_setcsr(before | IPU__FLUSH_RESULTS | IPU__FLUSH_OPERANDS);
    return before;
}

static inline void ipu__subnormals_restore(unsigned before)
{
    _mm_setcsr(before);
}
#else
/* Other processors compute with subnormal numbers at their speed. */
static inline unsigned ipu__subnormals_flush(void)
{
    return 0;
}

static inline void ipu__subnormals_restore(unsigned before)
{
    (void)before;
}
#endif

#endif /* IPU_SUBNORMALS_H */
