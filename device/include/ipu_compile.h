/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_compile.h - compiling a graph for a chip, and queries on the compiled
 * program: its memory, cycles and code. ipu.h includes it.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
#elif !defined(IPU_COMPILE_H)
#define IPU_COMPILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- compile */

/*
 * Compiles a graph. The compiler orders the ops so that each host call comes as
 * early as possible (gradients leave while the backward pass still runs), drops
 * ops that no output, host call or assignment needs, decides which tensors
 * share memory, and places them. target NULL stands for a Mk2. The graph does
 * not change and may be freed afterwards; the same graph gives the same
 * executable.
 *
 * Returns IPU_ERR_FULL if a tile would hold more bytes than its memory has. The
 * text names the tile, the step, the excess and the contents, and each remedy
 * with the bytes and the time that the program would then take. It is one line:
 * a sentence, then ". " and one of the titles below, each followed by its items
 * with "; " before each, so that a program can print it as a list.
 */
#define IPU_FULL_REMEDIES "What would change that"
/* Remedies that the program cannot have. */
#define IPU_FULL_REASONS "What would not"
int ipu_compile(const ipu_graph *graph, const ipu_target *target,
                ipu_executable **executable);

/*
 * Reports progress of a compilation, on the compiling thread: when a phase
 * begins, and whenever a hundredth more of it is done. Phases and totals are
 * not known in advance. A return other than 0 stops the compilation, which then
 * returns IPU_ERR_CALLBACK and leaves nothing behind.
 */
typedef int (*ipu_progress_fn)(void *context, const char *phase, int64_t done,
                               int64_t total);

/* Passes that make a program smaller and faster. None changes a bit of any
 * result, except payloads of NaN. */
enum {
    IPU_PASS_FOLD = 1,     /* computes ops on constants at compile time */
    IPU_PASS_SIMPLIFY = 2, /* removes x * 1, a reshape of a reshape, ... */
    IPU_PASS_MERGE = 4,    /* computes equal expressions once */
    IPU_PASS_FUSE = 8,     /* joins consecutive elementwise ops into one step */
    IPU_PASS_ORDER = 16,   /* orders the steps so that they need less memory */
    IPU_PASS_OUTLINE = 32  /* lets equal steps share code if the program does
                              not fit otherwise; this may cost cycles, see
                              ipu_step_info */
};

typedef struct ipu_compile_options {
    uint32_t size;               /* sizeof(ipu_compile_options) */
    const ipu_target *target;    /* borrowed during the call; NULL: a Mk2 */
    int32_t allow_out_of_memory; /* 1: a program that does not fit is compiled
                                    too, and the engine can run it */
    ipu_progress_fn progress;    /* NULL: progress is not reported */
    void *progress_context;      /* borrowed during the call */
    uint32_t without;            /* sum of IPU_PASS_* to leave out; 0: none */
    int32_t brief;               /* 1: the text of IPU_ERR_FULL has no remedies,
                                    to compute which the program is compiled
                                    with each of them */
    int32_t reserved;
    /* The fraction of a tile's memory that a product may use for fetched
     * operands and partial sums: Poplar's availableMemoryProportion, more than
     * 0 and at most 1; 0 stands for 0.6. A smaller one makes plans with less
     * temporary memory and more cycles, which change no bit of a result. A
     * product for which it is too little takes the least that will do. */
    double available_memory_proportion;
    /* The same for matrix products and attention, and for convolutions and
     * their derivatives; 0: the field above. The proportion that
     * ipu_available_memory_proportion gave a product overrides all three. */
    double matmul_memory_proportion;
    double convolution_memory_proportion;
} ipu_compile_options;

/* Compiles like ipu_compile, with options. */
int ipu_compile_with(const ipu_graph *graph, const ipu_compile_options *options,
                     ipu_executable **executable);
void ipu_executable_free(ipu_executable *executable);

typedef struct ipu_memory_info {
    uint32_t size;             /* sizeof(ipu_memory_info), set by the caller */
    int32_t steps;             /* number of steps in the program */
    int64_t always_live_bytes; /* bytes of variables */
    int64_t peak_bytes;        /* variables, and the most of all other tensors
                                  alive at one step */
    int64_t planned_bytes;     /* bytes that the engine allocates for tensors */
    int64_t unshared_bytes;    /* the same if no two tensors shared memory */
    int64_t bytes_on_fullest_tile; /* bytes of tensors alone */
    /* The sizes below include code and the temporary memory of steps. */
    int64_t code_bytes_per_tile;
    int64_t bytes_per_tile; /* size of a tile's memory */
    int64_t fullest_tile_bytes;
    int32_t fullest_tile;
    int32_t fullest_step; /* the step at which that tile is fullest */
    int64_t remote_bytes; /* bytes of variables in the DRAM beside the chip; of
                             the fields above only planned_bytes has them */
    int64_t shared_code_bytes; /* code that sharing it among equal steps saves
                                  on each tile */
    int64_t automatic_bytes;   /* the part of remote_bytes that is there because
                                  of IPU_OFFLOAD_AUTO */
    int64_t tile_bytes_without; /* what the fullest tile would hold, at least,
                                   with these on the chip; 0: they are */
} ipu_memory_info;

/* Returns the memory that the program takes. */
int ipu_executable_memory(const ipu_executable *executable,
                          ipu_memory_info *info);

