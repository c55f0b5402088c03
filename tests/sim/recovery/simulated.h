/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulated.h - members of a job on several hosts who lose each other, and
 * agree on who is left (libhvd/watch/survivors.h), in one thread and in virtual
 * time.
 */
#ifndef SIM_RECOVERY_SIMULATED_H
#define SIM_RECOVERY_SIMULATED_H

#include <stdbool.h>
#include <stdint.h>

/* The sums over all stories. */
struct sim_counts {
    int64_t stories, started, ended, letters, rounds;
};

/* Plays the story of a seed. Returns whether all was well; says on standard
 * output what was not, and all that happens if it is verbose. */
bool sim_recovery(uint64_t seed, bool verbose, struct sim_counts *counts);

#endif
