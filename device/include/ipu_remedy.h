/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_remedy.h - remedies for a program that does not fit: changes that make it
 * take less of a tile, each with the bytes and the time that the program would
 * then take. ipu.h includes it.
 *
 * The library changes a copy of the graph as its author would, and compiles it,
 * so the numbers are those that the author would get. The text of IPU_ERR_FULL
 * lists all remedies; this function returns one of them as numbers. Errors and
 * threads are as in ipu.h; docs/MEMORY.md explains how to apply each remedy.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
#elif !defined(IPU_REMEDY_H)
#define IPU_REMEDY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t ipu_remedy_kind;
enum {
    IPU_REMEDY_HALF = 0,       /* float16 for all float32 but scalars */
    IPU_REMEDY_ACCUMULATE = 1, /* 1 / parts of the batch in a run, and gradients
                                  accumulated over parts runs; without
                                  gradients: parts runs */
    IPU_REMEDY_RECOMPUTE = 2,  /* ipu_allow_recompute, checkpoints chosen */
    IPU_REMEDY_OFFLOAD = 3,    /* optimiser state in DRAM beside the chip */
    IPU_REMEDY_OFFLOAD_ALL = 4, /* weights and accumulators there too:
                                   ipu_offload_variable */
    IPU_REMEDY_SHARD = 5,       /* parts chips: ipu_shard_by_time */
    IPU_REMEDY_PIPELINE = 6,    /* parts stages, each on a chip, with the batch
                                   cut into 2 parts mini-batches: ipu_pipeline,
                                   grouped schedule; the slowest stage takes as
                                   little time as can be */
    IPU_REMEDY_PLACEMENT = 7,   /* the compiler's mapping of tensors instead of
                                   that of ipu_map */
    IPU_NUM_REMEDIES = 8
};

/* Returns the name of a remedy ("recompute"), static, or NULL. */
const char *ipu_remedy_name(ipu_remedy_kind kind);

typedef struct ipu_remedy {
    uint32_t size; /* sizeof(ipu_remedy), set by the caller */
    ipu_remedy_kind kind;
    int32_t parts; /* number of parts of the batch, chips, or stages; 1 for a
                      remedy without parts */
    int32_t runs;  /* runs per update; without updates, runs per batch */
    int32_t fits;  /* 1: the program would fit */
    int32_t reserved;
    int64_t tile_bytes;       /* bytes on the fullest tile (of all chips) */
    int64_t bytes_per_tile;   /* size of a tile's memory */
    int64_t remote_bytes;     /* bytes of variables in DRAM */
    int64_t cycles;           /* cycles of that number of runs */
    double seconds;           /* time of these cycles on the chip */
    int64_t streaming_cycles; /* part of cycles: to and from DRAM */
} ipu_remedy;

/*
 * Tries one remedy on a graph. options are those of ipu_compile_with. parts is
 * the number of parts; 0 chooses the smallest of 2, 4, 8 ... that fits, or the
 * largest possible; a remedy without parts takes 0 or 1. The function compiles
 * once, or a few times if parts is 0. Variables with IPU_OFFLOAD_AUTO are tried
 * on the chip first, with any number of parts, and then in DRAM; remote_bytes
 * is not 0 if the program fits only with them there. Over several chips, the
 * function compiles up to ten times more for each number of parts, to find the
 * fastest division that fits.
 *
 * Returns IPU_ERR_STATE if the remedy cannot be applied to the program; the
 * text says why. Progress is reported as by ipu_compile_with, and can stop it.
 */
int ipu_remedy_try(const ipu_graph *graph, const ipu_compile_options *options,
                   ipu_remedy_kind kind, int32_t parts, ipu_remedy *remedy);

#ifdef __cplusplus
}
#endif

#endif
