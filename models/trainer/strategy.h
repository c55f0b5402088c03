/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy.h - the names of the strategies: the ways in which processes, and
 * devices of one process, train one network together. docs/STRATEGIES.md says
 * what each does.
 */
#ifndef MODELS_STRATEGY_H
#define MODELS_STRATEGY_H

#include <stdint.h>

enum strategy {
    STRATEGY_HOROVOD,          /* processes that mpirun started, over MPI */
    STRATEGY_MULTI_WORKER,     /* processes of a TF_CONFIG, without MPI */
    STRATEGY_MIRRORED,         /* several devices of one process, or of each */
    STRATEGY_PARAMETER_SERVER, /* the last ranks hold variables and optimiser
                                  for the others */
    STRATEGY_DEVICE_COLLECTIVE /* one device a process, which meet on the
                                  devices' own network */
};

/* The names, by enum strategy; ends with NULL. */
extern const char *const strategy_names[];

/* These settings say how sums over the replicas of a process travel between
 * their devices; it changes cycles and bytes, but no result. */
struct sums_settings {
    int algorithm; /* an ipu_cross_replica_algorithm; -1: the default, a ring */
    int packs;     /* all sums that are ready together in so many packs of equal
                      size; 0: each by itself */
};

/* The names, by algorithm; ends with NULL. */
extern const char *const sums_algorithms[];

/* These settings say how the parameter servers of that strategy work: the
 * options of hvd_strategy.h. */
struct servers_settings {
    int count;     /* of servers; 0: there are none */
    int mode;      /* an hvd_server_mode */
    int backups;   /* workers that a step does not wait for */
    int staleness; /* steps that a worker may be ahead */
    int placement; /* an hvd_placement */
    int64_t
        part_bytes; /* most bytes of a part of a variable; 0: they are whole */
};

/* The names of modes and placements; end with NULL. */
extern const char *const servers_modes[];
extern const char *const servers_placements[];

#endif
