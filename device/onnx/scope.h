/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.h - graphs in attributes of nodes: branches of If, bodies of Loop and
 * Scan.
 */
#ifndef IPU_ONNX_SCOPE_H
#define IPU_ONNX_SCOPE_H

#include "onnx/builder.h"

/*
 * Opens a scope for a graph that is an attribute of the node: names its values,
 * and copies those around it that it uses. Its nodes are built into the graph
 * that the node is built into; the caller may set scope->graph to the body of a
 * loop of that graph before they are built. With scratch, a graph of its own,
 * they are built there, and what the graph uses from around it is an input of
 * scratch.
 *
 * Refuses the node if the graph is nested too deeply, is too large, or gives a
 * value a name that there is. Close the scope in either case, when its outputs
 * have been taken.
 */
int ipu__onnx_scope_open(struct ipu__onnx_call *call,
                         const struct ipu__onnx_graph *graph,
                         ipu_graph *scratch, struct ipu__onnx_builder *scope);

/* Sets input i of the scope's graph to what a value is. */
void ipu__onnx_scope_set(struct ipu__onnx_builder *scope,
                         const struct ipu__onnx_graph *graph, size_t i,
                         const struct ipu__onnx_value *value);

/* Builds the nodes. */
int ipu__onnx_scope_build(struct ipu__onnx_call *call,
                          const struct ipu__onnx_graph *graph,
                          struct ipu__onnx_builder *scope);

/* Closes a scope. What failed in it ends building, unless it was a trial. */
void ipu__onnx_scope_close(struct ipu__onnx_call *call,
                           struct ipu__onnx_builder *scope, bool trial);

/* Returns output i of the graph; NULL if nothing makes it. */
const struct ipu__onnx_value *ipu__onnx_scope_output(
    const struct ipu__onnx_builder *scope, const struct ipu__onnx_graph *graph,
    size_t i);

/* Returns a new input of a scratch graph that is as a value that is not known.
 */
struct ipu__onnx_value ipu__onnx_placeholder(
    struct ipu__onnx_call *call, ipu_graph *scratch,
    const struct ipu__onnx_value *like);

/* Returns a value as a scratch graph has it: such an input, or what is known.
 */
struct ipu__onnx_value ipu__onnx_in_scratch(struct ipu__onnx_call *call,
                                            ipu_graph *scratch,
                                            struct ipu__onnx_value *value);

#endif
