/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_model.h - a model of how many cycles a chip takes for a piece of work.
 *
 * A program on the chip is a sequence of supersteps: every tile computes, all
 * wait for each other (sync), then data moves (exchange). The functions here
 * count each from what the work is made of: instructions and who can issue
 * them when, words into the busiest tile, distances, bytes over links. There
 * is no table of measured times behind them.
 *
 * The functions do not block and have no state; any thread may call them. Each
 * fills a struct whose size the caller has set, on success only. A negative
 * status is IPU_ERR_ARGUMENT, or IPU_ERR_FULL for work that does not fit on the
 * chip; ipu_last_error() returns the text.
 */
#ifndef IPU_MODEL_H
#define IPU_MODEL_H

#include "ipu_target.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The cost of a piece of work, on the busiest tile. */
typedef struct ipu_cycles {
    uint32_t size; /* sizeof(ipu_cycles), set by the caller */
    int64_t compute;
    int64_t exchange;
    int64_t sync;
    int64_t total;
    int64_t exchange_bytes;  /* bytes that the tile receives */
    int64_t temporary_bytes; /* memory that it needs during the work */
    int64_t code_bytes;      /* bytes of instructions */
    int64_t exchange_code_bytes;
    double flops;          /* floating-point operations of all tiles */
    const char *estimate;  /* why this is only an estimate; NULL: it counts
                              instructions, bytes and distances. Static. */
    int64_t partial_bytes; /* part of temporary_bytes: partial sums */
    int64_t waiting;       /* part of compute: mean time for which tiles wait
                              for the busiest, which profilers of the chip count
                              as sync */
} ipu_cycles;

/* Converts cycles of a target to seconds. */
double ipu_model_seconds(const ipu_target *target, int64_t cycles);

/* ------------------------------------------------------------ on one tile */

/*
 * A loop whose iterations the contexts of a tile share. Compiled code issues
 * one instruction at a time. Code tuned by hand issues memory accesses and
 * arithmetic together, two loads and a store at a time, and counts iterations
 * in hardware. Two accesses of one bundle to the same memory element take
 * turns.
 */
typedef struct ipu_loop {
    uint32_t size;      /* sizeof(ipu_loop) */
    int32_t tuned;      /* 0: compiled */
    int64_t iterations; /* number for all contexts together */
    int32_t loads;      /* instructions of one iteration, by kind */
    int32_t stores;
    int32_t arithmetic;
    int32_t control;     /* addresses, counting, branches; 0 in tuned code */
    int32_t dependent;   /* 1: each load needs the value of the last one, so
                            that only one context works */
    int32_t one_element; /* 1: all data lies in one memory element */
    int32_t bare;        /* 1: without the launch and state of a vertex */
} ipu_loop;

/* Returns the cycles of a loop on one tile. */

int ipu_model_loop(const ipu_target *target, const ipu_loop *loop,
                   ipu_cycles *cycles);

/* ---------------------------------------------------------- between tiles */

typedef int32_t ipu_pattern;
enum {
    IPU_PATTERN_PAIR = 0,      /* one tile sends to one other */
    IPU_PATTERN_PERMUTE = 1,   /* each tile sends to one other at once */
    IPU_PATTERN_BROADCAST = 2, /* one tile sends the same to all */
    IPU_PATTERN_GATHER = 3,    /* all tiles send to one */
    IPU_PATTERN_SCATTER = 4,   /* one tile sends each its own message */
    IPU_PATTERN_ALL_TO_ALL = 5 /* each tile sends each its own message */
};
enum { IPU_NUM_PATTERNS = 6 };

/* Returns the name of a pattern ("pair"), static, or NULL. */
const char *ipu_pattern_name(ipu_pattern pattern);

/* Returns the cycles of an exchange of messages of `bytes` bytes each. PAIR is
 * the mean over all pairs of tiles. */
int ipu_model_exchange(const ipu_target *target, ipu_pattern pattern,
                       int64_t bytes, ipu_cycles *cycles);

/* Returns the cycles to reorder data on one tile in pieces of 2, 4 or 8 bytes.
 */
int ipu_model_rearrange(const ipu_target *target, int64_t bytes, int32_t atom,
                        ipu_cycles *cycles);

/* --------------------------------------------------------- out of the chip */

