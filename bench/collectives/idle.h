/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle.h - hvd-bench idle: measures the cost of an initialised program that
 * does nothing.
 */
#ifndef BENCH_IDLE_H
#define BENCH_IDLE_H

/* Runs the subcommand; returns the exit status. */
int idle_main(int argc, char **argv);

#endif
