/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.h - struct ipu__op, the table row of an op, and struct ipu__call, one use
 * of it: the operands with their shapes and, while it runs, their memory.
 *
 * The graph knows ops by these rows only. The ops themselves are the room ops/,
 * which is built on the graph.
 */
#ifndef IPU_GRAPH_OP_H
#define IPU_GRAPH_OP_H

#include "graph/graph.h"
#include "target/work.h"

/* Tensors and scratch memory begin at multiples of this: a cache line, and the
 * widest vector register. */
enum { IPU__ALIGNMENT = 64 };

static inline size_t ipu__aligned(size_t bytes)
{
    return (bytes + IPU__ALIGNMENT - 1) / IPU__ALIGNMENT * IPU__ALIGNMENT;
}

/* A tensor as an op sees it. */
struct ipu__operand {
    const char *name;
    struct ipu__shape shape; /* the op sees float32 in place of a half */
    ipu_dtype dtype;         /* as it is stored */
    void *data;              /* while running; 64-byte aligned */
};

/* A form of an input that an op has made, and finds again in later runs. */
struct ipu__packed {
    float *data; /* owned, by malloc; NULL: nothing was made yet */
    size_t bytes;
    const void *form; /* says which form it is: an object of the op's */
};

struct ipu__call {
    const struct ipu__op *op;
    const struct ipu__attributes *attributes;
    struct ipu__operand inputs[IPU__MAX_INPUTS];
    struct ipu__operand output;
    void *scratch; /* scratch memory while running, of the size that the op's
                      scratch function returned */
    struct ipu__packed *packed; /* while running: where a product may keep its
                                   second input, which no run changes, in
                                   another form; NULL: nowhere */
    const double *sums; /* while running: sums that the op would make itself, of
                           which other steps need the same (ops/norms/norm.h);
                           NULL: it has to make them */
    int *callback_status; /* while running: the status of a function of the host
                             that fails the run */
    int64_t first; /* for an op by element: the number of the output's first
                      element in the whole tensor */
};

/* Called when elements [first, first + count) of the output are complete: whole
 * rows of its last dimension. */
typedef void ipu__done(void *context, int64_t first, int64_t count);

/* Elements that an op only moves. They have a shape, and lie in both memories
 * with strides (ops/walk.h), counted in elements from an offset. */
struct ipu__moves {
    struct ipu__shape shape;
    int64_t to[IPU_MAX_DIMS], from[IPU_MAX_DIMS];
    int64_t to_offset, from_offset;
};

/* Functions that the chip has instructions for, or its library; ops/costs.c has
 * the slots that they take. */
enum ipu__function {
    IPU__NO_FUNCTION,
    IPU__EXP,
    IPU__LOG,
    IPU__TANH,
    IPU__SIGMOID,
    IPU__DIVIDE,
    IPU__SQRT,
    IPU__RSQRT,
    IPU__ERF,
    IPU__EXPM1,
    IPU__LOG1P,
    IPU__SIN, /* and cos */
    IPU__POWER
};

enum ipu__product_kind { IPU__NO_PRODUCT, IPU__MATMUL, IPU__CONVOLUTION };

/* Gradient functions find this id in place of the derivatives that they are to
 * build, and -1 in place of others. */
enum { IPU__WANTED = -2 };

static inline bool ipu__wanted(ipu_tensor dx)
{
    return dx.id == IPU__WANTED;
}

/* Returns input i of a node that is differentiated. */
static inline ipu_tensor ipu__input(const ipu_graph *graph,
                                    const struct ipu__node *node, int i)
{
    return ipu__handle(graph, node->inputs[i]);
}

/* The part of an op in a collective on the device's network: a collective is
 * two ops, one at which a tensor departs and one at which the result arrives
 * (ops/transfers/network.h). */
enum ipu__network_part { IPU__NO_NETWORK, IPU__DEPARTS, IPU__ARRIVES };

enum ipu__input_place { IPU__NOWHERE, IPU__FIRST, IPU__SECOND };

struct ipu__pair_loops;

