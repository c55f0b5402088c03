/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_remedy.h - what would make a program take less of a tile: each remedy
 * with the bytes and the time that the program would then have. ipu.h includes
 * it.
 *
 * A copy of the graph is changed as its author would change it, and compiled:
 * what is told is what the author then gets. ipu_compile tells all of them in
 * the text of IPU_ERR_FULL; this tells them one at a time, as numbers. Errors
 * and threads are as in ipu.h; docs/MEMORY.md says how to do each to a program.
 */
#ifndef IPU_H
#include "ipu.h" /* which comes back here once it has said what a graph is */
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
    IPU_REMEDY_OFFLOAD = 3,    /* what only the update uses, beside the chip */
    IPU_REMEDY_OFFLOAD_ALL = 4, /* ... and weights and accumulators, too:
                                   ipu_offload_variable */
    IPU_REMEDY_SHARD = 5,       /* parts chips: ipu_shard_automatically */
    IPU_REMEDY_PIPELINE = 6,    /* parts stages, each on a chip, for 2 parts
                                   mini-batches of the batch: ipu_pipeline,
                                   grouped schedule */
    IPU_REMEDY_PLACEMENT = 7,   /* tensors where the compiler puts them, instead
                                   of where ipu_map does */
    IPU_NUM_REMEDIES = 8
};

/* "recompute"; NULL if it is none. Static. */
const char *ipu_remedy_name(ipu_remedy_kind kind);

typedef struct ipu_remedy {
    uint32_t size; /* sizeof(ipu_remedy), set by the caller */
    ipu_remedy_kind kind;
    int32_t parts; /* of the batch, chips, or stages; 1: of a remedy that has
                      none */
    int32_t runs;  /* up to an update; without updates: for the whole batch */
    int32_t fits;  /* 1: the program would be compiled */
    int32_t reserved;
    int64_t tile_bytes;     /* on the fullest tile (of all chips), with code */
    int64_t bytes_per_tile; /* that there are */
    int64_t remote_bytes;   /* of variables beside the chip */
    int64_t cycles;         /* of so many runs */
    double seconds;         /* ... on the chip */
    int64_t streaming_cycles; /* of cycles: to and from beside the chip */
} ipu_remedy;

/*
 * What one remedy would make of the program. options are those of
 * ipu_compile_with. parts: how many; 0: the fewest that fit, of 2, 4, 8 ..., or
 * as many as there can be; of a remedy that has none, 0 or 1. Compiles once, or
 * with parts 0 a few times. What is left to the compiler (IPU_OFFLOAD_AUTO) is
 * tried on the chip first, with any number of parts, and beside it if the
 * program fits only so: then remote_bytes is not 0.
 *
 * IPU_ERR_STATE if the program is not one that could be changed so: the text
 * says why not. Progress is told as by ipu_compile_with, and can end it.
 */
int ipu_remedy_try(const ipu_graph *graph, const ipu_compile_options *options,
                   ipu_remedy_kind kind, int32_t parts, ipu_remedy *remedy);

#ifdef __cplusplus
}
#endif

#endif
