/* SPDX-License-Identifier: Apache-2.0 */
/* init_cluster.h - worlds of the tasks of a cluster, without MPI. */
#ifndef HVD_CORE_WORLD_INIT_CLUSTER_H
#define HVD_CORE_WORLD_INIT_CLUSTER_H

/* Starts the world of the cluster that TF_CONFIG describes. Returns 1, or 0 if
 * the variable is not set. */
int hvd__world_init_environment(void);

#endif
