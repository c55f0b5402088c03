/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.h - how a node becomes ops of the device: the values that nodes pass to
 * each other, and the call of an operator.
 *
 * A value is known when the model is loaded, or it is a tensor of the graph, or
 * both: elements that are known become a constant of the graph when an op needs
 * them there. So chains of Shape, Gather, Concat and Reshape are computed while
 * the graph is built, and leave nothing in it.
 *
 * Images are NCHW in ONNX and NHWC on the device. A value has its tensor in
 * either order, or in both (tensor, last): ops by element take the order that
 * there is, and others ask for the one that they need. So between convolutions
 * nothing is transposed.
 */
#ifndef IPU_ONNX_BUILD_H
#define IPU_ONNX_BUILD_H

#include <string.h>

#include "base/error.h"
#include "onnx/elements.h"

struct ipu__onnx_value {
    const char *name;
    int32_t type; /* IPU_ONNX_* */
    int32_t ndim;
    int64_t extents[IPU_MAX_DIMS];
    const float *floats;   /* elements that are known; or NULL */
    const int64_t *wholes; /* the same, of integers and bool */
    ipu_tensor tensor;     /* id < 0: not made yet */
    ipu_tensor last;       /* with the channels last; id < 0: not made yet */
    bool is_turned;        /* it is turned with the last two dimensions
                              exchanged, as products take it */
    ipu_tensor turned;
    const struct ipu__onnx_tensor *initializer; /* not read yet; NULL: none */
    /* Says where the elements of an initialiser are. The host may compute with
     * free ones; held ones are a constant of the graph, so that derivatives
     * reach it; trained ones are a variable. */
    enum { IPU__ONNX_FREE, IPU__ONNX_HELD, IPU__ONNX_TRAINED } use;
    bool assigned; /* of a variable: by a node, in each run */
    int32_t input; /* its number; -1: none */
    enum { IPU__ONNX_ABSENT, IPU__ONNX_MADE, IPU__ONNX_REFUSED } state;
};

struct ipu__onnx_builder;
struct ipu__onnx_operator;

/* A node that becomes ops. */
struct ipu__onnx_call {
    struct ipu__onnx_builder *builder;
    ipu_graph *graph;
    const struct ipu__onnx_node *node;
    const struct ipu__onnx_operator *op;
    int version; /* of the operators that the model imports */
    int ninputs, noutputs;
    struct ipu__onnx_value **inputs; /* NULL: left out */
    struct ipu__onnx_value **outputs;
    bool wrong_attribute; /* one has another type than it should */
};

/* A row of the table of operators. */
struct ipu__onnx_operator {
    const char *name;
    int first;              /* the first version that means what build does */
    const char *attributes; /* those that build knows, with spaces between */
    int least, most;        /* inputs */
    int (*build)(struct ipu__onnx_call *call);
    const void *how;    /* what differs between operators of one function */
    const char *limits; /* what is refused; NULL: nothing */
};

/* The set of operators for training. */
#define IPU__ONNX_TRAINING "ai.onnx.preview.training"

enum { IPU__ONNX_ANY_NUMBER = 1 << 20 };

/* Notes that the node cannot be built, and why. */
__attribute__((format(printf, 2, 3))) void onnx__note(
    struct ipu__onnx_call *call, const char *format, ...);

/* Notes it and is a negative status, for build to return; the nodes that follow
 * are still looked at. It is a macro so that a checker sees the sign. */
#define onnx__refuse(call, ...) (onnx__note(call, __VA_ARGS__), IPU_ERR_SHAPE)

/* --------------------------------------------------------------- attributes */

/* Return an attribute's value, or the other if the node does not have it. */
int64_t onnx__int(struct ipu__onnx_call *call, const char *name, int64_t other);
double onnx__float(struct ipu__onnx_call *call, const char *name, double other);
bool onnx__has_attribute(const struct ipu__onnx_call *call, const char *name);
/* Returns NULL if the node does not have it. */
const struct ipu__onnx_ints *onnx__ints(struct ipu__onnx_call *call,
                                        const char *name);
const struct ipu__onnx_floats *onnx__floats(struct ipu__onnx_call *call,
                                            const char *name);
const struct ipu__onnx_texts *onnx__texts(struct ipu__onnx_call *call,
                                          const char *name);
const struct ipu__onnx_graph *onnx__attribute_graph(struct ipu__onnx_call *call,
                                                    const char *name);
const struct ipu__onnx_tensor *onnx__attribute_tensor(
    struct ipu__onnx_call *call, const char *name);
/* Returns whether a text has this value, or is missing and has it by default.
 */
bool onnx__text_is(struct ipu__onnx_call *call, const char *name,
                   const char *value, const char *other);

/* Copies a text with its final 0. Returns false if it is missing, too long, or
 * has a 0. */
bool onnx__text(struct ipu__onnx_call *call, const char *name, char *text,
                size_t bytes);

/* Sets an axis, which may be negative, of ndim. */
int onnx__axis(struct ipu__onnx_call *call, int64_t axis, int32_t ndim,
               int32_t *found);

/* ------------------------------------------------------------------- inputs */

/* Returns input i, or NULL if it is left out. */
static inline struct ipu__onnx_value *onnx__in(
    const struct ipu__onnx_call *call, int i)
{
    return i < call->ninputs ? call->inputs[i] : NULL;
}

