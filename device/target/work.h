/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.h - the work that a step of a program asks of the chip, as its op
 * describes it (struct ipu__op, cost).
 */
#ifndef IPU_TARGET_WORK_H
#define IPU_TARGET_WORK_H

#include <stdbool.h>

#include "target/plans.h"

enum ipu__work_kind {
    IPU__WORK_NONE,     /* none: the output is the input, seen differently */
    IPU__WORK_ELEMENTS, /* each element by itself */
    IPU__WORK_SUM,      /* elements to fewer outputs */
    IPU__WORK_ROWS,     /* elements one by one, and sums of rows of them */
    IPU__WORK_MOVE,     /* outputs that come from other tiles */
    IPU__WORK_PRODUCT, /* a product; if there are rows, with these in between */
    IPU__WORK_STREAMING /* outputs that move between the chip and the DRAM
                           beside it */
};

/* Bytes that the hardware moves at once to or from the DRAM. */
#define IPU__STREAMING_BYTES ((int64_t)128 << 20)

struct ipu__work {
    enum ipu__work_kind kind;
    int32_t element_bytes; /* 2 or 4 */
    int64_t elements;
    int64_t outputs;
    int32_t loads;      /* values read for an element */
    int32_t stores;     /* and written */
    int32_t arithmetic; /* instructions for a vector of them */
    bool compiled; /* each access is one more instruction, and a loop's count
                      and branch; else they share bundles */
    int32_t loops; /* loops that follow each other, each over all elements,
                      whose instructions arithmetic adds up; 0: one */
    int64_t rows;  /* rows, each of which is summed up sums times */
    int32_t sums;  /* sums of a row, each sent to all of the row */
    const char *estimate; /* the reason why it is only an estimate, or NULL */
    /* bytes that all tiles need, or at most their share */
    int64_t broadcast_bytes;
    int64_t others; /* bytes of tensors on the fullest tile */
    bool followed;  /* a move, of which the caller counts what tiles receive,
                       because it knows where things lie */
    bool scattered; /* elements of the move are not neighbours on both sides */
    int64_t give_bytes; /* bytes of operands on the tile that has most */
    /* For sums and rows: from how many neighbouring elements how many outputs
     * come; 0: not set. */
    int64_t run, run_outputs;
    int64_t share, parts; /* elements of the fullest tile, and tiles that a sum
                             lies on; 0: all, spread evenly */
    ipu_product product;  /* the product, with its size and element_bytes set */
    struct ipu__plans *plans; /* borrowed: of products; NULL: none are known */
};

/*
 * Count it. tiles: how many are at work. Work that finds no room beside others
 * is counted as on a chip with more memory: whether a program fits is judged
 * as a whole.
 */
int ipu__work_cycles(const ipu_target *target, const struct ipu__work *work,
                     ipu_cycles *cycles, int64_t *tiles);

/* Counts sums of outputs, each over parts tiles, to one tile, in the fewest
 * cycles. */
ipu_cycles ipu__add_up(const ipu_target *target, int64_t outputs,
                       int64_t parts);

/* A sum; ipu_model_reduce of where its elements lie. */
int ipu__reduce_cycles(const ipu_target *target, const struct ipu__work *work,
                       ipu_cycles *cycles);

#endif
