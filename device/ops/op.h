/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.h - what an op is: the door of this room. Each op is one file that ends
 * with its table row.
 */
#ifndef IPU_OPS_OP_H
#define IPU_OPS_OP_H

#include "graph/op.h"
#include "ops/wide.h"

/* Every op is in the list: files know it by its name. */
#define IPU__OP(op) extern const struct ipu__op ipu__##op;
#include "ops/list.inc"
#undef IPU__OP

/* The variable that says which replica it is. */
#define IPU__REPLICA_INDEX "replica/index"

/* How a sum over replicas travels: whole to all of them; or with a row for each
 * (dimension 0), of which each needs only its own of the sum, or has only its
 * own to give and zeros elsewhere. All make the same sum. */
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

/* ---------------------------------------- what shape functions have in common
 */

/* IPU_ERR_SHAPE unless input i has that dtype and, if ndim >= 0, as many
 * dimensions. form says in words what is expected: "[n, h, w, c]". */
int ipu__expect(const struct ipu__call *call, int i, ipu_dtype dtype,
                int32_t ndim, const char *form);

/* The output is like input 0, which is of floats. */
int ipu__same_floats(const struct ipu__call *call, struct ipu__shape *output);

/* The same, of two inputs that are alike. */
int ipu__two_floats(const struct ipu__call *call, struct ipu__shape *output);

/* IPU_ERR_SHAPE unless inputs i and j have the same shape. */
int ipu__expect_same(const struct ipu__call *call, int i, int j);

/*
 * What builders see to, and files may have otherwise: the attribute axis is one
 * of input 0; attributes and inputs belong together.
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

/* The tensor's index; or that of a copy, if it is a variable: as it is at the
 * beginning of the run or iteration, whatever becomes of it. */
int32_t ipu__index_kept(ipu_graph *graph, ipu_tensor tensor);
/* Whether a cast of float32 to that dtype rounds stochastically; and the cast.
 */
bool ipu__casts_stochastically(const ipu_graph *graph, ipu_dtype dtype);
ipu_tensor ipu__round_stochastically(ipu_graph *graph, ipu_tensor x);

/* A tensor filled with one value. */
ipu_tensor ipu__constant(ipu_graph *graph, const struct ipu__shape *shape,
                         double value);

/* A scalar of the tensor's dtype. */
ipu_tensor ipu__scalar_like(ipu_graph *graph, ipu_tensor tensor, double value);

/* For builders that look at a tensor before they add the op's node: its index,
 * or what ipu__add would fail with, kept in the graph. */
int32_t ipu__index_of(ipu_graph *graph, const struct ipu__op *op,
                      ipu_tensor tensor);

/* Of the tensor's axes, that which axis names (negative: from the last); or as
 * ipu__index_of fails, or because there is none. */
int ipu__find_axis(ipu_graph *graph, const struct ipu__op *op,
                   ipu_tensor tensor, int32_t axis, int32_t *found);

#endif