/* A variable of a program. Texts are borrowed until the executable is freed. */
typedef struct ipu_variable_info {
    uint32_t size; /* sizeof(ipu_variable_info), set by the caller */
    const char *name;
    ipu_dtype dtype;
    int32_t ndim;
    int64_t shape[IPU_MAX_DIMS];
    int32_t own; /* 1: each replica has its own (ipu_replicas_check_equal) */
} ipu_variable_info;

/* Returns variable number 0, 1, ... of a program: all that its engines keep
 * from run to run, such as weights, the state of optimisers and counters.
 * Returns IPU_ERR_NAME if there are not so many. */
int ipu_executable_variable(const ipu_executable *executable, int32_t variable,
                            ipu_variable_info *info);

/* One step on the chip. Cycles are those of the busiest tile. Texts are
 * borrowed until the executable is freed. */
typedef struct ipu_step_info {
    uint32_t size;      /* sizeof(ipu_step_info), set by the caller */
    const char *op;     /* "matmul", "host_call" */
    const char *tensor; /* the tensor that it makes or that the host gets */
    int64_t compute_cycles;
    int64_t exchange_cycles;
    int64_t sync_cycles;
    int64_t total_cycles;
    int64_t exchange_bytes;  /* bytes that the busiest tile receives */
    int64_t temporary_bytes; /* temporary memory of the step on each tile */
    double flops;
    int32_t busy_tiles; /* number of tiles that compute */
    int32_t fullest_tile;
    int64_t fullest_tile_bytes; /* bytes on that tile during the step */
    const char *estimate; /* why the cycles are only an estimate, or NULL */
    int32_t update_count; /* the step runs in every update_count-th run */
    int32_t again;        /* 1: the step recomputes an activation */
    const char *parts;    /* ops of a "fused" step: "conv2d, bias_add", or
                             NULL */
    int32_t code_of;      /* the step whose code this step runs; or itself */
    int32_t calls;        /* number of steps that run that code: more than 1 if
                             IPU_PASS_OUTLINE lets equal steps share it */
    int64_t waiting_cycles; /* part of compute_cycles: mean time for which tiles
                               wait for the busiest */
    int64_t copied_bytes;   /* bytes copied to and from the operands of shared
                               code, on the tile with most; compute_cycles
                               includes their cycles */
    double available_memory_proportion; /* of a product, or a fused step that
                                           begins with one; else 0 */
} ipu_step_info;

/* Returns step number 0 to ipu_memory_info.steps - 1. */
int ipu_executable_step(const ipu_executable *executable, int32_t step,
                        ipu_step_info *info);

/* Memory of one tile, at the step at which it is fullest. */
typedef struct ipu_tile_info {
    uint32_t size; /* sizeof(ipu_tile_info), set by the caller */
    int64_t code_bytes;
    int64_t always_live_bytes;     /* variables */
    int64_t not_always_live_bytes; /* all other tensors */
    int64_t peak_bytes;            /* sum of the three fields above */
    int32_t peak_step;
    /* These are parts of code_bytes; the rest is vertex code. */
    int64_t exchange_code_bytes;
    int64_t state_bytes; /* state of vertices */
    /* This is part of always_live_bytes; the rest are variables. */
    int64_t constant_bytes;
    /* These are parts of not_always_live_bytes. */
    int64_t tensor_bytes;    /* activations, gradients, streams */
    int64_t exchange_bytes;  /* operands received because of the mapping */
    int64_t partial_bytes;   /* partial sums */
    int64_t temporary_bytes; /* these two, and operands fetched by plan */
} ipu_tile_info;

/* Returns the memory of a tile. */
int ipu_executable_tile(const ipu_executable *executable, int32_t tile,
                        ipu_tile_info *info);

/* Returns the cycles of one step as one tile sees it: a tile without work
 * waits (sync) while others compute. cycles->size must be set. */
int ipu_executable_tile_cycles(const ipu_executable *executable, int32_t step,
                               int32_t tile, ipu_cycles *cycles);

/* A whole run on the chip; with update regions (ipu_training.h), a run that
 * updates. */
typedef struct ipu_program_cycles {
    uint32_t size; /* sizeof(ipu_program_cycles), set by the caller */
    int64_t compute;
    int64_t exchange;
    int64_t sync;
    int64_t host;  /* inputs, outputs and host calls */
    int64_t total; /* less than the sum if I/O tiles overlap host with it */
    double seconds;
    double flops;
    int32_t estimates;       /* steps whose cycles are only estimates */
    int64_t update;          /* part of total that does not run in each run */
    int64_t mean_total;      /* mean of total over all runs */
    int64_t streaming;       /* part of exchange: to and from DRAM */
    int64_t streaming_bytes; /* bytes to and from DRAM */
    int64_t again;           /* part of total: recomputed activations */
    int64_t waiting;         /* part of compute: mean time for which tiles wait
                                for the busiest, which profilers of the chip
                                count as sync */
    /* Collectives of the network (ipu_network.h): how long the program waits
     * for them, a part of exchange; how long the network is busy, mostly while
     * the program computes; and the bytes that the device sends. */
    int64_t network;
    int64_t network_busy;
    int64_t network_bytes;
} ipu_program_cycles;

/* Returns the cycles of a run. */
int ipu_executable_cycles(const ipu_executable *executable,
                          ipu_program_cycles *info);

/* Prints the program, a line a step: op, inputs, shape, place (@offset), and
 * the bytes that are alive. Writes at most size bytes with the NUL, returns the
 * length that the text needs. */
int64_t ipu_executable_print(const ipu_executable *executable, char *text,
                             int64_t size);

#ifdef __cplusplus
}
#endif

#endif
