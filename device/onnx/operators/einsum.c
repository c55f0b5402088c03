/* SPDX-License-Identifier: Apache-2.0 */
/*
 * einsum.c - sums of products of tensors whose dimensions have letters.
 *
 * Two terms become one at a time, from the left, by a batch of matrix products:
 *
 *     batch        letters of both that are needed later
 *     contracted   letters of both that are not
 *     left, right  letters of one
 *
 * Before that, a letter that a term has twice becomes its diagonal, and letters
 * that nothing else needs are summed. A dimension of 1 that is broadcast is
 * removed. The dimensions of an ellipsis have the labels 0 to 7, from the last
 * backwards; letters are their own.
 */
#include <ctype.h>
#include <string.h>

#include "onnx/operators/rows.h"

enum { LABELS = 128, MOST_TERMS = 16 };

struct term {
    int32_t ndim;
    unsigned char labels[IPU_MAX_DIMS];
    ipu_tensor tensor;
};

struct equation {
    struct ipu__onnx_call *call;
    int nterms;
    struct term terms[MOST_TERMS], result; /* of the result only the labels */
    int64_t extents[LABELS];               /* of each label */
    int times[LABELS];                     /* it occurs so often in terms */
};

static int32_t find_label(const struct term *t, int label)
{
    for (int32_t d = 0; d < t->ndim; d++)
        if (t->labels[d] == label)
            return d;
    return -1;
}

static int add_label(struct equation *e, struct term *t, int label)
{
    if (t->ndim == IPU_MAX_DIMS)
        return onnx__refuse(e->call,
                            "more than %d dimensions are not "
                            "supported",
                            IPU_MAX_DIMS);
    t->labels[t->ndim++] = (unsigned char)label;
    return IPU_OK;
}

/* ------------------------------------------------------------------ reading */

/* Reads the labels of a term, up to an end. ellipsis: its dimensions. */
static int read_labels(struct equation *e, const char *at, const char *end,
                       int32_t ellipsis, struct term *t)
{
    t->ndim = 0;
    for (; at < end; at++) {
        if (*at == ' ')
            continue;
        if (end - at >= 3 && !memcmp(at, "...", 3)) {
            for (int32_t i = ellipsis - 1; i >= 0; i--)
                IPU_TRY(add_label(e, t, i));
            at += 2;
            continue;
        }
        if (!isalpha((unsigned char)*at))
            return onnx__refuse(e->call, "its equation is wrong");
        IPU_TRY(add_label(e, t, *at));
    }
    return IPU_OK;
}

static int32_t count_letters(const char *at, const char *end)
{
    int32_t n = 0;

    for (; at < end; at++)
        n += isalpha((unsigned char)*at) != 0;
    return n;
}

/* Sets the extents of labels: those of 1 are broadcast. */
static int set_extents(struct equation *e, const struct term *t,
                       const struct ipu__onnx_value *x)
{
    for (int32_t d = 0; d < t->ndim; d++) {
        int label = t->labels[d];
        int64_t *extent = &e->extents[label];

        if (e->times[label]++ == 0 || *extent == 1)
            *extent = x->extents[d];
        else if (x->extents[d] != 1 && x->extents[d] != *extent)
            return onnx__refuse(e->call, "the shapes of its inputs do not fit");
    }
    return IPU_OK;
}

static int read_term(struct equation *e, int i, const char *at, const char *end,
                     int32_t *ellipsis)
{
    struct ipu__onnx_value *x = e->call->inputs[i];
    int32_t more = x ? x->ndim - count_letters(at, end) : -1;
    struct term *t = &e->terms[i];

    if (more < 0)
        return onnx__refuse(e->call, "its equation does not fit its inputs");
    IPU_TRY(onnx__want_floats(e->call, i));
    IPU_TRY(read_labels(e, at, end, more, t));
    if (t->ndim != x->ndim)
        return onnx__refuse(e->call, "its equation does not fit its inputs");
    *ellipsis = more > *ellipsis ? more : *ellipsis;
    t->tensor = onnx__tensor(e->call, x);
    return set_extents(e, t, x);
}

/* The result has, if none is given, all labels of an ellipsis and the letters
 * that occur once, in their order. */
