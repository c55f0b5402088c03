/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gates.h - the activations of recurrent operators, which a node names, and may
 * give parameters.
 */
#ifndef IPU_ONNX_OPERATORS_GATES_H
#define IPU_ONNX_OPERATORS_GATES_H

#include "onnx/build.h"

struct onnx__activation;

struct onnx__gate {
    const struct onnx__activation *activation;
    double alpha, beta;
    double clip; /* inputs are limited to +-clip; 0: they are not */
};

enum { ONNX__MOST_GATES = 6 }; /* three in each of two directions */

/* Reads the activations of a node from its attributes. names are those that
 * its operator has by default, each_count for each direction. */
int onnx__read_gates(struct ipu__onnx_call *call, int directions,
                     int each_count, const char *const *names,
                     struct onnx__gate *gates);

/* Returns the activation of x. */
ipu_tensor onnx__activate(ipu_graph *g, const struct onnx__gate *gate,
                          ipu_tensor x);

#endif
