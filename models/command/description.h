/* SPDX-License-Identifier: Apache-2.0 */
/*
 * description.h - finds the description of the cluster that this process is a
 * task of: in the variable TF_CONFIG, in the file of --cluster, or by the rank
 * that a launcher gave the process.
 */
#ifndef MODELS_DESCRIPTION_H
#define MODELS_DESCRIPTION_H

#include "options/options.h"

#include <hvd_cluster.h>

/* The port of rank 0 where --base-port does not say another one. */
enum { DESCRIPTION_BASE_PORT = 3737 };

/*
 * Makes the description that the options and the environment give, which says
 * which task this process is; for hvd_cluster_free. *cluster is NULL if there
 * is none: then the process is a rank of MPI, or alone. PROBLEM with the text
 * kept; PROBLEM_EVERYWHERE for what is wrong on all ranks of a launcher.
 */
int description_find(const struct options *options, hvd_cluster **cluster);

/* Reads "worker:1" or "chief" as a task, for --task. PROBLEM with the text
 * kept. */
int description_read_task(const char *text, hvd_role *role, int32_t *index);

#endif
