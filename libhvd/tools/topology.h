/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology.h - the part of hvd-info that starts a world and tells where its
 * ranks are and how they move data.
 */
#ifndef HVD_TOOLS_TOPOLOGY_H
#define HVD_TOOLS_TOPOLOGY_H

#include <stdbool.h>

struct topology_options {
    bool measures;      /* as HVD_COSTS=measure does */
    bool is_csv;        /* print the table of algorithms, as CSV, alone */
    const char *output; /* a file for the costs; NULL: none */
};

/* Collective over the job's ranks, of which rank 0 prints. Starts the library,
 * and stops it. Returns 0 or a status, with the last error set. */
int topology_print(const struct topology_options *options);

#endif
