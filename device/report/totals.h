/* SPDX-License-Identifier: Apache-2.0 */
/*
 * totals.h - adds up the steps of one op, or of one name, for tables and
 * comparisons.
 */
#ifndef IPU_REPORT_TOTALS_H
#define IPU_REPORT_TOTALS_H

#include "report/profile.h"

struct ipu__total {
    const char *name; /* borrowed from the profile */
    int32_t steps;
    int64_t compute, exchange, sync, host, cycles;
    int64_t exchange_bytes;
    double flops;
    int64_t ns;     /* -1: not measured */
    bool estimated; /* part of it is an estimate */
};

enum ipu__total_by { IPU__BY_OP, IPU__BY_TENSOR };

/* Fills *totals, the most cycles first; the caller frees it with free().
 * Returns how many, or IPU_ERR_MEMORY. */
int ipu__totals(const struct ipu__program *program, enum ipu__total_by by,
                struct ipu__total **totals);

#endif
