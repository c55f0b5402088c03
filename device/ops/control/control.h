/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - parts of building loops, for derivatives of loops, and loops that
 * are built as their iterations, for loops.c and for pipelines.
 */
#ifndef IPU_OPS_CONTROL_H
#define IPU_OPS_CONTROL_H

#include "graph/graph.h"

/* Makes the graph of a loop's body or condition, with variables for the values
 * that the loop carries; their initial values are known. */
int ipu__loop_open(ipu_graph *graph, const char *what,
                   const struct ipu__loop *loop,
                   struct ipu__block_graph *block);

/* Add a carried value to a body, and set what it becomes after each iteration.
 * The first takes over name and returns the index of the variable. */
int32_t ipu__carried_add(ipu_graph *body, char *name,
                         const struct ipu__shape *shape);
int ipu__carried_becomes(ipu_graph *body, int32_t carried, ipu_tensor next);

/* Adds the node of a loop that is complete but for its outputs. The loop is
 * number nloops of the graph's list, beyond its end. */
int ipu__loop_add(ipu_graph *graph, const char *what, struct ipu__loop *loop);

/* Adds what the loop does to the graph, iteration after iteration, and sets the
 * loop's outputs. The loop itself is not added. */
int ipu__unroll(ipu_graph *graph, const struct ipu__loop *loop,
                const char *what);

/* Ends the building of such loops: variables that they assign are again what
 * they were before. */
void ipu__unrolled(ipu_graph *graph);

#endif