/* Returns whether the elements of a value are known: of an initialiser, after
 * it was read. */
bool onnx__known(struct ipu__onnx_call *call, struct ipu__onnx_value *value);
bool onnx__all_known(struct ipu__onnx_call *call);

/* Takes the elements that the program has offered for a value that is an input.
 * Returns whether there are some. */
bool onnx__bind(struct ipu__onnx_call *call, struct ipu__onnx_value *value);

/* Makes the elements of a value known, if it is an input that was offered or
 * made of such inputs alone, by nodes whose rows compute on the host. Returns
 * whether they are. The second is for what the device cannot have as data: any
 * nodes are computed. */
bool onnx__fold(struct ipu__onnx_call *call, struct ipu__onnx_value *value);
bool onnx__fold_all(struct ipu__onnx_call *call, struct ipu__onnx_value *value);

/* Makes sure that the elements of input i are known: those that were offered
 * are taken. Refuses the node otherwise. */
int onnx__need(struct ipu__onnx_call *call, int i, const char *what);

/* Sets numbers to the elements of input i, of integers; *count 0: left out. */
int onnx__numbers(struct ipu__onnx_call *call, int i, const char *what,
                  const int64_t **numbers, int64_t *count);
/* Sets a number to the only element of input i, if it is not left out. */
int onnx__number(struct ipu__onnx_call *call, int i, const char *what,
                 double *number);

/* Return the value as a tensor of the graph, in the order of ONNX, or with its
 * channels last. */
ipu_tensor onnx__tensor(struct ipu__onnx_call *call,
                        struct ipu__onnx_value *value);
ipu_tensor onnx__last(struct ipu__onnx_call *call,
                      struct ipu__onnx_value *value);

/* Does an op by element have its operand with the channels last? */
static inline bool onnx__is_last(const struct ipu__onnx_value *value)
{
    return value->last.id >= 0 && value->tensor.id < 0;
}

static inline int64_t onnx__size(const struct ipu__onnx_value *value)
{
    return ipu__onnx_count(value->ndim, value->extents);
}

/* Returns whether two values have the same type and shape. */
static inline bool onnx__same_shape(const struct ipu__onnx_value *a,
                                    const struct ipu__onnx_value *b)
{
    return a->type == b->type && a->ndim == b->ndim &&
           !memcmp(a->extents, b->extents,
                   (size_t)a->ndim * sizeof *a->extents);
}

static inline bool onnx__is_whole(int32_t type)
{
    return ipu__onnx_kind(type)->whole;
}

/* ------------------------------------------------------------------ outputs */

/* Return whether the node has output i. */
static inline bool onnx__wants(const struct ipu__onnx_call *call, int i)
{
    return i < call->noutputs && call->outputs[i];
}

/* Set output i to a tensor, in the order of ONNX or with the channels last. */
int onnx__give(struct ipu__onnx_call *call, int i, int32_t type,
               ipu_tensor tensor);
int onnx__give_last(struct ipu__onnx_call *call, int i, int32_t type,
                    ipu_tensor tensor);

/* Sets a value to what another one is, but for the name. */
void onnx__copy_value(struct ipu__onnx_value *to,
                      const struct ipu__onnx_value *from);

/* Sets output i to what input value is. */
int onnx__give_same(struct ipu__onnx_call *call, int i,
                    struct ipu__onnx_value *value);

/* Makes output i of known elements: allocates them, for the caller to fill.
 * Returns false, without a failure, if they would be too many: an op of the
 * graph can make them instead. */
bool onnx__room(struct ipu__onnx_call *call, int i, int32_t type, int32_t ndim,
                const int64_t *extents, float **floats, int64_t **wholes);

/* Sets output i to elements of x that are known, copied: element (i0, i1, ...)
 * is number first + i0 strides[0] + ... of x. Returns whether it did; it
 * does not if they are unknown, or too many. */
bool onnx__view(struct ipu__onnx_call *call, int i, struct ipu__onnx_value *x,
                int32_t ndim, const int64_t *extents, const int64_t *strides,
                int64_t first);

/* Sets the strides of a row-major tensor. */
void onnx__strides(int32_t ndim, const int64_t *extents, int64_t *strides);

/* Makes a constant tensor of the graph from floats or whole numbers. */
ipu_tensor onnx__constant(struct ipu__onnx_call *call, int32_t type,
                          int32_t ndim, const int64_t *extents,
                          const float *floats, const int64_t *wholes);

/* Returns a scalar of the dtype that the type has on the device. */
ipu_tensor onnx__scalar(struct ipu__onnx_call *call, int32_t type,
                        double value);

/* Checks a shape that a node computes. */
int onnx__check_shape(struct ipu__onnx_call *call, int64_t ndim,
                      const int64_t *extents);

/* Broadcasts two shapes as numpy does. Returns false if they do not fit. */
bool onnx__broadcast(int32_t *ndim, int64_t *extents, int32_t other_ndim,
                     const int64_t *other);

/* ---------------------------------------------------------------- operators */

/* Returns the row of an operator of ONNX's own set, or of that for training;
 * NULL: there is none. */
const struct ipu__onnx_operator *ipu__onnx_find(const char *name,
                                                bool training);
/* Returns why an operator is refused; NULL: it is not in the list. */
const char *ipu__onnx_reason(const char *name);

#endif
