/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.h - graphs in attributes of nodes: branches of If.
 */
#ifndef IPU_ONNX_SCOPE_H
#define IPU_ONNX_SCOPE_H

#include "onnx/builder.h"

/*
 * Builds the nodes of a graph that takes no inputs into the graph that the node
 * is built into. scope gets its values: its own, and copies of those around it
 * that it uses. Close it in either case, when its outputs have been taken.
 * Refuses the node if the graph is nested too deeply, is too large, or gives a
 * value a name that there is.
 */
int ipu__onnx_scope_build(struct ipu__onnx_call *call,
                          const struct ipu__onnx_graph *graph,
                          struct ipu__onnx_builder *scope);
void ipu__onnx_scope_close(struct ipu__onnx_call *call,
                           struct ipu__onnx_builder *scope);

/* Returns output i of the graph; NULL if nothing makes it. */
const struct ipu__onnx_value *ipu__onnx_scope_output(
    const struct ipu__onnx_builder *scope, const struct ipu__onnx_graph *graph,
    int i);

#endif
