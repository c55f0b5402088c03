/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - loops that are built as their iterations, for loops.c and for
 * pipelines.
 */
#ifndef IPU_OPS_CONTROL_H
#define IPU_OPS_CONTROL_H

#include "graph/graph.h"

/* Adds what the loop does to the graph, iteration after iteration, and sets the
 * loop's outputs. The loop itself is not added. */
int ipu__unroll(ipu_graph *graph, const struct ipu__loop *loop,
                const char *what);

/* Ends the building of such loops: variables that they assign are again what
 * they were before. */
void ipu__unrolled(ipu_graph *graph);

#endif
