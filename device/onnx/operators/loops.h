/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.h - the loops of Loop and Scan, for loops.c, scans.c, loop_build.c,
 * loop_unroll.c and loop_device.c.
 */
#ifndef IPU_ONNX_OPERATORS_LOOPS_H
#define IPU_ONNX_OPERATORS_LOOPS_H

#include "onnx/operators/rows.h"
#include "onnx/scope.h"

/* A value of which each iteration takes, or makes, a row of axis 0. */
struct onnx__rows {
    struct ipu__onnx_value value;
    bool backward; /* the first iteration has the last row */
};

/*
 * A loop. Its body takes the carried values and rows of others, and makes the
 * next carried values and rows of others. numbered: before these it takes the
 * number of the iteration and a condition, which holds, and makes the condition
 * for the next.
 */
struct onnx__loop {
    struct ipu__onnx_call *call;
    const struct ipu__onnx_graph *body;
    bool numbered;
    int64_t trips;     /* iterations at most; -1: without limit */
    ipu_tensor limit;  /* the same, int32 scalar, if it is data; or invalid */
    ipu_tensor begins; /* the condition for the first iteration, int32 scalar,
                          if it is data; or invalid: it holds */
    int ncarried, ntaken, nmade;
    /* In the file's memory: the carried values before and then after the loop,
     * and the others; those that are made have no value before. */
    struct ipu__onnx_value *carried;
    struct onnx__rows *taken, *made;
    struct ipu__onnx_value *inputs, *outputs; /* of the body, in use */
    struct ipu__onnx_builder scope; /* of the body, while it is built */
    bool ends;                      /* whether it goes on depends on data */
};

/* A condition that holds. */
extern const int64_t onnx__loop_holds;

/* Returns zeroed memory of the file's for count and one more. */
void *onnx__loop_keep(struct onnx__loop *loop, size_t count, size_t each);

/* Returns the shape of a row of a value, without elements. */
struct ipu__onnx_value onnx__loop_row(const struct ipu__onnx_value *all);

/* Makes the arrays of a loop, whose numbers are set. */
int onnx__loop_new(struct onnx__loop *loop);

/* Runs the loop: sets the carried values and those that are made, or refuses
 * the node. */
int onnx__loop_run(struct onnx__loop *loop);

/* Returns a value as a loop takes it: a copy, with what ops make of it. */
struct ipu__onnx_value onnx__loop_value(struct ipu__onnx_call *call,
                                        struct ipu__onnx_value *value);

/* Gives output i of the node what a loop has made. */
int onnx__loop_give(struct ipu__onnx_call *call, int i,
                    struct ipu__onnx_value *value);

/* Builds the body into a graph, in the scope, which is open: takes inputs and
 * sets outputs. */
int onnx__loop_body(struct onnx__loop *loop, ipu_graph *g);

/* Sets whether the condition that the body made holds, or depends on data. */
int onnx__loop_condition(struct onnx__loop *loop, bool *goes_on);

/* Builds all iterations one after the other, into the graph or, to see whether
 * that can be done, into scratch; and returns how many may be built so. */
int onnx__loop_unroll(struct onnx__loop *loop, ipu_graph *scratch);
int64_t onnx__loop_most(const struct onnx__loop *loop);

/* Has the device iterate: as often as is known or, if ends, while the condition
 * and the limit hold. The outputs of the body have the shapes that it makes. */
int onnx__loop_iterate(struct onnx__loop *loop);

/* The number of values of the body before the carried ones. */
static inline int onnx__loop_first_input(const struct onnx__loop *loop)
{
    return loop->numbered ? 2 : 0;
}
static inline int onnx__loop_first_output(const struct onnx__loop *loop)
{
    return loop->numbered ? 1 : 0;
}

/* Returns the known value of a scalar integer or bool. number is borrowed. */
static inline struct ipu__onnx_value onnx__loop_number(int32_t type,
                                                       const int64_t *number)
{
    return (struct ipu__onnx_value){.name = "",
                                    .type = type,
                                    .wholes = number,
                                    .tensor = {-1},
                                    .last = {-1},
                                    .input = -1,
                                    .state = IPU__ONNX_MADE};
}

#endif
