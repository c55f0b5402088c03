/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.c - runs calls by raw MPI.
 *
 * MPI has no 16-bit floating point and no average. A program that needs them
 * defines its own MPI_Op, and divides after a sum; so does this one, in plain
 * loops. Reductions and broadcasts with larger counts than MPI-3.1 allows are
 * divided into pieces; gathers and exchanges cannot be divided, and return an
 * error of MPI.
 */
#include "collectives/reference.h"

#include "collectives/half.h"

#include <limits.h>

enum { PIECE = 1 << 30 };

static float load_half(hvd_dtype type, uint16_t bits)
{
    return type == HVD_FLOAT16 ? half_to_float(bits) : bfloat16_to_float(bits);
}

static uint16_t store_half(hvd_dtype type, float value)
{
    return type == HVD_FLOAT16 ? half_from_float(value)
                               : bfloat16_from_float(value);
}

static float combine_values(hvd_op op, float a, float b)
{
    switch (op) {
    case HVD_PRODUCT: return a * b;
    case HVD_MIN: return a < b ? a : b;
    case HVD_MAX: return a > b ? a : b;
    default: return a + b;
    }
}

static void reduce_half(hvd_dtype type, hvd_op op, const void *in, void *inout,
                        int count)
{
    const uint16_t *a = in;
    uint16_t *b = inout;

    for (int i = 0; i < count; i++)
        b[i] = store_half(type, combine_values(op, load_half(type, a[i]),
                                               load_half(type, b[i])));
}

/* MPI_Op has no context, so there is one function per combination. */
#define HALF_OP(name, type, op)                                                \
    static void name(void *in, void *inout, int *count, MPI_Datatype *ignored) \
    {                                                                          \
        (void)ignored;                                                         \
        reduce_half(type, op, in, inout, *count);                              \
    }
HALF_OP(f16_sum, HVD_FLOAT16, HVD_SUM)
HALF_OP(f16_product, HVD_FLOAT16, HVD_PRODUCT)
HALF_OP(f16_min, HVD_FLOAT16, HVD_MIN)
HALF_OP(f16_max, HVD_FLOAT16, HVD_MAX)
HALF_OP(bf16_sum, HVD_BFLOAT16, HVD_SUM)
HALF_OP(bf16_product, HVD_BFLOAT16, HVD_PRODUCT)
HALF_OP(bf16_min, HVD_BFLOAT16, HVD_MIN)
HALF_OP(bf16_max, HVD_BFLOAT16, HVD_MAX)

static MPI_User_function *half_function(hvd_dtype type, hvd_op op)
{
    int f16 = type == HVD_FLOAT16;

    switch (op) {
    case HVD_PRODUCT: return f16 ? f16_product : bf16_product;
    case HVD_MIN: return f16 ? f16_min : bf16_min;
    case HVD_MAX: return f16 ? f16_max : bf16_max;
    default: return f16 ? f16_sum : bf16_sum;
    }
}

static MPI_Datatype datatype_of(hvd_dtype type)
{
    switch (type) {
    case HVD_UINT8: return MPI_UINT8_T;
    case HVD_INT8: return MPI_INT8_T;
    case HVD_INT16: return MPI_INT16_T;
    case HVD_INT32: return MPI_INT32_T;
    case HVD_INT64: return MPI_INT64_T;
    case HVD_FLOAT32: return MPI_FLOAT;
    case HVD_FLOAT64: return MPI_DOUBLE;
    case HVD_BOOL: return MPI_C_BOOL;
    default: return MPI_UINT16_T; /* also both 16-bit floats */
    }
}

static MPI_Op op_of(hvd_dtype type, hvd_op op)
{
    switch (op) {
    case HVD_PRODUCT: return type == HVD_BOOL ? MPI_LAND : MPI_PROD;
    case HVD_MIN: return type == HVD_BOOL ? MPI_LAND : MPI_MIN;
    case HVD_MAX: return type == HVD_BOOL ? MPI_LOR : MPI_MAX;
    default: return type == HVD_BOOL ? MPI_LOR : MPI_SUM;
    }
}

void reference_init(struct reference *r, const struct call *call)
{
    hvd_dtype type = call->type->id;

    *r = (struct reference){.datatype = datatype_of(type), .op = MPI_OP_NULL};
    if (!call->op)
        return;
    r->average = call->op->id == HVD_AVERAGE;
    if (type == HVD_FLOAT16 || type == HVD_BFLOAT16) {
        MPI_Op_create(half_function(type, call->op->id), 1, &r->op);
        r->owns_op = 1;
    } else {
        r->op = op_of(type, call->op->id);
    }
}

