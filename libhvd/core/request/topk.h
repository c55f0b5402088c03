/* SPDX-License-Identifier: Apache-2.0 */
/* topk.h - the compression HVD_COMPRESSION_TOPK. */
#ifndef HVD_CORE_TOPK_H
#define HVD_CORE_TOPK_H

#include "hvd.h"

extern const hvd_compressor hvd__topk;

/* The part of the values that is sent, 0 < ratio <= 1; 0.01 at first. */
void hvd__topk_set_ratio(double ratio);

#endif
