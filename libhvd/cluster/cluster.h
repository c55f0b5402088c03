/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.h - the door of this room: what libhvd's own rooms need of a cluster
 * beyond hvd_cluster.h.
 */
#ifndef HVD_CLUSTER_CLUSTER_H
#define HVD_CLUSTER_CLUSTER_H

#include "hvd_cluster.h"

/* Splits an address of a cluster. Writes the host, an IPv6 address without its
 * brackets, and returns the port. */
int hvd__address_split(const char *address,
                       char host[HVD_CLUSTER_MAX_HOST + 1]);

/* Checks that a program that gives a cluster (not NULL) has no TF_CONFIG in its
 * environment as well: it would not be clear which of the two counts. Returns
 * HVD_ERR_CONFIG then. */
int hvd__cluster_check_given(const hvd_cluster *given);

#endif
