/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types.c - MPI's predefined types and operations in libhvd's terms.
 *
 * libhvd has no unsigned integers of 32 and 64 bits, but their sums and
 * products are those of signed ones, bit by bit. The sum of complex numbers is
 * that of their parts. Every type that is not in the table is MPI's affair:
 * derived types, with which the predefined operations are not defined, pairs,
 * logicals of Fortran, long double.
 */
#include "mpi/accelerate.h"

enum { ARITHMETIC, WRAPPING, COMPLEX, LOGICAL };

struct entry {
    MPI_Datatype type;
    hvd_dtype dtype;
    int elements, sort;
};

enum { SLOTS = 256 };
static struct entry slots[SLOTS];

static unsigned slot_of(MPI_Datatype type)
{
    uint64_t bits = (uint64_t)(uintptr_t)type * UINT64_C(0x9e3779b97f4a7c15);

    return (unsigned)(bits >> 56);
}

static void add(MPI_Datatype type, hvd_dtype dtype, int elements, int sort)
{
    int bytes = 0;
    unsigned at = slot_of(type);

    /* A compiler without a type leaves MPI's without a size. */
    if (type == MPI_DATATYPE_NULL ||
        PMPI_Type_size(type, &bytes) != MPI_SUCCESS ||
        bytes != hvd_dtype_size(dtype) * elements)
        return;
    while (slots[at].elements > 0 && slots[at].type != type)
        at = (at + 1) % SLOTS;
    slots[at] = (struct entry){type, dtype, elements, sort};
}

/* Adds an integer type of whatever size it has. */
static void add_integer(MPI_Datatype type, bool is_unsigned)
{
    static const struct {
        hvd_dtype dtype;
        int sort;
    } signed_ones[] = {{HVD_INT8, ARITHMETIC},
                       {HVD_INT16, ARITHMETIC},
                       {HVD_INT32, ARITHMETIC},
                       {HVD_INT64, ARITHMETIC}},
      unsigned_ones[] = {{HVD_UINT8, ARITHMETIC},
                         {HVD_UINT16, ARITHMETIC},
                         {HVD_INT32, WRAPPING},
                         {HVD_INT64, WRAPPING}};

    for (int i = 0; i < 4; i++)
        if (is_unsigned)
            add(type, unsigned_ones[i].dtype, 1, unsigned_ones[i].sort);
        else
            add(type, signed_ones[i].dtype, 1, signed_ones[i].sort);
}

void hvd__accel_types_init(void)
{
    const MPI_Datatype signed_types[] = {
        MPI_SIGNED_CHAR, MPI_SHORT,   MPI_INT,     MPI_LONG,     MPI_LONG_LONG,
        MPI_INT8_T,      MPI_INT16_T, MPI_INT32_T, MPI_INT64_T,  MPI_AINT,
        MPI_OFFSET,      MPI_COUNT,   MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2,
        MPI_INTEGER4,    MPI_INTEGER8};
    const MPI_Datatype unsigned_types[] = {
        MPI_UNSIGNED_CHAR,      MPI_UNSIGNED_SHORT, MPI_UNSIGNED,
        MPI_UNSIGNED_LONG,      MPI_UINT8_T,        MPI_UINT16_T,
        MPI_UNSIGNED_LONG_LONG, MPI_UINT32_T,       MPI_UINT64_T};
    const MPI_Datatype reals[] = {MPI_FLOAT, MPI_DOUBLE, MPI_REAL,
                                  MPI_REAL4, MPI_REAL8,  MPI_DOUBLE_PRECISION};
    const MPI_Datatype complexes[] = {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX,
                                      MPI_COMPLEX,         MPI_COMPLEX8,
                                      MPI_COMPLEX16,       MPI_DOUBLE_COMPLEX};
    const MPI_Datatype logicals[] = {MPI_C_BOOL, MPI_CXX_BOOL};

    for (size_t i = 0; i < sizeof signed_types / sizeof *signed_types; i++)
        add_integer(signed_types[i], false);
    for (size_t i = 0; i < sizeof unsigned_types / sizeof *unsigned_types; i++)
        add_integer(unsigned_types[i], true);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        add(reals[i], HVD_FLOAT32, 1, ARITHMETIC);
        add(reals[i], HVD_FLOAT64, 1, ARITHMETIC);
    }
    for (size_t i = 0; i < sizeof complexes / sizeof *complexes; i++) {
        add(complexes[i], HVD_FLOAT32, 2, COMPLEX);
        add(complexes[i], HVD_FLOAT64, 2, COMPLEX);
    }
    for (size_t i = 0; i < sizeof logicals / sizeof *logicals; i++)
        add(logicals[i], HVD_BOOL, 1, LOGICAL);
}

static bool find_op(MPI_Op op, int sort, hvd_op *found)
{
    const struct {
        MPI_Op op;
        hvd_op arithmetic, logical; /* -1: there is none */
    } ops[] = {{MPI_SUM, HVD_SUM, -1}, {MPI_PROD, HVD_PRODUCT, -1},
               {MPI_MIN, HVD_MIN, -1}, {MPI_MAX, HVD_MAX, -1},
               {MPI_LOR, -1, HVD_MAX}, {MPI_LAND, -1, HVD_MIN}};

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i].op == op) {
            *found = sort == LOGICAL ? ops[i].logical : ops[i].arithmetic;
            if (sort == COMPLEX)
                return *found == HVD_SUM;
            if (sort == WRAPPING)
                return *found == HVD_SUM || *found == HVD_PRODUCT;
            return *found >= 0;
        }
    return false;
}

bool hvd__accel_reduction_find(MPI_Datatype type, MPI_Op op,
                               struct hvd__accel_reduction *reduction)
{
    const struct entry *entry;
    unsigned at = slot_of(type);

    while (slots[at].elements > 0 && slots[at].type != type)
        at = (at + 1) % SLOTS;
    entry = &slots[at];
    if (entry->elements == 0 || !find_op(op, entry->sort, &reduction->op))
        return false;
    reduction->dtype = entry->dtype;
    reduction->elements = entry->elements;
    reduction->bytes =
        (size_t)entry->elements * (size_t)hvd_dtype_size(entry->dtype);
    return true;
}
