/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.h - the work of a step on the chip, as its op describes it (struct
 * ipu__op, cost).
 */
#ifndef IPU_TARGET_WORK_H
#define IPU_TARGET_WORK_H

#include <stdbool.h>

#include "target/plans.h"

enum ipu__work_kind {
    IPU__WORK_NONE,     /* none: the output is a view of the input */
    IPU__WORK_ELEMENTS, /* each element by itself */
    IPU__WORK_SUM,      /* sums of elements, with fewer outputs */
    IPU__WORK_ROWS,    /* work on single elements, and sums over rows of them */
    IPU__WORK_MOVE,    /* outputs that come from other tiles */
    IPU__WORK_PRODUCT, /* a product; if there are rows, with these in between */
    IPU__WORK_STREAMING /* outputs that move between the chip and streaming
                           memory */
};

/* The bytes that the hardware moves at once to or from streaming memory. */
#define IPU__STREAMING_BYTES ((int64_t)128 << 20)

struct ipu__work {
    enum ipu__work_kind kind;
    int32_t element_bytes; /* 2 or 4 */
    int64_t elements;
    int64_t outputs;
    int32_t loads;      /* values read for an element */
    int32_t stores;     /* values written for an element */
    int32_t arithmetic; /* instructions for a vector of elements */
    /* each access is one more instruction, as are a loop's count and branch;
     * otherwise they share bundles */
    bool compiled;
    /* consecutive loops, each over all elements, whose instructions
     * arithmetic adds up; 0: one */
    int32_t loops;
    int64_t rows; /* rows, each of which is summed up sums times */
    int32_t sums; /* sums of a row, each sent to the whole row */
    /* the reason why the count is only an estimate, or NULL */
    const char *estimate;
    /* bytes that all tiles need, or at most their share */
    int64_t broadcast_bytes;
    int64_t others; /* bytes of tensors on the fullest tile */
    /* a move whose caller counts what tiles receive, because it knows the
     * placement */
    bool followed;
    bool scattered; /* elements of the move are not neighbours on both sides */
    int64_t give_bytes; /* bytes of operands on the tile that has most */
    /* Sums and rows set the number of neighbouring elements that are reduced
     * together, and the number of outputs they give; 0: not set. */
    int64_t run, run_outputs;
    /* elements of the fullest tile, and number of tiles that a sum lies on;
     * 0: all, spread evenly */
    int64_t share, parts;
    ipu_product product; /* the product, with its size and element_bytes set */
    /* borrowed: known plans of products; NULL: none */
    struct ipu__plans *plans;
};

/*
 * Counts the cycles of the work. tiles is set to the number of tiles that work.
 * Work that finds no room next to other data is counted as on a chip with more
 * memory: only the whole program is checked for its size.
 */
int ipu__work_cycles(const ipu_target *target, const struct ipu__work *work,
                     ipu_cycles *cycles, int64_t *tiles);

/* Counts sums of outputs, each over parts tiles, to one tile, in the fewest
 * cycles. */
ipu_cycles ipu__add_up(const ipu_target *target, int64_t outputs,
                       int64_t parts);

/* Counts the cycles of a sum, as ipu_model_reduce does, by the placement of its
 * elements. */
int ipu__reduce_cycles(const ipu_target *target, const struct ipu__work *work,
                       ipu_cycles *cycles);

#endif
