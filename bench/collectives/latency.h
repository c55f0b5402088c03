/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency.h - hvd-bench latency: measures how long one small allreduce takes,
 * blocking and from submission to the end of waiting, with idle cores and with
 * busy ones.
 */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

/* Runs the subcommand; returns the exit status. */
int latency_main(int argc, char **argv);

#endif
