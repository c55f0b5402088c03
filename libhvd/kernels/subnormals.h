/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subnormals.h - whether a thread's floats keep numbers below 2^-126.
 *
 * A processor takes a hundred cycles and more for a subnormal number, and a
 * training makes many: the running averages of an optimiser fall by a tenth a
 * step where a gradient stays zero, and end there. So the device's ops and the
 * strategies' optimisers take them for zero and give zero instead, as
 * TensorFlow's ops do. The mode is a thread's own; it is set while they run,
 * and a program's functions run in the program's.
 */
#ifndef HVD_SUBNORMALS_H
#define HVD_SUBNORMALS_H

#ifdef __SSE__
#include <xmmintrin.h>

enum {
    HVD__FLUSH_RESULTS = 0x8000, /* FTZ of Intel's manual */
    HVD__FLUSH_OPERANDS = 0x40   /* DAZ */
};

/* Returns the mode before, for hvd__subnormals_restore. */
static inline unsigned hvd__subnormals_flush(void)
{
    unsigned before = _mm_getcsr();

    _mm_setcsr(before | HVD__FLUSH_RESULTS | HVD__FLUSH_OPERANDS);
    return before;
}

static inline void hvd__subnormals_restore(unsigned before)
{
    _mm_setcsr(before);
}
#else
/* Other processors compute with subnormal numbers at their speed. */
static inline unsigned hvd__subnormals_flush(void)
{
    return 0;
}

static inline void hvd__subnormals_restore(unsigned before)
{
    (void)before;
}
#endif

#endif /* HVD_SUBNORMALS_H */
