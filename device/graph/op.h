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
    struct ipu__shape shape; /* float32 in place of a half */
    ipu_dtype dtype;         /* as stored */
    void *data;              /* while running; 64-byte aligned */
};

struct ipu__call {
    const struct ipu__op *op;
    const struct ipu__attributes *attributes;
    struct ipu__operand inputs[IPU__MAX_INPUTS];
    struct ipu__operand output;
    void *scratch; /* scratch memory while running, of the size that the op's
                      scratch function returned */
    int *callback_status; /* while running: the status of a function of the host
                             that fails the run */
    int64_t first; /* for an op by element: the number of the output's first
                      element in the whole tensor */
};

/* Called when elements [first, first + count) of the output are complete: whole
 * rows of its last dimension. */
typedef void ipu__done(void *context, int64_t first, int64_t count);

/* Elements that an op only moves: of a shape, from one memory to another, in
 * each by strides (ops/walk.h), in elements, from an offset on. */
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
    /* The output is that input, unchanged: they share memory even while the
     * input is needed. */
    bool alias;
    /* The op takes elements of all dtypes, as they are stored. */
    bool raw;
    /* The output is float32 even if the inputs are halves: statistics of
     * them. */
    bool makes_wide;
    /* The last input may be float32 where the others are halves: such
     * statistics, a learning rate. */
    bool last_wide;
    /* run may fail, because it looks at the data. */
    bool checks;
    /* The op changes input 0 in place: the output is its new state. */
    bool writes;
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
     * an instruction each, functions of the hardware as ops/costs.h has them.
     * -1: none, it only moves. 0: not said. */
    int slots;
    int half_slots; /* the same for four halves, if it differs; or 0 */
    /* Issue slots of the library's hand-written loop, for a vector and with all
     * that it does beside arithmetic, where the op is a step by itself. -1: as
     * many as slots. 0: there is none, and the loop is compiled. */
    int loop_slots;
    /* Number of the library's loops that slots adds up, one after the other; 0:
     * one. */
    int loops;
    /* The reason why these are only an estimate; static. NULL: they are
     * instructions. */
    const char *estimate;
    /* The op multiplies, with a plan (target/product.c); a program may give
     * memory to products of this kind. */
    enum ipu__product_kind product;
    /* Replicas give the op a meaning beyond its run function: it must neither
     * be computed while compiling nor be left out. */
    bool collective;
    /* The output's shape; IPU_ERR_SHAPE says what does not fit. */
    int (*shape)(const struct ipu__call *call, struct ipu__shape *output);
    /* Bytes of scratch that run needs; NULL: none. */
    size_t (*scratch)(const struct ipu__call *call);
    /* Compute. Only data can be wrong by now: IPU_ERR_DATA. */
    int (*run)(const struct ipu__call *call);
    /* Computes the same, and calls done for parts of the output as they are
     * complete, so that the steps that follow find them in the cache; NULL:
     * there are no parts. */
    int (*run_in_parts)(const struct ipu__call *call, ipu__done *done,
                        void *context);
    /* Sets the work that the op asks of the chip. NULL: none, if it is an
     * alias; sums, if the output is smaller than an input; else one instruction
     * for each vector of the output. */
    void (*cost)(const struct ipu__call *call, struct ipu__work *work);
    /* Sets which elements of input i become which of the output. NULL: the op
     * does more than move them. */
    void (*moves)(const struct ipu__call *call, int i,
                  struct ipu__moves *moves);
    /* Builds the derivatives of the loss with respect to the inputs that are
     * needed (by tensor) from dy, the derivative with respect to the output;
     * the others may stay invalid. The node is a copy, which stays where it is
     * while nodes are added. Failures stay in the graph. NULL: the op has no
     * derivative. */
    void (*gradient)(ipu_graph *graph, const struct ipu__node *node,
                     const bool *needed, ipu_tensor dy, ipu_tensor *dx);
};

/* Sets the shape that the op makes of its inputs' shapes; or fails with the
 * reason why it cannot. */
int ipu__call_shape(struct ipu__call *call);

/*
 * Shows halves to the op as float32: shapes get that dtype, and each operand's
 * dtype stays what it is stored as. Returns IPU_ERR_SHAPE if floats of the call
 * differ in dtype. Raw ops are left alone.
 */
int ipu__show_wide(struct ipu__call *call);

/* Gives an output, whose shape the op has set, the dtype of the inputs if they
 * are halves. */
void ipu__store_narrow(const struct ipu__call *call, struct ipu__shape *output);

/* IPU_ERR_SHAPE with the names and shapes of inputs i and j, and why. */
int ipu__unfit(const struct ipu__call *call, int i, int j, const char *why);

/* Prints the operand's shape, with the dtype that the program gave it, into
 * text, [IPU__SHAPE_TEXT]; returns text. */
const char *ipu__operand_print(const struct ipu__operand *operand, char *text);

#endif
