/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - where data of the program lies.
 *
 * libhvd moves bytes. MPI only says that the signatures of types agree: one
 * rank may give ten ints, another one element of a derived type of ten ints,
 * and neither knows. Both stand for the same number of bytes, though, in the
 * same order, so a rank whose type has gaps packs its data (MPI_Pack), and the
 * others need not know. In Open MPI packed data is nothing but the data.
 */
#include <limits.h>
#include <string.h>

#include "mpi/accelerate.h"

/* Types whose elements are data without gaps, as the program passes them again
 * and again. Predefined types are never freed. */
static bool is_common(MPI_Datatype type, size_t *bytes)
{
    if (type == MPI_DOUBLE || type == MPI_DOUBLE_PRECISION)
        *bytes = sizeof(double);
    else if (type == MPI_BYTE || type == MPI_CHAR || type == MPI_CHARACTER)
        *bytes = 1;
    else if (type == MPI_INT || type == MPI_FLOAT)
        *bytes = 4;
    else if (type == MPI_C_DOUBLE_COMPLEX || type == MPI_DOUBLE_COMPLEX)
        *bytes = 2 * sizeof(double);
    else
        return false;
    return true;
}

static bool describe_type(struct hvd__accel_layout *layout)
{
    MPI_Aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    MPI_Count bytes = 0;
    int nints, naddresses, ntypes, combiner;

    if (layout->type == MPI_DATATYPE_NULL)
        return false;
    if (is_common(layout->type, &layout->bytes)) {
        layout->extent = (MPI_Aint)layout->bytes;
        layout->is_dense = true;
        return true;
    }
    if (PMPI_Type_size_x(layout->type, &bytes) != MPI_SUCCESS ||
        bytes == MPI_UNDEFINED ||
        PMPI_Type_get_extent(layout->type, &lower, &extent) != MPI_SUCCESS ||
        PMPI_Type_get_true_extent(layout->type, &true_lower, &true_extent) !=
            MPI_SUCCESS ||
        PMPI_Type_get_envelope(layout->type, &nints, &naddresses, &ntypes,
                               &combiner) != MPI_SUCCESS)
        return false;
    layout->bytes = (size_t)bytes;
    layout->extent = extent;
    /* The elements of a derived type may lie in another order. */
    layout->is_dense = combiner == MPI_COMBINER_NAMED && lower == 0 &&
                       extent == bytes && true_lower == 0 &&
                       true_extent == bytes;
    return true;
}

bool hvd__accel_layout_init(struct hvd__accel_layout *layout,
                            const void *buffer, int count, MPI_Datatype type,
                            int nblocks)
{
    *layout = (struct hvd__accel_layout){.buffer = (void *)(uintptr_t)buffer,
                                         .type = type,
                                         .nblocks = nblocks,
                                         .count = count};
    return count >= 0 && describe_type(layout) &&
           (buffer || count == 0 || !layout->is_dense);
}

bool hvd__accel_layout_init_v(struct hvd__accel_layout *layout,
                              const void *buffer, const int *counts,
                              const int *displs, MPI_Datatype type, int nblocks)
{
    *layout = (struct hvd__accel_layout){.buffer = (void *)(uintptr_t)buffer,
                                         .type = type,
                                         .nblocks = nblocks,
                                         .counts = counts,
                                         .displs = displs};
    if (!counts || !displs)
        return false;
    for (int i = 0; i < nblocks; i++)
        if (counts[i] < 0)
            return false;
    return describe_type(layout);
}

static int count_of(const struct hvd__accel_layout *layout, int i)
{
    return layout->counts ? layout->counts[i] : layout->count;
}

int64_t hvd__accel_layout_block(const struct hvd__accel_layout *layout, int i)
{
    return (int64_t)count_of(layout, i) * (int64_t)layout->bytes;
}

int64_t hvd__accel_layout_widest(const struct hvd__accel_layout *layout,
                                 int64_t *sum)
{
    int64_t widest = 0;

    *sum = 0;
    for (int i = 0; i < layout->nblocks; i++) {
        int64_t bytes = hvd__accel_layout_block(layout, i);

        widest = bytes > widest ? bytes : widest;
        *sum += bytes;
    }
    return widest;
}

bool hvd__accel_layout_is_flat(const struct hvd__accel_layout *layout)
{
    int64_t next = 0;

    if (!layout->is_dense)
        return false;
    for (int i = 0; layout->displs && i < layout->nblocks; i++) {
        if (layout->displs[i] != next)
            return false;
        next += layout->counts[i];
    }
    return true;
}

static char *block_at(const struct hvd__accel_layout *layout, int i)
{
    int64_t first =
        layout->displs ? layout->displs[i] : (int64_t)i * count_of(layout, i);

    return (char *)layout->buffer + first * layout->extent;
}

int hvd__accel_layout_pack(const struct hvd__accel_layout *layout, int i,
                           void *to, MPI_Comm comm)
{
    int64_t bytes = hvd__accel_layout_block(layout, i);
    int at = 0;

    if (bytes == 0)
        return MPI_SUCCESS;
    if (!layout->is_dense)
        return PMPI_Pack(block_at(layout, i), count_of(layout, i), layout->type,
                         to, (int)bytes, &at, comm);
    memcpy(to, block_at(layout, i), (size_t)bytes);
    return MPI_SUCCESS;
}

int hvd__accel_layout_unpack(const struct hvd__accel_layout *layout, int i,
                             const void *from, MPI_Comm comm)
{
    int64_t bytes = hvd__accel_layout_block(layout, i);
    int at = 0;

    if (bytes == 0)
        return MPI_SUCCESS;
    if (!layout->is_dense)
        return PMPI_Unpack(from, (int)bytes, &at, block_at(layout, i),
                           count_of(layout, i), layout->type, comm);
    memcpy(block_at(layout, i), from, (size_t)bytes);
    return MPI_SUCCESS;
}
