/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.h - measures as one of the ranks that somebody else has started, by
 * TF_CONFIG or with mpirun.
 */
#ifndef BENCH_CLUSTER_MEMBER_H
#define BENCH_CLUSTER_MEMBER_H

#include "cluster/rounds.h"
#include "tables/table.h"

/* Times sums of libhvd; rank 0 prints the table. Uses no MPI of its own, so
 * that both kinds of starts are measured alike. Returns the exit status. */
int member_run(const struct rounds *rounds, enum table_format format);

#endif
