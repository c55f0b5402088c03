/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_IPU_NET_TABLE_H
#define BENCH_IPU_NET_TABLE_H

#include "tables/table.h"

/* Whole networks, a row each, to the standard output. A negative status of the
 * device's. */
int net_table(enum table_format format);

#endif
