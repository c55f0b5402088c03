/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.h - the part of hvd-info that tells how a TF_CONFIG is read.
 */
#ifndef HVD_TOOLS_CLUSTER_H
#define HVD_TOOLS_CLUSTER_H

/* Prints the cluster that a file describes, or TF_CONFIG if path is NULL.
 * Returns 0 or a status, with the last error set. */
int cluster_print(const char *path);

#endif
