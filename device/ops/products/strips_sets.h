/* SPDX-License-Identifier: Apache-2.0 */
/* strips_sets.h - the loops of strips.inc for each set of instructions. */
#ifndef IPU_OPS_STRIPS_SETS_H
#define IPU_OPS_STRIPS_SETS_H

#include "ops/products/strips.h"

#ifdef __x86_64__
extern const struct ipu__strips ipu__strips_avx2;
extern const struct ipu__strips ipu__strips_avx512;
#endif

#endif
