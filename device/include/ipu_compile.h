/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_compile.h - from a graph to a program for a chip, and what that takes:
 * memory, cycles, code. ipu.h includes it.
 */
#ifndef IPU_H
#include "ipu.h" /* which comes back here once it has said what this needs */
#elif !defined(IPU_COMPILE_H)
#define IPU_COMPILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- compile */

/*
 * Compile: orders the ops so that each host call comes as early as it can
 * (gradients leave while the backward pass still runs), drops what no
 * output, host call or assignment needs, plans which tensors share memory and
 * places them. target NULL: a Mk2. The graph may be freed afterwards. Does
 * not change the graph; the same graph gives the same executable.
 *
 * IPU_ERR_FULL if a tile would hold more than it has memory: which tile, at
 * which step, how many bytes over, what lies there, and what would change
 * that, each with the bytes and the time that it would make of it.
 */
int ipu_compile(const ipu_graph *graph, const ipu_target *target,
                ipu_executable **executable);

/*
 * Told during a compilation: when each phase begins, and when a hundredth more
 * of it is done; phases and totals are not known before. On the compiling
 * thread. Not 0 stops the compilation: IPU_ERR_CALLBACK, and nothing is left of
 * it.
 */
typedef int (*ipu_progress_fn)(void *context, const char *phase, int64_t done,
                               int64_t total);

/* Passes that make a program smaller and faster. None changes a bit of any
 * result, payloads of NaN aside. */
enum {
    IPU_PASS_FOLD = 1,     /* what constants make is computed when compiling */
    IPU_PASS_SIMPLIFY = 2, /* x * 1, a reshape of a reshape, ... */
    IPU_PASS_MERGE = 4,    /* what is computed twice is computed once */
    IPU_PASS_FUSE = 8,     /* ops by element that follow each other are one */
    IPU_PASS_ORDER = 16,   /* steps come in an order that needs less memory */
    IPU_PASS_OUTLINE = 32  /* what does not fit otherwise has equal steps share
                              code, which may take cycles: see ipu_step_info */
};

typedef struct ipu_compile_options {
    uint32_t size;               /* sizeof(ipu_compile_options) */
    const ipu_target *target;    /* borrowed during the call; NULL: a Mk2 */
    int32_t allow_out_of_memory; /* 1: compile what does not fit, too; the
                                    engine runs it all the same */
    ipu_progress_fn progress;    /* NULL: nobody asks */
    void *progress_context;      /* borrowed during the call */
    uint32_t without;            /* IPU_PASS_* that are left out; 0: none */
    int32_t brief;               /* 1: IPU_ERR_FULL says what does not fit, but
                                    not what would change that, for which the
                                    program is compiled with each remedy */
    int32_t reserved;
    /* Of a tile's memory, the part that a product may take for what it fetches
     * and adds up in between: Poplar's availableMemoryProportion. Less of it
     * makes plans with less temporary memory and more cycles, which change no
     * bit of a result. More than 0, at most 1; 0: 0.6. A product for which that
     * is too little takes the least that will do. */
    double available_memory_proportion;
    /* ... for matrix products (attention too), and for convolutions and their
     * derivatives; 0: as above. What ipu_available_memory_proportion has said
     * of a product counts before all of these. */
    double matmul_memory_proportion;
    double convolution_memory_proportion;
} ipu_compile_options;

/* The same, with options. */
int ipu_compile_with(const ipu_graph *graph, const ipu_compile_options *options,
                     ipu_executable **executable);
void ipu_executable_free(ipu_executable *executable);

typedef struct ipu_memory_info {
    uint32_t size;             /* sizeof(ipu_memory_info), set by the caller */
    int32_t steps;             /* ops in the program */
    int64_t always_live_bytes; /* variables */
    int64_t peak_bytes;        /* always live, and the most of the rest alive
                                  at one step */
    int64_t planned_bytes;     /* what the engine allocates for tensors */
    int64_t unshared_bytes;    /* ... if no two tensors shared memory */
    int64_t bytes_on_fullest_tile; /* of tensors alone */
    /* With code and what steps need for themselves: */
    int64_t code_bytes_per_tile;
    int64_t bytes_per_tile; /* that there are */
    int64_t fullest_tile_bytes;
    int32_t fullest_tile;
    int32_t fullest_step; /* when it is */
    int64_t remote_bytes; /* of variables in the DRAM beside the chip, which
                             none of the above but planned_bytes has */
    int64_t shared_code_bytes; /* how much more code there would be on each tile
                                  if equal steps shared none */
    int64_t automatic_bytes;   /* of remote_bytes: of variables for which the
                                  program has asked for IPU_OFFLOAD_AUTO */
    int64_t tile_bytes_without; /* what the fullest tile would hold, at least,
                                   if these lay on the chip; 0: they do */
} ipu_memory_info;

