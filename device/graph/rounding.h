/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rounding.h - graphs whose float16 is rounded stochastically.
 */
#ifndef IPU_GRAPH_ROUNDING_H
#define IPU_GRAPH_ROUNDING_H

#include "graph/graph.h"

/* Whether an op on these inputs is one whose result is rounded stochastically.
 */
bool ipu__is_rounded(ipu_graph *graph, const struct ipu__op *op,
                     const ipu_tensor *inputs,
                     const struct ipu__attributes *attributes);

/* It, then, in place of ipu__add. */
ipu_tensor ipu__add_rounded(ipu_graph *graph, const struct ipu__op *op,
                            const ipu_tensor *inputs,
                            const struct ipu__attributes *attributes);

/* Whether a cast to that dtype is; and the cast, of a float32. */
bool ipu__casts_stochastically(const ipu_graph *graph, ipu_dtype dtype);
ipu_tensor ipu__round_stochastically(ipu_graph *graph, ipu_tensor x);

#endif
