/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/rounds.h"

/* A block is long against the clock and the waking of its processes. */
static const double BLOCK_SECONDS = 0.01;
enum { ITERS_MOST = 1000 };

int rounds_iters(double seconds)
{
    double n = seconds > 0 ? BLOCK_SECONDS / seconds : ITERS_MOST;

    return n < 1 ? 1 : n > ITERS_MOST ? ITERS_MOST : (int)n;
}
