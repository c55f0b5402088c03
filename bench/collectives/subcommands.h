/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subcommands.h - the subcommands of hvd-bench. Each takes its own name for
 * argv[0], and returns the exit status.
 */
#ifndef BENCH_SUBCOMMANDS_H
#define BENCH_SUBCOMMANDS_H

/* hvd-bench COLLECTIVE: measures over types, reductions, roots and sizes. */
int collectives_main(int argc, char **argv);

/* Measures how long one small allreduce takes, blocking and from submission to
 * the end of waiting, with idle cores and with busy ones. */
int latency_main(int argc, char **argv);

/* The cost of an initialised program that does nothing. */
int idle_main(int argc, char **argv);

/* The sums of a model's gradients, in several ways. */
int gradients_main(int argc, char **argv);

/* Measures how much of the communication a given amount of computing hides. */
int overlap_main(int argc, char **argv);

/* Measures how long a commit of a training's state takes, alone and beside a
 * step. */
int commit_main(int argc, char **argv);

/* Compares two values of one of libhvd's settings, in the same processes. */
int setting_main(int argc, char **argv);

/* A collective over hosts made of network namespaces: becomes the script
 * hvd-bench-hosts. */
int hosts_main(int argc, char **argv);

/* Allreduces by processes that are started without MPI, and by Gloo: becomes
 * the program hvd-bench-cluster. */
int cluster_main(int argc, char **argv);

/* Projects the time of a training step on other hosts, without running it
 * there: the process becomes the program hvd-bench-project. */
int project_main(int argc, char **argv);

#endif
