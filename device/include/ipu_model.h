/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_model.h - what a chip would take for a piece of work, in cycles.
 *
 * A program on the chip is a sequence of supersteps: every tile computes, all
 * wait for each other (sync), then data moves (exchange). The functions here
 * count each from what the work is made of: instructions and who can issue
 * them when, words into the busiest tile, distances, bytes over links. There
 * is no table of measured times behind them.
 *
 * They neither block nor keep anything; any thread may call them. Each fills
 * a struct whose size the caller has set, on success only. A negative status
 * is IPU_ERR_ARGUMENT, or IPU_ERR_FULL for work that does not fit on the
 * chip; ipu_last_error() tells.
 */
#ifndef IPU_MODEL_H
#define IPU_MODEL_H

#include "ipu_target.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ipu_cycles {
    uint32_t size;   /* sizeof(ipu_cycles), set by the caller */
    int64_t compute; /* of the busiest tile, as the two below */
    int64_t exchange;
    int64_t sync;
    int64_t total;
    int64_t exchange_bytes;  /* into the busiest tile */
    int64_t temporary_bytes; /* on it, while the work goes on */
    int64_t code_bytes;      /* of its instructions */
    int64_t exchange_code_bytes;
    double flops;          /* of all tiles */
    const char *estimate;  /* why this is only an estimate; NULL: it is all
                              instructions, bytes and distances. Static. */
    int64_t partial_bytes; /* of temporary_bytes: sums that are not complete */
    int64_t waiting;       /* of compute: how long the mean of all tiles waits
                              for the busiest, which profilers of the chip count
                              as sync */
} ipu_cycles;

/* Seconds of cycles on a target. */
double ipu_model_seconds(const ipu_target *target, int64_t cycles);

/* ------------------------------------------------------------ on one tile */

/*
 * A loop that the contexts of a tile share. Compiled code issues one
 * instruction at a time. Code tuned by hand issues memory access and
 * arithmetic together, two loads and a store at a time, and counts in
 * hardware. Accesses of one bundle that meet in a memory element wait for
 * each other.
 */
typedef struct ipu_loop {
    uint32_t size;      /* sizeof(ipu_loop) */
    int32_t tuned;      /* 0: compiled */
    int64_t iterations; /* of all contexts together */
    int32_t loads;      /* of an iteration, as the three below */
    int32_t stores;
    int32_t arithmetic;
    int32_t control;     /* addresses, counting, branches: compiled only */
    int32_t dependent;   /* 1: each load's address is the value of the last,
                            so that one context does it all */
    int32_t one_element; /* 1: all that is accessed lies in one element */
    int32_t bare;        /* 1: without the launch and state of a vertex */
} ipu_loop;

int ipu_model_loop(const ipu_target *target, const ipu_loop *loop,
                   ipu_cycles *cycles);

/* ---------------------------------------------------------- between tiles */

typedef int32_t ipu_pattern;
enum {
    IPU_PATTERN_PAIR = 0,      /* one tile to another, all else is silent */
    IPU_PATTERN_PERMUTE = 1,   /* each tile to one other, at once */
    IPU_PATTERN_BROADCAST = 2, /* one tile to all */
    IPU_PATTERN_GATHER = 3,    /* all to one */
    IPU_PATTERN_SCATTER = 4,   /* one to all, something else to each */
    IPU_PATTERN_ALL_TO_ALL = 5 /* each something else to each */
};
enum { IPU_NUM_PATTERNS = 6 };

/* "pair"; NULL if it is none. Static. */
const char *ipu_pattern_name(ipu_pattern pattern);

/* bytes: of one message. PAIR is the mean over all pairs. */
int ipu_model_exchange(const ipu_target *target, ipu_pattern pattern,
                       int64_t bytes, ipu_cycles *cycles);

/* Reorder bytes on a tile whose pieces are 2, 4 or 8 bytes long. */
int ipu_model_rearrange(const ipu_target *target, int64_t bytes, int32_t atom,
                        ipu_cycles *cycles);

