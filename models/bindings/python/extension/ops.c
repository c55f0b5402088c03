/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c - the ops of ipu.h by one table. A row has a name for Python, the
 * parameters behind the graph, the function, and what it does. The form says
 * which types the function takes, so that it can be called:
 *
 *     t  a tensor      d  a double     i  an int32
 *     s  a shape: ndim, int64 *        a  axes: naxes, int32 *, keepdims
 */
#include <string.h>

#include "extension.h"

typedef void any_fn(void);

enum form { T, TT, TTT, TD, TDD, TI, TTI, TTD, TTII, TS, TA, NFORMS };

/* The arguments of each form, one letter each. */
static const char *const letters[NFORMS] = {
    [T] = "t",       [TT] = "tt", [TTT] = "ttt", [TD] = "td",
    [TDD] = "tdd",   [TI] = "ti", [TTI] = "tti", [TTD] = "ttd",
    [TTII] = "ttii", [TS] = "ts", [TA] = "tai"};

struct op {
    const char *name;
    enum form form;
    any_fn *function;
    const char *parameters, *text;
};

#define OP(form, name, parameters, text)                                       \
    {                                                                          \
#name, form, (any_fn *)ipu_##name, parameters, text                    \
    }

static const struct op ops[] = {
    OP(T, relu, "x", "max(x, 0)"),
    OP(T, tanh, "x", "Hyperbolic tangent."),
    OP(T, sigmoid, "x", "1 / (1 + exp(-x))"),
    OP(T, gelu, "x", "x times the normal distribution function of x."),
    OP(T, gelu_tanh, "x", "GELU's usual approximation by tanh."),
    OP(T, silu, "x", "x sigmoid(x)"),
    OP(T, exp, "x", "e to the power of x."),
    OP(T, log, "x", "Natural logarithm."),
    OP(T, sqrt, "x", "Square root."),
    OP(T, rsqrt, "x", "1 / sqrt(x)"),
    OP(T, abs, "x", "Absolute value."),
    OP(T, negate, "x", "-x"),
    OP(T, square, "x", "x x"),
    OP(T, floor, "x", "Rounds down."),
    OP(T, ceil, "x", "Rounds up."),
    OP(T, round, "x", "Rounds to the nearest integer, half to even."),
    OP(T, sign, "x", "-1, 0 or 1."),
    OP(T, sin, "x", "Sine."),
    OP(T, cos, "x", "Cosine."),
    OP(T, atan, "x", "Inverse tangent."),
    OP(T, log1p, "x", "log(1 + x)"),
    OP(T, expm1, "x", "exp(x) - 1"),
    OP(T, erf, "x", "Error function."),
    OP(T, softplus, "x", "log(1 + exp(x))"),
    OP(T, softmax, "x", "Softmax over the last dimension."),
    OP(T, log_softmax, "x", "Logarithm of softmax over the last dimension."),
    OP(T, l2_loss, "x", "Half the sum of squares, a scalar."),
    OP(TT, add, "a, b", "a + b, broadcast as in numpy."),
    OP(TT, subtract, "a, b", "a - b, broadcast as in numpy."),
    OP(TT, multiply, "a, b", "a times b, broadcast as in numpy."),
    OP(TT, divide, "a, b", "a / b, broadcast as in numpy."),
    OP(TT, maximum, "a, b", "The larger, broadcast as in numpy."),
    OP(TT, minimum, "a, b", "The smaller, broadcast as in numpy."),
    OP(TT, power, "a, b", "a to the power of b, broadcast as in numpy."),
    OP(TT, equal, "a, b", "int32, 1 where a == b, else 0."),
    OP(TT, not_equal, "a, b", "int32, 1 where a != b, else 0."),
    OP(TT, less, "a, b", "int32, 1 where a < b, else 0."),
    OP(TT, less_equal, "a, b", "int32, 1 where a <= b, else 0."),
    OP(TT, greater, "a, b", "int32, 1 where a > b, else 0."),
    OP(TT, greater_equal, "a, b", "int32, 1 where a >= b, else 0."),
    OP(TT, matmul, "x, w", "Matrix product of [m, k] and [k, n]."),
    OP(TT, bias_add, "x, bias", "x [..., n] + bias [n]"),
    OP(TT, embedding, "table, indices", "Rows of a table, by int32 indices."),
    OP(TT, take, "x, indices", "Elements of each row, by int32 indices."),
    OP(TT, softmax_cross_entropy, "logits, labels",
       "Losses [...] of logits [..., classes] and int32 labels [...]."),
    OP(TT, sigmoid_cross_entropy, "logits, targets",
       "Losses of each element; targets are in [0, 1]."),
    OP(TT, categorical_cross_entropy, "logits, targets",
       "Losses of each row; targets are probabilities of the classes."),
    OP(TT, squared_error, "x, target", "(x - target)^2 of each element."),
    OP(TT, absolute_error, "x, target", "|x - target| of each element."),
    OP(TT, hinge_loss, "x, target", "max(0, 1 - x target) of each element."),
    OP(TT, mean_squared_error, "x, target", "Mean of (x - target)^2."),
    OP(TT, mean_absolute_error, "x, target", "Mean of |x - target|."),
    OP(TTT, select, "condition, a, b",
       "a where the int32 condition is not 0, else b."),
    OP(TD, leaky_relu, "x, slope", "x above 0, below it slope x."),
    OP(TD, elu, "x, alpha", "x above 0, below it alpha (exp(x) - 1)."),
    OP(TD, reduce_sum, "x, scale", "Sum of all elements, times scale."),
    OP(TDD, clip, "x, low, high", "Limits each element to [low, high]."),
    OP(TDD, scale, "x, factor, offset", "x factor + offset"),
    OP(TI, argmax, "x, axis", "Index of the maximum along an axis, int32."),
    OP(TI, argmin, "x, axis", "Index of the minimum along an axis, int32."),
    OP(TI, softmax_axis, "x, axis", "Softmax over an axis."),
    OP(TI, log_softmax_axis, "x, axis", "Logarithm of softmax over an axis."),
    OP(TI, one_hot, "x, depth", "[...] int32 -> [..., depth] float32."),
    OP(TI, cast, "x, dtype", "Converts x to another dtype."),
    OP(TI, expand_dims, "x, axis", "Adds an axis of one element."),
    OP(TI, squeeze, "x, axis", "Removes an axis of one element."),
    OP(TI, max_pool2d, "x, size",
       "Maximum of windows size x size of [n, h, w, c]."),
    OP(TI, avg_pool2d, "x, size", "Mean of windows size x size."),
    OP(TI, upsample2d, "x, factor", "Each pixel becomes factor x factor."),
    OP(TTI, gather, "x, indices, axis",
       "Elements along an axis, by int32 indices."),
    OP(TTD, huber_error, "x, target, delta", "Huber's error of each element."),
    OP(TTD, huber_loss, "x, target, delta", "Mean of Huber's errors."),
    OP(TTD, sparse_cross_entropy, "logits, labels, smoothing",
       "softmax_cross_entropy with smoothed labels."),
    OP(TTII, batch_matmul, "a, b, transpose_a, transpose_b",
       "Products of the last two dimensions."),
    OP(TS, reshape, "x, shape", "The same elements; one extent may be -1."),
    OP(TS, broadcast, "x, shape", "Repeats x as numpy would."),
    OP(TA, sum, "x, axes, keepdims", "Sum over axes."),
    OP(TA, mean, "x, axes, keepdims", "Mean over axes."),
    OP(TA, max, "x, axes, keepdims", "Maximum over axes."),
    OP(TA, min, "x, axes, keepdims", "Minimum over axes."),
    OP(TA, prod, "x, axes, keepdims", "Product over axes."),
};

