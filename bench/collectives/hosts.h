/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts.h - hvd-bench hosts: measures a collective over several hosts made of
 * network namespaces.
 */
#ifndef BENCH_HOSTS_H
#define BENCH_HOSTS_H

/* Replaces this process by the script hvd-bench-hosts in the directory of this
 * program. Returns only if that fails. */
int hosts_main(int argc, char **argv);

#endif