enum {
    IPU_LINK_IDLE = 0,   /* one tile sends */
    IPU_LINK_LOADED = 1, /* every tile sends; until the last message arrives */
    IPU_LINK_MEAN = 2    /* every tile sends; until the mean message arrives */
};

/* Returns the cycles to send bytes from chip to chip, in packets, through the
 * queue of a link. loaded is an IPU_LINK_*. */
int ipu_model_link(const ipu_system *system, int32_t from, int32_t to,
                   int64_t bytes, int32_t loaded, ipu_cycles *cycles);

/* Return the cycles to move bytes between the host and the chip, and between
 * DRAM and the chip. */
int ipu_model_host(const ipu_system *system, int64_t bytes, ipu_cycles *cycles);
int ipu_model_streaming(const ipu_system *system, int64_t bytes,
                        ipu_cycles *cycles);

/* Returns the cycles to synchronise all chips of a system. */
int ipu_model_global_sync(const ipu_system *system, int64_t *cycles);

/* ------------------------------------------------------------ on the chip */

/* A number of independent products [m, k] x [k, n], or a convolution, where m
 * counts pixels of the output and k channels of the input, or the derivative of
 * its kernel, where m counts channels of the input and k pixels of the output.
 */
typedef struct ipu_product {
    uint32_t size;         /* sizeof(ipu_product) */
    int32_t element_bytes; /* 4: float32; 2: float16, sums in float32 */
    int64_t batch, m, k, n;
    int32_t kernel[2]; /* 1, 1 for a product; 0 means 1 */
    int32_t stride[2];
    int32_t of_kernel; /* 1: the derivative of a convolution's kernel */
    int32_t grouped;   /* 1: batch counts groups of channels of a convolution,
                          which may be computed together */
    /* The fraction of a tile's memory that the product may use for fetched
     * operands and partial sums; 0: 0.6. If no plan fits, the model takes the
     * plan that needs least. */
    double available_memory_proportion;
} ipu_product;

/* A plan says how a product is spread over the chip: the grid of tiles, the
 * number of slices of k in which inputs are fetched, and the number of slices
 * of n into which the product is cut. */
typedef struct ipu_plan {
    uint32_t size; /* sizeof(ipu_plan), set by the caller */
    int64_t grid_m, grid_k, grid_n;
    int64_t slices;
    int64_t tiles; /* number of tiles that compute */
    int64_t output_slices;
    int64_t roomy_cycles; /* cycles of the best plan without a memory limit:
                             fewer than the total if memory limits the plan */
} ipu_plan;

/* Finds the cheapest plan, and returns it and its cycles. plan may be NULL: the
 * model then does not search a second time without a memory limit. */
int ipu_model_product(const ipu_target *target, const ipu_product *product,
                      ipu_plan *plan, ipu_cycles *cycles);

/* Returns the cycles of elementwise work spread over all tiles: for each
 * element `loads` values are read, one is written, and `arithmetic`
 * instructions are issued. */
int ipu_model_elementwise(const ipu_target *target, int64_t elements,
                          int32_t element_bytes, int32_t loads,
                          int32_t arithmetic, ipu_cycles *cycles);

/* Returns the cycles to reduce elements, spread over all tiles, to `outputs`
 * sums, in as many stages of tiles as is fastest. */
int ipu_model_reduce(const ipu_target *target, int64_t elements,
                     int64_t outputs, int32_t element_bytes,
                     ipu_cycles *cycles);

/* Returns the cycles of one step of a stencil with `points` points over a grid
 * of `dims` dimensions, spread over the tiles in blocks, whose halos are
 * exchanged first. tuned has the meaning that it has in ipu_loop. */
int ipu_model_stencil(const ipu_target *target, int32_t dims, int64_t side,
                      int32_t points, int32_t tuned, ipu_cycles *cycles);

/*
 * Returns the cycles to multiply a matrix [rows, columns] by a vector, with one
 * vertex for each of `split` parts of a row, and then one for each sum. split 0
 * chooses the best split, and *split_used (may be NULL) receives it. The sync
 * between the two exchanges is counted separately.
 */
int ipu_model_matvec(const ipu_target *target, int64_t rows, int64_t columns,
                     int64_t split, int64_t *split_used, ipu_cycles *cycles);

#ifdef __cplusplus
}
#endif

#endif
