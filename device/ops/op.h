/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.h - what an op is: the door of this room. Each op is one file that ends
 * with its table row.
 */
#ifndef IPU_OPS_OP_H
#define IPU_OPS_OP_H

#include "graph/graph.h"
#include "ops/wide.h"
#include "target/work.h"

/* Where tensors begin, and scratch: a cache line, and the widest vector
 * register. */
enum { IPU__ALIGNMENT = 64 };

static inline size_t ipu__aligned(size_t bytes)
{
    return (bytes + IPU__ALIGNMENT - 1) / IPU__ALIGNMENT * IPU__ALIGNMENT;
}

/* A tensor as an op sees it. */
struct ipu__operand {
    const char *name;
    struct ipu__shape shape; /* of halves, as if they were float32 */
    ipu_dtype dtype;         /* as stored */
    void *data;              /* while running; 64-byte aligned */
};

struct ipu__call {
    const struct ipu__op *op;
    const struct ipu__attributes *attributes;
    struct ipu__operand inputs[IPU__MAX_INPUTS];
    struct ipu__operand output;
    void *scratch; /* while running: what the op's scratch function asked */
    int *callback_status; /* while running: what a function of the host that
                             fails the run returned */
    int64_t first; /* of an op by element: the number of the output's first
                      element here in the whole tensor */
};

/* Told that elements [first, first + count) of the output are complete: whole
 * rows of its last dimension. */
typedef void ipu__done(void *context, int64_t first, int64_t count);

/* Elements that an op only moves: of a shape, from one memory to another, in
 * each by strides (walk.h), in elements, from an offset on. */
struct ipu__moves {
    struct ipu__shape shape;
    int64_t to[IPU_MAX_DIMS], from[IPU_MAX_DIMS];
    int64_t to_offset, from_offset;
};

enum ipu__product_kind { IPU__NO_PRODUCT, IPU__MATMUL, IPU__CONVOLUTION };

struct ipu__op {
    const char *name;
    int ninputs;
    /* The input whose memory the output may take, if nobody else needs it
     * any more; -1: none. run must work with and without. */
    int in_place;
    /* That input is the output, unchanged: they share memory also while the
     * input is needed. */
    bool alias;
    /* It takes elements as they are stored, of all dtypes. */
    bool raw;
    /* What it makes is float32, of halves too: statistics of them. */
    bool makes_wide;
    /* The last input may be float32 where the others are halves: such
     * statistics, a learning rate. */
    bool last_wide;
    /* run may fail: it looks at the data. */
    bool checks;
    /* Running it does more than make its output, or the output depends on more
     * than inputs and attributes: it is not folded, merged, or dropped. */
    bool effects;
    /* Element i of the output depends on nothing but elements i of inputs as
     * large as it, broadcast ones, scalars, and i: run is also called for a
     * part of the elements, from number first on, as [n] or [rows, n]. It
     * takes no scratch and does not fail. */
    bool by_element;
    /* Rows of the output depend on the same rows of inputs as large as it, and
     * are best computed where these lie; on statistics of them, parameters. */
    bool by_row;
    /* Issue slots of arithmetic that the chip takes for two float32 elements:
     * an instruction each, functions of the hardware as costs.h has them. -1:
     * none, it only moves. 0: not said. */
    int slots;
    int half_slots; /* ... for four halves, if that is not as many; or 0 */
    /* Where it is a step by itself: issue slots of the library's loop, written
     * by hand, for a vector, with all that it does beside arithmetic; -1: as
     * many as slots; 0: there is none, the loop is compiled. */
    int loop_slots;
    /* How many loops of the library slots are of, one after the other; 0: one.
     */
    int loops;
    /* Why these are only an estimate; NULL: they are instructions. Static. */
    const char *estimate;
    /* It multiplies, with a plan (target/product.c): as which of the kinds to
     * which a program may give memory. */
    enum ipu__product_kind product;
    /* It means more where replicas run than its run function does: it must
     * neither be computed while compiling nor be left out. */
    bool collective;
    /* The output's shape; IPU_ERR_SHAPE says what does not fit. */
    int (*shape)(const struct ipu__call *call, struct ipu__shape *output);
    /* Bytes of scratch that run needs; NULL: none. */
    size_t (*scratch)(const struct ipu__call *call);
    /* Compute. Only data can be wrong by now: IPU_ERR_DATA. */
    int (*run)(const struct ipu__call *call);
    /* The same, telling of parts of the output as they are complete, so that
     * what works on them finds them in the cache; NULL: there are none. */
    int (*run_in_parts)(const struct ipu__call *call, ipu__done *done,
                        void *context);
    /* What it asks of the chip: kind, and what that needs. NULL: nothing, if
     * it is an alias; sums, if the output is smaller than an input; else one
     * instruction for each vector of the output. */
    void (*cost)(const struct ipu__call *call, struct ipu__work *work);
    /* Which elements of input i become which of the output; NULL: it does more
     * than move them. */
    void (*moves)(const struct ipu__call *call, int i,
                  struct ipu__moves *moves);
    /* From dy, the derivative of the loss with respect to the output, make
     * those with respect to the inputs that are needed (by tensor); the
     * others may stay invalid. The node is a copy, which stays where it is
     * while nodes are added. Failures stay in the graph. NULL: the op has no
     * derivative. */
    void (*gradient)(ipu_graph *graph, const struct ipu__node *node,
                     const bool *needed, ipu_tensor dy, ipu_tensor *dx);
};

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

/* What the op makes of the inputs' shapes: the output's; or why it cannot. */
int ipu__call_shape(struct ipu__call *call);

/* No nodes of a graph: the compiler's. A fused step's ops are its parts. */
extern const struct ipu__op ipu__fused_step;

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

/* A scalar of the tensor's dtype. */
ipu_tensor ipu__scalar_like(ipu_graph *graph, ipu_tensor tensor, double value);

/* IPU_ERR_SHAPE with both inputs' names and shapes, and why. */
int ipu__unfit(const struct ipu__call *call, int i, int j, const char *why);

/* For builders that look at a tensor before they add the op's node: its index,
 * or what ipu__add would fail with, kept in the graph. */
int32_t ipu__index_of(ipu_graph *graph, const struct ipu__op *op,
                      ipu_tensor tensor);

/* Of the tensor's axes, that which axis names (negative: from the last); or as
 * ipu__index_of fails, or because there is none. */
int ipu__find_axis(ipu_graph *graph, const struct ipu__op *op,
                   ipu_tensor tensor, int32_t axis, int32_t *found);

#endif
