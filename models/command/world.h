/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - starts libhvd in the way that the strategy requires.
 */
#ifndef MODELS_WORLD_H
#define MODELS_WORLD_H

#include "options/options.h"

#include <hvd_cluster.h>

/* What world_start returns if there is no world for this process: it was a
 * spare, or waited to join, until the job ended. hvd_last_error says so. */
enum { WORLD_NOT_NEEDED = 1 };

/* Collective over the chief and the workers; an evaluator is alone in its
 * world. options NULL: in the way that the process was started. Sets the
 * strategy of the options, if none was given, and *role to the role of this
 * process. Returns 0, WORLD_NOT_NEEDED, or a problem with the text kept:
 * PROBLEM_EVERYWHERE if the ranks of a launcher all fail alike. */
int world_start(struct options *options, hvd_role *role);

#endif