void reference_fini(struct reference *r)
{
    if (r->owns_op)
        MPI_Op_free(&r->op);
}

#define DIVIDE(type)                                                           \
    do {                                                                       \
        type *x = out;                                                         \
        for (int64_t i = 0; i < count; i++)                                    \
            x[i] = (type)(x[i] / (type)n);                                     \
    } while (0)

static void divide_output(const struct call *call, void *out)
{
    int64_t count = call_out_count(call);
    int n = call->nranks;
    hvd_dtype type = call->type->id;
    uint16_t *half = out;

    switch (type) {
    case HVD_UINT8: DIVIDE(uint8_t); break;
    case HVD_INT8: DIVIDE(int8_t); break;
    case HVD_UINT16: DIVIDE(uint16_t); break;
    case HVD_INT16: DIVIDE(int16_t); break;
    case HVD_INT32: DIVIDE(int32_t); break;
    case HVD_INT64: DIVIDE(int64_t); break;
    case HVD_FLOAT32: DIVIDE(float); break;
    case HVD_FLOAT64: DIVIDE(double); break;
    case HVD_FLOAT16:
    case HVD_BFLOAT16:
        for (int64_t i = 0; i < count; i++)
            half[i] = store_half(type, load_half(type, half[i]) / (float)n);
        break;
    default: break;
    }
}

static int piece_of(int64_t left)
{
    return left < PIECE ? (int)left : PIECE;
}

/* Runs one piece of a reduction or a broadcast. */
static int run_piece(const struct reference *r, const struct call *call,
                     const void *in, void *out, int count)
{
    int is_root = call->rank == call->root;

    if (call->kind == HVD_BROADCAST)
        return MPI_Bcast(out, count, r->datatype, call->root, MPI_COMM_WORLD);
    if (call->kind == HVD_ALLREDUCE)
        return MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, count,
                             r->datatype, r->op, MPI_COMM_WORLD);
    return MPI_Reduce(in == out && is_root ? MPI_IN_PLACE : in,
                      is_root ? out : NULL, count, r->datatype, r->op,
                      call->root, MPI_COMM_WORLD);
}

static int run_pieces(const struct reference *r, const struct call *call,
                      const void *in, void *out)
{
    int code = MPI_SUCCESS;

    for (int64_t done = 0; done < call->total && code == MPI_SUCCESS;
         done += PIECE) {
        size_t offset = (size_t)done * call->type->bytes;

        code = run_piece(r, call, (const char *)in + offset,
                         (char *)out + offset, piece_of(call->total - done));
    }
    return code;
}

static int run_shares(const struct reference *r, const struct call *call,
                      const void *in, void *out)
{
    int share = (int)call->share;
    int in_place = in == call_input_of(call, out);
    int is_root = call->rank == call->root;
    const void *from = in_place ? MPI_IN_PLACE : in;

    switch (call->kind) {
    case HVD_ALLGATHER:
        return MPI_Allgather(from, share, r->datatype, out, share, r->datatype,
                             MPI_COMM_WORLD);
    case HVD_GATHER:
        return MPI_Gather(is_root ? from : in, share, r->datatype,
                          is_root ? out : NULL, share, r->datatype, call->root,
                          MPI_COMM_WORLD);
    case HVD_ALLTOALL:
        return MPI_Alltoall(from, share, r->datatype, out, share, r->datatype,
                            MPI_COMM_WORLD);
    default:
        return MPI_Reduce_scatter_block(from, out, share, r->datatype, r->op,
                                        MPI_COMM_WORLD);
    }
}

int reference_run(const struct reference *r, const struct call *call,
                  const void *in, void *out)
{
    int code;

    switch (call->kind) {
    case HVD_BARRIER: return MPI_Barrier(MPI_COMM_WORLD);
    case HVD_ALLREDUCE:
    case HVD_REDUCE:
    case HVD_BROADCAST: code = run_pieces(r, call, in, out); break;
    default:
        code = call->share <= INT_MAX ? run_shares(r, call, in, out)
                                      : MPI_ERR_COUNT;
    }
    if (code == MPI_SUCCESS && r->average)
        divide_output(call, out);
    return code;
}