static int read_result(struct equation *e, const char *at, int32_t ellipsis)
{
    if (at) {
        IPU_TRY(read_labels(e, at, at + strlen(at), ellipsis, &e->result));
    } else {
        for (int32_t i = ellipsis - 1; i >= 0; i--)
            IPU_TRY(add_label(e, &e->result, i));
        for (int label = IPU_MAX_DIMS; label < LABELS; label++)
            if (e->times[label] == 1)
                IPU_TRY(add_label(e, &e->result, label));
    }
    for (int32_t d = 0; d < e->result.ndim; d++)
        if (e->times[e->result.labels[d]] == 0 ||
            find_label(&e->result, e->result.labels[d]) != d)
            return onnx__refuse(e->call, "its equation is wrong");
    return IPU_OK;
}

static int read_equation(struct equation *e, char *text)
{
    char *result = strstr(text, "->"), *at = text, *end;
    int32_t ellipsis = 0;

    if (result) {
        *result = '\0';
        result += 2;
    }
    for (e->nterms = 0; e->nterms < e->call->ninputs; e->nterms++) {
        end = strchr(at, ',');
        IPU_TRY(read_term(e, e->nterms, at, end ? end : at + strlen(at),
                          &ellipsis));
        at = end ? end + 1 : at + strlen(at);
        if (!end != (e->nterms + 1 == e->call->ninputs))
            return onnx__refuse(e->call,
                                "its equation does not fit its inputs");
    }
    return read_result(e, result, ellipsis);
}

/* ---------------------------------------------------------------- computing */

static void drop(struct term *t, int32_t d)
{
    memmove(t->labels + d, t->labels + d + 1, (size_t)(t->ndim - d - 1));
    t->ndim--;
}

/* Takes the elements whose numbers in dimensions a and b are equal. */
static void take_diagonal(ipu_graph *g, struct term *t, int32_t a, int32_t b,
                          int64_t n)
{
    int64_t shape[IPU_MAX_DIMS] = {0};
    unsigned char label = t->labels[a];
    ipu_tensor x = onnx__axis_last(g, onnx__axis_last(g, t->tensor, b), a);

    ipu_tensor_info(g, x, NULL, shape, NULL);
    shape[t->ndim - 2] = n * n;
    x = ipu_reshape(g, x, t->ndim - 1, shape);
    x = ipu_gather(g, x, ipu_range(g, IPU_INT32, n, 0, (double)(n + 1)),
                   t->ndim - 2);
    drop(t, b);
    drop(t, a);
    t->labels[t->ndim++] = label;
    t->tensor = x;
}

/* Removes what is broadcast, and takes diagonals. */
static void simplify(struct equation *e, struct term *t)
{
    ipu_graph *g = e->call->graph;
    int64_t extents[IPU_MAX_DIMS] = {0};

    ipu_tensor_info(g, t->tensor, NULL, extents, NULL);
    for (int32_t d = t->ndim - 1; d >= 0; d--)
        if (extents[d] == 1 && e->extents[t->labels[d]] != 1) {
            t->tensor = ipu_squeeze(g, t->tensor, d);
            drop(t, d);
        }
    for (int32_t d = 0; d < t->ndim; d++) {
        int32_t first = find_label(t, t->labels[d]);

        if (first < d) {
            take_diagonal(g, t, first, d, e->extents[t->labels[d]]);
            d = -1; /* dimensions have moved */
        }
    }
}

/* Is a label needed by the result, or by terms from number `from` on? */
static bool is_needed(const struct equation *e, int label, int from)
{
    if (find_label(&e->result, label) >= 0)
        return true;
    for (int i = from; i < e->nterms; i++)
        if (find_label(&e->terms[i], label) >= 0)
            return true;
    return false;
}

/* Sums over labels that neither another term nor what follows needs. */
static void sum_unneeded(const struct equation *e, struct term *t,
                         const struct term *other, int from)
{
    for (int32_t d = t->ndim - 1; d >= 0; d--)
        if (!(other && find_label(other, t->labels[d]) >= 0) &&
            !is_needed(e, t->labels[d], from)) {
            t->tensor = ipu_sum(e->call->graph, t->tensor, 1, &d, 0);
            drop(t, d);
        }
}

/* Puts the dimensions of a term into the order of labels. */
static ipu_tensor ordered(ipu_graph *g, const struct term *t,
                          const unsigned char *labels)
{
    int32_t order[IPU_MAX_DIMS];
    bool same = true;

    for (int32_t d = 0; d < t->ndim; d++) {
        order[d] = find_label(t, labels[d]);
        same &= order[d] == d;
    }
    return same ? t->tensor : ipu_transpose(g, t->tensor, order);
}