int ipu_executable_memory(const ipu_executable *executable,
                          ipu_memory_info *info);

/* One step on the chip. Texts are borrowed until the executable is freed. */
typedef struct ipu_step_info {
    uint32_t size;          /* sizeof(ipu_step_info), set by the caller */
    const char *op;         /* "matmul", "host_call" */
    const char *tensor;     /* what it makes, or what the host gets */
    int64_t compute_cycles; /* of the busiest tile, as those below */
    int64_t exchange_cycles;
    int64_t sync_cycles;
    int64_t total_cycles;
    int64_t exchange_bytes;  /* into it */
    int64_t temporary_bytes; /* that the step itself needs, on each tile */
    double flops;
    int32_t busy_tiles; /* that compute */
    int32_t fullest_tile;
    int64_t fullest_tile_bytes; /* all that is on it during the step */
    const char *estimate; /* why the cycles are only an estimate, or NULL */
    int32_t update_count; /* it runs every so many runs; 1: in each */
    int32_t again;        /* 1: it computes an activation again */
    const char *parts;    /* of a "fused" step: "conv2d, bias_add"; else NULL */
    int32_t code_of;      /* the step whose code it runs; itself */
    int32_t calls;        /* how many steps run that code: more than 1, if they
                             are equal and the program did not fit otherwise */
    int64_t waiting_cycles; /* of compute_cycles: how long the mean of all tiles
                               waits for the busiest */
    int64_t copied_bytes;   /* to where that code has its operands and back, on
                               the tile that has most: their cycles are among
                               compute_cycles */
    double available_memory_proportion; /* of a product, or a fused step that
                                           begins with one; else 0 */
} ipu_step_info;

int ipu_executable_step(const ipu_executable *executable, int32_t step,
                        ipu_step_info *info);

/* Memory of one tile. */
typedef struct ipu_tile_info {
    uint32_t size; /* sizeof(ipu_tile_info), set by the caller */
    int64_t code_bytes;
    int64_t always_live_bytes;     /* variables */
    int64_t not_always_live_bytes; /* the rest, when the tile is fullest */
    int64_t peak_bytes;            /* all three */
    int32_t peak_step;
    /* Of these, code: */
    int64_t exchange_code_bytes;
    int64_t state_bytes; /* of vertices; the rest is vertex code */
    /* always live: */
    int64_t constant_bytes; /* the rest are variables */
    /* not always live: */
    int64_t tensor_bytes;    /* activations, gradients, streams */
    int64_t exchange_bytes;  /* received since tensors lie as they do */
    int64_t partial_bytes;   /* sums that are not complete */
    int64_t temporary_bytes; /* these two, and what the step fetches by plan */
} ipu_tile_info;

int ipu_executable_tile(const ipu_executable *executable, int32_t tile,
                        ipu_tile_info *info);

/* One step as one tile sees it: a tile without work waits (sync) while others
 * compute. cycles->size must be set. */
int ipu_executable_tile_cycles(const ipu_executable *executable, int32_t step,
                               int32_t tile, ipu_cycles *cycles);

/* A whole run on the chip. */
typedef struct ipu_program_cycles {
    uint32_t size; /* sizeof(ipu_program_cycles), set by the caller */
    int64_t compute;
    int64_t exchange;
    int64_t sync;
    int64_t host;  /* inputs, outputs and host calls */
    int64_t total; /* with I/O tiles, host goes on beside the rest */
    double seconds;
    double flops;
    int32_t estimates; /* steps whose cycles are only estimates */
    /* The above are of a run with an update (ipu_training.h). */
    int64_t update;          /* of total: what does not run each time */
    int64_t mean_total;      /* of a run, over all runs */
    int64_t streaming;       /* of exchange: to and from the DRAM beside */
    int64_t streaming_bytes; /* that go there or come from there */
    int64_t again;           /* of total: activations computed again */
    int64_t waiting; /* of compute: how long the mean of all tiles waits for the
                        busiest, which profilers of the chip count as sync */
} ipu_program_cycles;

int ipu_executable_cycles(const ipu_executable *executable,
                          ipu_program_cycles *info);

/* The program as text, a line a step: op, inputs, shape, place (@offset), and
 * how many bytes are alive.
 * Writes at most size bytes with the NUL, returns the length it needs. */
int64_t ipu_executable_print(const ipu_executable *executable, char *text,
                             int64_t size);

#ifdef __cplusplus
}
#endif

#endif
