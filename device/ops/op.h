/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.h - the ops: their rows, and the calls that builders and rows share. The
 * door of this room.
 *
 * Each op is one file in the folder of its family, which has its shape, its
 * loops, its cost, its derivative, its row and its builder. Rows are constant
 * and have no state. Builders add nodes with ipu__add alone; a failure stays in
 * the graph. The room is built on the graph; training, the compiler and the
 * engine use it.
 *
 * The families: elementwise, reductions, products, windows, norms, losses,
 * random, arrangement (elements are moved, or made from nothing), optimizers,
 * transfers (variables, queues, replicas, the host, memory beside the chip) and
 * control (loops).
 */
#ifndef IPU_OPS_OP_H
#define IPU_OPS_OP_H

#include "graph/op.h"
#include "ops/wide.h"

/* Every op is in the list: files know it by its name. */
#define IPU__OP(op) extern const struct ipu__op ipu__##op;
#include "ops/list.inc"
#undef IPU__OP

/* The rows of many ops by element begin with these members: ops of one tensor
 * of floats, and of two of the same shape, whose output may take the place of
 * the first. */
#define IPU__OF_ONE                                                            \
    .ninputs = 1, .in_place = IPU__FIRST, .by_element = true,                  \
    .shape = ipu__same_floats
#define IPU__OF_TWO                                                            \
    .ninputs = 2, .in_place = IPU__FIRST, .by_element = true,                  \
    .shape = ipu__two_floats

/* The variable that says which replica it is. */
#define IPU__REPLICA_INDEX "replica/index"

/* The ways of a sum over replicas: whole to all of them; or with a row for each
 * (dimension 0), where each needs only its own row of the sum, or has only its
 * own row to give and zeros elsewhere. All make the same sum. */
enum ipu__collective {
    IPU__ALL_REDUCE = 0,
    IPU__REDUCE_SCATTER = 1,
    IPU__ALL_GATHER = 2
};

/* A sum over all replicas that travels so. */
ipu_tensor ipu__cross_replica_sum_as(ipu_graph *graph, ipu_tensor x,
                                     enum ipu__collective kind);

/* The op of that name; NULL: there is none. */
const struct ipu__op *ipu__op_find(const char *name);

/* Op number i of the list, in the order of the names in it; NULL: the end. */
const struct ipu__op *ipu__op_at(int i);

/* -------------------------------------- what shape functions have in common */

/* IPU_ERR_SHAPE unless input i has that dtype and, if ndim >= 0, as many
 * dimensions. form says in words what is expected: "[n, h, w, c]". */
int ipu__expect(const struct ipu__call *call, int i, ipu_dtype dtype,
                int32_t ndim, const char *form);

/* The output is like input 0, which is of floats. */
int ipu__same_floats(const struct ipu__call *call, struct ipu__shape *output);

/* The output is like input 0, which is of floats, and input 1 has the same
 * shape. */
int ipu__two_floats(const struct ipu__call *call, struct ipu__shape *output);

/* IPU_ERR_SHAPE unless inputs i and j have the same shape. */
int ipu__expect_same(const struct ipu__call *call, int i, int j);

/*
 * Checks of facts that builders guarantee and files may violate: the attribute
 * axis is one of input 0; attributes and inputs belong together.
 */
int ipu__expect_axis(const struct ipu__call *call);
int ipu__expect_true(const struct ipu__call *call, bool holds);

/*
 * Add a node: the op's shape function says whether and what it makes. inputs
 * has as many as the op takes; attributes NULL: zeros. Invalid if an input
 * is, or on failure.
 */
ipu_tensor ipu__add(ipu_graph *graph, const struct ipu__op *op,
                    const ipu_tensor *inputs,
                    const struct ipu__attributes *attributes);

/* Gradients of ops of one tensor, of dy and that tensor, or dy and the output,
 * by one op: the row's slope. */
void ipu__slope_by_input(ipu_graph *graph, const struct ipu__node *node,
                         ipu_tensor dy, ipu_tensor *dx);
void ipu__slope_by_output(ipu_graph *graph, const struct ipu__node *node,
                          ipu_tensor dy, ipu_tensor *dx);

/* The tensor's index; or that of a copy, if it is a variable: as it is at the
 * beginning of the run or iteration, whatever becomes of it. */
int32_t ipu__index_kept(ipu_graph *graph, ipu_tensor tensor);
/* Returns whether a cast of float32 to that dtype rounds stochastically. The
 * second makes that cast. */
bool ipu__casts_stochastically(const ipu_graph *graph, ipu_dtype dtype);
ipu_tensor ipu__round_stochastically(ipu_graph *graph, ipu_tensor x);

/* A tensor filled with one value. */
ipu_tensor ipu__constant(ipu_graph *graph, const struct ipu__shape *shape,
                         double value);

/* A scalar of the tensor's dtype. */
ipu_tensor ipu__scalar_like(ipu_graph *graph, ipu_tensor tensor, double value);

/* For builders that look at a tensor before they add the op's node: returns its
 * index, or the failure of ipu__add, kept in the graph. */
int32_t ipu__index_of(ipu_graph *graph, const struct ipu__op *op,
                      ipu_tensor tensor);

/* Sets *found to the tensor's axis; a negative axis counts from the last. Fails
 * as ipu__index_of, or because there is no such axis. */
int ipu__find_axis(ipu_graph *graph, const struct ipu__op *op,
                   ipu_tensor tensor, int32_t axis, int32_t *found);

#endif
