/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collectives.h - hvd-bench COLLECTIVE: over types, operations, roots and
 * sizes.
 */
#ifndef BENCH_COLLECTIVES_H
#define BENCH_COLLECTIVES_H

/* The whole run; returns the exit status. */
int collectives_main(int argc, char **argv);

#endif
