/* SPDX-License-Identifier: Apache-2.0 */
/*
 * totals.h - steps added up by what they are: all of one op, or all of one
 * name. For tables, and for comparing.
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
    bool estimated; /* some of it */
};

enum ipu__total_by { IPU__BY_OP, IPU__BY_TENSOR };

/* *totals is the caller's, to free(); the most cycles first. Returns how many,
 * or IPU_ERR_MEMORY. */
int ipu__totals(const struct ipu__program *program, enum ipu__total_by by,
                struct ipu__total **totals);

#endif
