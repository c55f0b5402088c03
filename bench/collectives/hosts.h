/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts.h - hvd-bench hosts: a collective over several hosts made of network
 * namespaces.
 */
#ifndef BENCH_HOSTS_H
#define BENCH_HOSTS_H

/* Becomes the script hvd-bench-hosts, which lies beside this program; returns
 * only if it cannot. */
int hosts_main(int argc, char **argv);

#endif
