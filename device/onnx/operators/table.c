/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators: the rows of all families, and those that are refused,
 * with the reasons. */
#include <string.h>

#include "onnx/operators/rows.h"

/* The rows of all operators. The operators of ai.onnx.preview.training come
 * last. */
static const struct ipu__onnx_operator *const families[] = {
    onnx__unary_rows,      onnx__binary_rows,   onnx__power_rows,
    onnx__activation_rows, onnx__shape_rows,    onnx__move_rows,
    onnx__index_rows,      onnx__scatter_rows,  onnx__reduction_rows,
    onnx__product_rows,    onnx__einsum_rows,   onnx__convolution_rows,
    onnx__pool_rows,       onnx__max_pool_rows, onnx__norm_rows,
    onnx__loss_rows,       onnx__resize_rows,   onnx__sampling_rows,
    onnx__quantized_rows,  onnx__signal_rows,   onnx__recurrent_rows,
    onnx__condition_rows,  onnx__loop_rows,     onnx__scan_rows,
    onnx__roi_pool_rows,   onnx__random_rows,   onnx__gradient_rows,
    onnx__optimizer_rows,
};

enum {
    FAMILIES = sizeof families / sizeof *families,
    OWN_FAMILIES = FAMILIES - 2
};

#define DATA_SHAPE "the shape of its output depends on data"
#define NO_TENSORS "it takes or makes sequences, maps or optionals"
#define STRINGS "the device has no strings"
#define GENERATOR "the device draws no classes"

static const struct {
    const char *name, *reason;
} refused[] = {
    {"ConcatFromSequence", NO_TENSORS},
    {"Multinomial", GENERATOR},
    {"NonMaxSuppression", DATA_SHAPE},
    {"Optional", NO_TENSORS},
    {"OptionalGetElement", NO_TENSORS},
    {"OptionalHasElement", NO_TENSORS},
    {"SequenceAt", NO_TENSORS},
    {"SequenceConstruct", NO_TENSORS},
    {"SequenceEmpty", NO_TENSORS},
    {"SequenceErase", NO_TENSORS},
    {"SequenceInsert", NO_TENSORS},
    {"SequenceLength", NO_TENSORS},
    {"SequenceMap", NO_TENSORS},
    {"SplitToSequence", NO_TENSORS},
    {"StringNormalizer", STRINGS},
    {"TfIdfVectorizer", STRINGS},
    {"Unique", DATA_SHAPE},
};

enum { REFUSED = sizeof refused / sizeof *refused };

const struct ipu__onnx_operator *ipu__onnx_find(const char *name, bool training)
{
    int end = training ? FAMILIES : OWN_FAMILIES;

    for (int f = training ? OWN_FAMILIES : 0; f < end; f++)
        for (const struct ipu__onnx_operator *row = families[f]; row->name;
             row++)
            if (!strcmp(row->name, name))
                return row;
    return NULL;
}

const char *ipu__onnx_reason(const char *name)
{
    for (int i = 0; i < REFUSED; i++)
        if (!strcmp(refused[i].name, name))
            return refused[i].reason;
    return NULL;
}

/* Describes operator number i, in any order. Returns false beyond the last. */
static bool describe_row(int i, ipu_onnx_operator *op)
{
    for (int f = 0; f < FAMILIES; f++)
        for (const struct ipu__onnx_operator *row = families[f]; row->name;
             row++)
            if (i-- == 0) {
                op->first = row->first;
                op->name = row->name;
                op->limits = row->limits;
                return true;
            }
    if (i >= REFUSED)
        return false;
    op->first = 0;
    op->name = refused[i].name;
    op->limits = refused[i].reason;
    return true;
}

int ipu_onnx_operator_at(int32_t i, ipu_onnx_operator *op)
{
    ipu_onnx_operator other = {.size = sizeof other};

    if (!op)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the operator is NULL");
    IPU_TRY(ipu__check_size("ipu_onnx_operator", op->size, sizeof *op));
    if (i < 0)
        return 0;
    /* Operator number i is the one whose name has i others before it. */
    for (int at = 0; describe_row(at, op); at++) {
        int32_t before = 0;

        for (int j = 0; describe_row(j, &other); j++)
            before += strcmp(other.name, op->name) < 0;
        if (before == i)
            return 1;
    }
    return 0;
}