struct ipu__op {
    const char *name;
    int ninputs;
    /* The input whose memory the output may use if nothing else needs it any
     * more. run must work both ways. */
    enum ipu__input_place in_place;
    /* The output is that input, unchanged: the two share memory even while the
     * input is still needed. */
    bool alias;
    /* The op takes elements of all dtypes, as they are stored. */
    bool raw;
    /* The output is float32 even if the inputs are halves, as for statistics.
     */
    bool makes_wide;
    /* The last input may be float32 where the others are halves, as for
     * statistics or a learning rate. */
    bool last_wide;
    /* run may fail, because it looks at the data. */
    bool checks;
    /* The op changes input 0 in place: the output is its new state. */
    bool writes;
    /* Running it does more than make its output, or the output depends on more
     * than inputs and attributes: it is not folded, merged, or dropped. */
    bool effects;
    /* Element i of the output depends only on i, on elements i of inputs of the
     * same size, and on broadcast inputs and scalars. run is also called for a
     * range of elements that begins with number first, as [n] or [rows, n]. The
     * op takes no scratch and does not fail. */
    bool by_element;
    /* Rows of the output depend on the same rows of inputs of the same size, on
     * statistics of them, and on parameters. It is best to compute them where
     * these rows are stored. */
    bool by_row;
    /* The functions of the chip that each element takes. How long they take is
     * an estimate. */
    enum ipu__function functions[2];
    /* Issue slots of arithmetic that the chip takes for two float32 elements,
     * besides the functions. Each instruction takes one. -1: the op only moves
     * elements. 0: unknown, unless there are functions. */
    int slots;
    int half_slots; /* slots for four halves, if different; or 0 */
    /* Issue slots of the library's hand-written loop for one vector, with
     * everything besides arithmetic, where the op is a step by itself. -1: the
     * same as slots. 0: there is no such loop, and the compiler makes it. */
    int loop_slots;
    /* Number of consecutive loops of the library that slots adds up; 0: one. */
    int loops;
    /* The reason why these are only an estimate; static. NULL: they are counted
     * instructions. */
    const char *estimate;
    /* The op multiplies, with a plan (target/product.c); a program may give
     * memory to products of this kind. */
    enum ipu__product_kind product;
    /* Replicas give the op a meaning beyond its run function: it must neither
     * be computed while compiling nor be left out. */
    bool collective;
    /* Other devices wait for the op: it runs although nothing may need its
     * output, in the same order on all of them. */
    enum ipu__network_part network;
    /* Computes the output's shape. Returns IPU_ERR_SHAPE with the reason if the
     * inputs do not fit. */
    int (*shape)(const struct ipu__call *call, struct ipu__shape *output);
    /* Returns the bytes of scratch that run needs; NULL: none. */
    size_t (*scratch)(const struct ipu__call *call);
    /* Computes the output. Everything but the data has been checked; run
     * returns IPU_ERR_DATA if the data are wrong. */
    int (*run)(const struct ipu__call *call);
    /* The loops of an op of two elements, which ipu__pair_run runs
     * (ops/elementwise/pair.h). NULL: the op does not take that dtype. */
    const struct ipu__pair_loops *floats, *ints;
    /* Computes the same, and calls done for parts of the output as they are
     * complete, so that the steps that follow find them in the cache; NULL:
     * there are no parts. */
    int (*run_in_parts)(const struct ipu__call *call, ipu__done *done,
                        void *context);
    /* Sets the work of the op on the chip. NULL: none, if it is an alias; sums,
     * if the output is smaller than an input; else one instruction for each
     * vector of the output. */
    void (*cost)(const struct ipu__call *call, struct ipu__work *work);
    /* Sets which elements of input i become which of the output. NULL: the op
     * does more than move them. */
    void (*moves)(const struct ipu__call *call, int i,
                  struct ipu__moves *moves);
    /* Builds the derivatives of the loss with respect to the inputs that are
     * wanted (ipu__wanted) from dy, the derivative with respect to the output;
     * the others may stay as they are. The node is a copy, which stays where it
     * is while nodes are added. Failures stay in the graph. NULL: the op has no
     * derivative. */
    void (*gradient)(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx);
    /* The op by which one of the shared gradient functions builds the
     * derivative (ops/op.h, ops/windows/); else NULL. */
    const struct ipu__op *slope;
};

/* Returns the number of the input in whose place the op may work; -1: none. */
static inline int ipu__in_place(const struct ipu__op *op)
{
    return (int)op->in_place - 1;
}

/* Sets the shape that the op makes of its inputs' shapes; or fails with the
 * reason why it cannot. */
int ipu__call_shape(struct ipu__call *call);

/*
 * Shows halves to the op as float32: shapes get that dtype, while each
 * operand's dtype stays as stored. Returns IPU_ERR_SHAPE if floats of the call
 * differ in dtype. Raw ops are left alone.
 */
int ipu__show_wide(struct ipu__call *call);

/* Returns IPU_ERR_SHAPE with the names and shapes of inputs i and j, and the
 * reason. */
int ipu__unfit(const struct ipu__call *call, int i, int j, const char *why);

/* Prints the operand's shape, with the dtype that the program gave it. */
struct ipu__shape_text ipu__operand_print(const struct ipu__operand *operand);

#endif
