/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - brings what parameter servers hold to a worker and back: values and
 * the optimiser's state, for checkpoints and joins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "strategy/optimizer.h"
#include "strategy/servers.h"

/* The requests about the optimiser's state of a part, as many as it has arrays.
 * A server knows them by the same words. */
const char *const hvd__state_words[HVD__MOST_STATES] = {"slot0", "slot1",
                                                         "slot2"};