enum { NOPS = sizeof ops / sizeof *ops };

PyObject *list_ops(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);

    (void)module;
    (void)unused;
    for (int i = 0; list && i < NOPS; i++) {
        PyObject *row =
            Py_BuildValue("sss", ops[i].name, ops[i].parameters, ops[i].text);

        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* The arguments of a call, by type, in their order. */
struct arguments {
    ipu_tensor t[3];
    double d[2];
    int32_t i[2];
    int32_t n; /* extents, or axes */
    int64_t extents[IPU_MAX_DIMS];
    int32_t axes[IPU_MAX_DIMS];
};

static bool get_arguments(const char *form, PyObject *const *args,
                          struct arguments *a)
{
    int nt = 0, nd = 0, ni = 0;
    bool good = true;

    for (; good && *form; form++, args++)
        switch (*form) {
        case 't': good = get_int32(*args, "the tensor", &a->t[nt++].id); break;
        case 'd': good = get_double(*args, "the number", &a->d[nd++]); break;
        case 'i': good = get_int32(*args, "the number", &a->i[ni++]); break;
        default:
            good = get_list(*args, "the list", IPU_MAX_DIMS, a->extents, &a->n);
        }
    for (int32_t i = 0; good && i < a->n; i++)
        a->axes[i] = (int32_t)a->extents[i];
    return good;
}

/* Calls a function by its type. */
#define CALL(...) ((ipu_tensor(*)(ipu_graph *, __VA_ARGS__))op->function)
#define X ipu_tensor
static ipu_tensor call(const struct op *op, ipu_graph *g, struct arguments *a)
{
    const ipu_tensor *t = a->t;

    switch (op->form) {
    case T: return CALL(X)(g, t[0]);
    case TT: return CALL(X, X)(g, t[0], t[1]);
    case TTT: return CALL(X, X, X)(g, t[0], t[1], t[2]);
    case TD: return CALL(X, double)(g, t[0], a->d[0]);
    case TDD: return CALL(X, double, double)(g, t[0], a->d[0], a->d[1]);
    case TI: return CALL(X, int32_t)(g, t[0], a->i[0]);
    case TTI: return CALL(X, X, int32_t)(g, t[0], t[1], a->i[0]);
    case TTD: return CALL(X, X, double)(g, t[0], t[1], a->d[0]);
    case TTII:
        return CALL(X, X, int32_t, int32_t)(g, t[0], t[1], a->i[0], a->i[1]);
    case TS:
        return CALL(X, int32_t, const int64_t *)(g, t[0], a->n, a->extents);
    default:
        return CALL(X, int32_t, const int32_t *, int32_t)(g, t[0], a->n,
                                                          a->axes, a->i[0]);
    }
}

PyObject *graph_op(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    ipu_graph *graph = graph_get((struct graph *)self);
    struct arguments a = {.n = 0};
    const struct op *op;
    ipu_tensor made;
    int64_t number;

    if (!graph)
        return NULL;
    if (nargs < 1 || !get_int(args[0], "the op", 0, NOPS - 1, &number))
        return NULL;
    op = &ops[number];
    if (!has_arguments(op->name, nargs - 1,
                       (Py_ssize_t)strlen(letters[op->form])) ||
        !get_arguments(letters[op->form], args + 1, &a))
        return NULL;
    made = call(op, graph, &a);
    return made.id < 0 ? raise_ipu(IPU_ERR_SHAPE) : PyLong_FromLong(made.id);
}