/* Labels by what becomes of them: [batch, left or right, contracted]. */
struct groups {
    unsigned char batch[IPU_MAX_DIMS], own[IPU_MAX_DIMS], inner[IPU_MAX_DIMS];
    int32_t nbatch, nown, ninner;
    int64_t batches, owns, inners; /* elements */
};

static void add_to(const struct equation *e, int label, unsigned char *labels,
                   int32_t *n, int64_t *elements)
{
    labels[(*n)++] = (unsigned char)label;
    *elements *= e->extents[label];
}

/* Sorts the labels of t; shared ones are in the order of the first term. */
static struct groups sort_labels(const struct equation *e, const struct term *t,
                                 const struct term *first,
                                 const struct term *second, int from)
{
    struct groups s = {.batches = 1, .owns = 1, .inners = 1};

    for (int32_t d = 0; d < first->ndim; d++) {
        int label = first->labels[d];

        if (find_label(second, label) < 0)
            continue;
        if (is_needed(e, label, from))
            add_to(e, label, s.batch, &s.nbatch, &s.batches);
        else
            add_to(e, label, s.inner, &s.ninner, &s.inners);
    }
    for (int32_t d = 0; d < t->ndim; d++)
        if (find_label(t == first ? second : first, t->labels[d]) < 0)
            add_to(e, t->labels[d], s.own, &s.nown, &s.owns);
    return s;
}

/* Returns a term as matrices, [batch, own, contracted]. */
static ipu_tensor as_matrices(ipu_graph *g, const struct term *t,
                              const struct groups *s)
{
    unsigned char labels[IPU_MAX_DIMS] = {0};
    int64_t shape[3] = {s->batches, s->owns, s->inners};
    bool one = s->nbatch == 0;

    memcpy(labels, s->batch, (size_t)s->nbatch);
    memcpy(labels + s->nbatch, s->own, (size_t)s->nown);
    memcpy(labels + s->nbatch + s->nown, s->inner, (size_t)s->ninner);
    return ipu_reshape(g, ordered(g, t, labels), one ? 2 : 3, shape + one);
}

/* Multiplies a by b into a; what follows b needs are its labels. */
static int contract(struct equation *e, struct term *a, struct term *b,
                    int from)
{
    ipu_graph *g = e->call->graph;
    struct groups left, right;
    struct term y = {.ndim = 0};
    int64_t shape[IPU_MAX_DIMS];

    sum_unneeded(e, a, b, from);
    sum_unneeded(e, b, a, from);
    left = sort_labels(e, a, a, b, from);
    right = sort_labels(e, b, a, b, from);
    y.tensor = ipu_batch_matmul(g, as_matrices(g, a, &left),
                                as_matrices(g, b, &right), 0, 1);
    for (int32_t i = 0; i < left.nbatch; i++)
        IPU_TRY(add_label(e, &y, left.batch[i]));
    for (int32_t i = 0; i < left.nown; i++)
        IPU_TRY(add_label(e, &y, left.own[i]));
    for (int32_t i = 0; i < right.nown; i++)
        IPU_TRY(add_label(e, &y, right.own[i]));
    for (int32_t d = 0; d < y.ndim; d++)
        shape[d] = e->extents[y.labels[d]];
    IPU_TRY(onnx__check_shape(e->call, y.ndim, shape));
    y.tensor = ipu_reshape(g, y.tensor, y.ndim, shape);
    *a = y;
    return IPU_OK;
}

static int build_einsum(struct ipu__onnx_call *call)
{
    struct equation e = {.call = call};
    char text[256];

    if (!onnx__text(call, "equation", text, sizeof text))
        return onnx__refuse(call, "its equation is missing or too long");
    if (call->ninputs > MOST_TERMS)
        return onnx__refuse(call, "more than %d inputs are not supported",
                            MOST_TERMS);
    IPU_TRY(read_equation(&e, text));
    for (int i = 0; i < e.nterms; i++)
        simplify(&e, &e.terms[i]);
    for (int i = 1; i < e.nterms; i++)
        IPU_TRY(contract(&e, &e.terms[0], &e.terms[i], i + 1));
    sum_unneeded(&e, &e.terms[0], NULL, e.nterms);
    return onnx__give(call, 0, call->inputs[0]->type,
                      ordered(call->graph, &e.terms[0], e.result.labels));
}

const struct ipu__onnx_operator onnx__einsum_rows[] = {
    {"Einsum", 12, "equation", 1, IPU__ONNX_ANY_NUMBER, build_einsum, NULL,
     "integers are refused"},
    {.name = NULL},
};