/* --------------------------------------------------------- out of the chip */

/* Bytes from chip to chip, in packets, through the queue of a link. loaded:
 * whether one tile sends, or every tile of the chip as many; and then until the
 * last message is there, as in a phase of a program, or the mean one. */
enum { IPU_LINK_IDLE = 0, IPU_LINK_LOADED = 1, IPU_LINK_MEAN = 2 };

int ipu_model_link(const ipu_system *system, int32_t from, int32_t to,
                   int64_t bytes, int32_t loaded, ipu_cycles *cycles);

/* Bytes between host and chip, and between its DRAM and the chip. */
int ipu_model_host(const ipu_system *system, int64_t bytes, ipu_cycles *cycles);
int ipu_model_streaming(const ipu_system *system, int64_t bytes,
                        ipu_cycles *cycles);

/* Cycles until all chips of a system have met. */
int ipu_model_global_sync(const ipu_system *system, int64_t *cycles);

/* ------------------------------------------------------------ on the chip */

/* batch independent products [m, k] x [k, n], or a convolution: then m counts
 * pixels of the output, k channels of the input; or the derivative of its
 * kernel: then m counts channels of the input, k pixels of the output. */
typedef struct ipu_product {
    uint32_t size;         /* sizeof(ipu_product) */
    int32_t element_bytes; /* 4: float32; 2: float16, sums in float32 */
    int64_t batch, m, k, n;
    int32_t kernel[2]; /* 1, 1: a product; 0 means 1 */
    int32_t stride[2];
    int32_t of_kernel; /* 1: the derivative of a convolution's kernel */
    int32_t grouped;   /* 1: batch counts groups of channels of a convolution,
                          which may be computed together */
    /* Of a tile's memory, the part that it may take for what it fetches and
     * adds up in between; 0: 0.6. If no plan is content with that, the one that
     * takes least is made. */
    double available_memory_proportion;
} ipu_product;

/* How a product is spread: the grid of tiles, and in how many slices of k the
 * inputs come, or in how many products, each of a slice of n, it is made. */
typedef struct ipu_plan {
    uint32_t size; /* sizeof(ipu_plan), set by the caller */
    int64_t grid_m, grid_k, grid_n;
    int64_t slices;
    int64_t tiles; /* at work */
    int64_t output_slices;
    int64_t roomy_cycles; /* of the best plan if memory were no limit: fewer
                             than the total, if memory is what limits it */
} ipu_plan;

/* The cheapest plan found, and what it costs. plan may be NULL: then the
 * product is searched once, not a second time without a limit of memory. */
int ipu_model_product(const ipu_target *target, const ipu_product *product,
                      ipu_plan *plan, ipu_cycles *cycles);

/* Elements, spread over all tiles, with loads values read and one written for
 * each, and arithmetic instructions. */
int ipu_model_elementwise(const ipu_target *target, int64_t elements,
                          int32_t element_bytes, int32_t loads,
                          int32_t arithmetic, ipu_cycles *cycles);

/* Elements, spread over all tiles, to outputs sums, on as many stages of
 * tiles as are fastest. */
int ipu_model_reduce(const ipu_target *target, int64_t elements,
                     int64_t outputs, int32_t element_bytes,
                     ipu_cycles *cycles);

/* One step of a stencil of points points over a grid in dims dimensions,
 * spread in blocks, halos exchanged first. tuned as in ipu_loop. */
int ipu_model_stencil(const ipu_target *target, int32_t dims, int64_t side,
                      int32_t points, int32_t tuned, ipu_cycles *cycles);

/*
 * A matrix [rows, columns] times a vector, one vertex for each of split parts
 * of a row, then one for each sum. split 0: the best. On success split_used
 * (may be NULL) is that. sync is what the two exchanges need beside; models
 * that know of none leave it out.
 */
int ipu_model_matvec(const ipu_target *target, int64_t rows, int64_t columns,
                     int64_t split, int64_t *split_used, ipu_cycles *cycles);

#ifdef __cplusplus
}
#endif

#endif
