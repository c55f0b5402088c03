/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - the derivative of a loop in the making, for loop_gradients.c,
 * loop_adjoints.c, loop_kept.c and loop_backward.c.
 */
#ifndef IPU_TRAINING_LOOP_H
#define IPU_TRAINING_LOOP_H

#include "graph/graph.h"

/* A derivative that the backward loop carries: with respect to a carried value
 * of the forward loop, or the sum of those with respect to an import. Its
 * memory in the body is a variable, as long as that is differentiated. */
struct ipu__adjoint {
    int32_t number; /* of the carried value, or of the import */
    bool is_import;
    int32_t seed;      /* tensor of the body: what it is before an iteration */
    ipu_tensor result; /* of the body: what it is then; invalid: zero */
};

/* A tensor of the body that the forward loop keeps for each iteration. */
struct ipu__kept {
    int32_t tensor; /* of the body */
    int32_t stack;  /* of the graph: [iterations, ...] after the loop */
};

struct ipu__loop_back {
    ipu_graph *graph, *body; /* borrowed: around the loop, and of the loop */
    int32_t loop;            /* number of the forward loop in the graph */
    bool *needed;            /* owned, [ntensors]: derivatives are wanted */
    bool *flows;             /* owned, [ntensors]: the loss depends on it */
    int32_t ntensors;        /* of the body before it is differentiated */
    int32_t nforward;        /* nodes of the body that are no derivatives */
    int32_t nnodes;          /* nodes, when the derivatives are there */
    struct ipu__adjoint *adjoints; /* owned */
    int32_t nadjoints;
    bool *read;      /* owned, [tensors]: the derivatives need it */
    bool *available; /* owned, [tensors]: it is the same in all iterations */
    struct ipu__kept *kept; /* owned */
    int32_t nkept, kept_capacity;
};

/* Returns the tensor that a variable of a body becomes after an iteration: the
 * variable itself, if it stays. */
int32_t ipu__next_of(const ipu_graph *body, int32_t variable);

/* Marks what depends on tensors needed around a loop, in its body: inner, [its
 * tensors] (dependents.c). */
int ipu__mark_body(const struct ipu__loop *loop, const bool *needed,
                   bool *inner);

/* Fills needed, flows and adjoints. needed and derivatives: [tensors of the
 * graph]. */
int ipu__find_adjoints(struct ipu__loop_back *back, const bool *needed,
                       const ipu_tensor *derivatives);

/* Returns whether a tensor of the body is kept by the forward loop, rather than
 * seen or made again by the backward loop. */
bool ipu__is_kept(const struct ipu__loop_back *back, int32_t tensor);

/* Finds what the derivatives read and what of that is kept, and has the forward
 * loop keep it. */
int ipu__keep(struct ipu__loop_back *back);

/* Adds the backward loop to the graph. loop: the loop, with the initial values
 * of its counter and of the adjoints; it is freed on failure. The derivatives
 * are moved out of the forward loop's body. */
int ipu__add_backward(struct ipu__loop_back *back, struct ipu__loop *loop);

#endif
