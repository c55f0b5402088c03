/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks must agree on signatures: these are compared, hashed and printed. */
#include <string.h>

#include "core/request/signature.h"
#include "suite.h"

static struct hvd__signature sum(void)
{
    return (struct hvd__signature){.kind = HVD_ALLREDUCE,
                                   .dtype = HVD_FLOAT32,
                                   .op = HVD_SUM,
                                   .ndim = 2,
                                   .prescale = 1,
                                   .postscale = 1,
                                   .shape = {17, 3}};
}

/* Each field alone makes a difference, to comparison and fingerprint. */
TEST(every_field_counts)
{
    const struct hvd__signature a = sum();
    const uint64_t of_a = hvd__signature_fingerprint(0, &a);
    struct hvd__signature b = a;

    ck_assert(hvd__signature_equal(&a, &b));
    ck_assert(hvd__signature_fingerprint(0, &b) == of_a);
    ck_assert(hvd__signature_fingerprint(1, &b) != of_a);
#define DIFFERS(field, value)                                                  \
    do {                                                                       \
        b = a;                                                                 \
        b.field = value;                                                       \
        ck_assert_msg(!hvd__signature_equal(&a, &b), #field);                  \
        ck_assert_msg(hvd__signature_fingerprint(0, &b) != of_a, #field);      \
    } while (0)
    DIFFERS(kind, HVD_REDUCE);
    DIFFERS(dtype, HVD_INT32);
    DIFFERS(op, HVD_AVERAGE);
    DIFFERS(root, 1);
    DIFFERS(flags, HVD_AVERAGE_CONTRIBUTORS);
    DIFFERS(compression, HVD_COMPRESSION_FP16);
    DIFFERS(prescale, 1.0000000000000002);
    DIFFERS(postscale, -1);
    DIFFERS(ndim, 1);
    DIFFERS(shape[0], 3);
    DIFFERS(shape[1], 17);
#undef DIFFERS
    b = a;
    b.shape[0] = a.shape[1];
    b.shape[1] = a.shape[0];
    ck_assert(hvd__signature_fingerprint(0, &b) != of_a);
}

/* Signatures that compare equal have the same fingerprint. */
TEST(zeros_of_both_signs_are_one)
{
    struct hvd__signature a = sum(), b;

    a.prescale = 0.0;
    b = a;
    b.prescale = -0.0;
    ck_assert(hvd__signature_equal(&a, &b));
    ck_assert(hvd__signature_fingerprint(7, &a) ==
              hvd__signature_fingerprint(7, &b));
}

TEST(elements_and_bytes)
{
    struct hvd__signature s = sum();

    ck_assert_int_eq(hvd__signature_count(&s), 51);
    ck_assert_uint_eq(hvd__signature_bytes(&s), 204);
    ck_assert_uint_eq(hvd__signature_row_bytes(&s), 12);
    s.shape[1] = 0;
    ck_assert_int_eq(hvd__signature_count(&s), 0);
    ck_assert_uint_eq(hvd__signature_bytes(&s), 0);
    s.ndim = 3; /* nothing, of however much */
    s.shape[0] = s.shape[1] = INT64_MAX;
    s.shape[2] = 0;
    ck_assert_int_eq(hvd__signature_count(&s), 0);
    s.ndim = 0; /* a scalar */
    s.dtype = HVD_FLOAT64;
    ck_assert_int_eq(hvd__signature_count(&s), 1);
    ck_assert_uint_eq(hvd__signature_bytes(&s), 8);
    /* Rows that vary: one of them. */
    s = sum();
    s.kind = HVD_ALLGATHER;
    s.shape[0] = HVD__VARIES;
    ck_assert_int_eq(hvd__signature_count(&s), 3);
    ck_assert_uint_eq(hvd__signature_row_bytes(&s), 12);
    s = (struct hvd__signature){.kind = HVD_BARRIER};
    ck_assert_uint_eq(hvd__signature_bytes(&s), 0);
    /* Beyond 2^31 elements and 2^32 bytes. */
    s = sum();
    s.shape[0] = INT64_C(1) << 40;
    ck_assert_int_eq(hvd__signature_count(&s), INT64_C(3) << 40);
    ck_assert(hvd__signature_bytes(&s) == (size_t)12 << 40);
}

TEST(what_varies_is_carried)
{
    struct hvd__signature s = sum();

    ck_assert(!hvd__signature_varies(&s) && !hvd__signature_carries(&s));
    s.kind = HVD_ALLGATHER;
    s.shape[0] = HVD__VARIES;
    ck_assert(hvd__signature_varies(&s) && hvd__signature_carries(&s));
    s.kind = HVD_ALLTOALL; /* its rows differ from pair to pair */
    ck_assert(hvd__signature_varies(&s) && !hvd__signature_carries(&s));
    s = sum();
    s.compression = HVD_COMPRESSION_BF16;
    ck_assert(!hvd__signature_carries(&s));
    s.compression =
        HVD_COMPRESSION_TOPK; /* each rank's code has a length of its own */
    ck_assert(hvd__signature_carries(&s));
    s.ndim = 0;
    ck_assert(!hvd__signature_varies(&s));
}

static void prints(const struct hvd__signature *s, const char *want)
{
    char text[256];

    ck_assert_str_eq(hvd__signature_print(s, text, sizeof text), want);
}

TEST(in_words)
{
    struct hvd__signature s = sum();
    char cut[12];

    prints(&s, "allreduce sum float32 [17,3]");
    s.prescale = 0.5;
    s.postscale = -2;
    s.op = HVD_AVERAGE;
    s.flags = HVD_AVERAGE_CONTRIBUTORS;
    s.compression = HVD_COMPRESSION_FP16;
    prints(&s, "allreduce average float32 [17,3] prescale 0.5 postscale -2 "
               "compressed by fp16 over contributors");
    ck_assert_str_eq(hvd__signature_print(&s, cut, sizeof cut), "allreduce a");
    s = sum();
    s.ndim = 0;
    s.kind = HVD_BROADCAST;
    s.root = 3;
    prints(&s, "broadcast float32 [] from root 3");
    s = sum();
    s.kind = HVD_GATHER;
    s.root = 2;
    s.shape[0] = HVD__VARIES;
    prints(&s, "gather float32 [*,3] to root 2");
    s = (struct hvd__signature){.kind = HVD_BARRIER};
    prints(&s, "barrier");
}

/* Every kind that has a name is found by it, and says what it has. */
TEST(kinds)
{
    int named = 0;

    for (int kind = -1; kind <= HVD_NUM_KINDS; kind++) {
        const char *name = hvd_kind_name(kind);

        if (!name)
            continue;
        named++;
        ck_assert_int_eq(hvd_kind_from_name(name), kind);
        ck_assert(hvd__kind_has(kind, 0));
        if (hvd__kind_has(kind, HVD__HAS_OP) ||
            hvd__kind_has(kind, HVD__HAS_ROOT) ||
            hvd__kind_has(kind, HVD__HAS_ROWS))
            ck_assert(hvd__kind_has(kind, HVD__HAS_TENSOR));
    }
    ck_assert_int_eq(named, 9);
    ck_assert(hvd__kind_has(HVD_REDUCE, HVD__HAS_OP | HVD__HAS_ROOT));
    ck_assert(!hvd__kind_has(HVD_ALLREDUCE, HVD__HAS_OP | HVD__HAS_ROOT));
    ck_assert_int_eq(hvd_kind_from_name("allreduces"), HVD_ERR_ARGUMENT);
    ck_assert(strstr(hvd_last_error(), "'allreduces'"));
    ck_assert_int_eq(hvd_kind_from_name(NULL), HVD_ERR_ARGUMENT);
}

TEST_MAIN("core_signature")
