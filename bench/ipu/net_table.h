/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_IPU_NET_TABLE_H
#define BENCH_IPU_NET_TABLE_H

#include "tables/table.h"

/* Prints all networks, one row each, to standard output. Returns a negative
 * status of the device if a network fails. */
int net_table(enum table_format format);

#endif
