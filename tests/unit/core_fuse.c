/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are alike are fused, up to a number of bytes. */
#include "core/agree/batch.h"
#include "suite.h"

static struct hvd__signature signature(hvd_kind kind, int64_t rows)
{
    return (struct hvd__signature){.kind = kind,
                                   .dtype = HVD_FLOAT32,
                                   .op = HVD_SUM,
                                   .ndim = 2,
                                   .prescale = 1,
                                   .postscale = 1,
                                   .shape = {rows, 3}};
}

TEST(what_may_share_a_buffer)
{
    static const hvd_kind alone[] = {HVD_ALLTOALL, HVD_GATHER, HVD_BARRIER};
    struct hvd__signature a = signature(HVD_ALLREDUCE, 4), b = a;

    b.shape[0] = 99;
    b.ndim = 1;
    ck_assert(hvd__fusible(&a, &b));
#define DIFFERS(field, value)                                                  \
    do {                                                                       \
        b = a;                                                                 \
        b.field = value;                                                       \
        ck_assert_msg(!hvd__fusible(&a, &b), #field);                          \
    } while (0)
    DIFFERS(kind, HVD_REDUCE);
    DIFFERS(dtype, HVD_FLOAT64);
    DIFFERS(op, HVD_AVERAGE);
    DIFFERS(prescale, 0.5);
    DIFFERS(postscale, 0.5);
    DIFFERS(flags, HVD_AVERAGE_CONTRIBUTORS);
    DIFFERS(compression, HVD_COMPRESSION_FP16);
#undef DIFFERS
    a.op = HVD_ADASUM;
    b = a;
    ck_assert(!hvd__fusible(&a, &b));
    a.op = HVD_SUM;
    a.compression = HVD_COMPRESSION_TOPK;
    b = a;
    ck_assert(!hvd__fusible(&a, &b));
    a = b = signature(HVD_BROADCAST, 4);
    b.dtype = HVD_INT8; /* bytes are bytes */
    ck_assert(hvd__fusible(&a, &b));
    b.root = 1;
    ck_assert(!hvd__fusible(&a, &b));
    a = b = signature(HVD_ALLGATHER, 4);
    b.dtype = HVD_INT8;
    ck_assert(hvd__fusible(&a, &b));
    for (int i = 0; i < 3; i++) {
        a = b = signature(alone[i], 4);
        ck_assert(!hvd__fusible(&a, &b));
    }
}

TEST(room_in_the_buffer)
{
    struct hvd__signature s = signature(HVD_ALLREDUCE, 10);

    ck_assert_uint_eq(hvd__fusion_bytes(&s, 4, 0), 120);
    s.compression = HVD_COMPRESSION_BF16;
    ck_assert_uint_eq(hvd__fusion_bytes(&s, 4, 0), 60);
    s = signature(HVD_REDUCESCATTER, 10);
    ck_assert_uint_eq(hvd__fusion_bytes(&s, 4, 0), 240);
    s = signature(HVD_ALLGATHER, 10);
    ck_assert_uint_eq(hvd__fusion_bytes(&s, 4, 0), 480);
    s.shape[0] = HVD__VARIES;
    ck_assert_uint_eq(hvd__fusion_bytes(&s, 4, 17), 17 * 12);
}

TEST(small_ones_overtake_what_does_not_fit)
{
    struct hvd__signature s = signature(HVD_ALLREDUCE, 1),
                          other = signature(HVD_REDUCE, 1);
    struct hvd__fusion fusion = {.threshold = 100}, none = {.threshold = 0},
                       huge = {.threshold = 100};

    ck_assert(hvd__fuse(&fusion, &s, 60));
    ck_assert(!hvd__fuse(&fusion, &s, 50));
    ck_assert(!hvd__fuse(&fusion, &other, 1));
    ck_assert(hvd__fuse(&fusion, &s, 40));
    ck_assert(!hvd__fuse(&fusion, &s, SIZE_MAX));
    ck_assert(hvd__fuse(&fusion, &s, 0));
    ck_assert(hvd__fuse(&none, &s, 60));
    ck_assert(!hvd__fuse(&none, &s, 0));
    ck_assert(hvd__fuse(&huge, &s, SIZE_MAX));
    ck_assert(!hvd__fuse(&huge, &s, 1));
}

TEST_MAIN("core_fuse")
