/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - a profile, as the files of this room see it.
 *
 * It is the same whether it was gathered from an executable or read from a
 * file: everything that is drawn or printed comes from these structs.
 */
#ifndef IPU_REPORT_PROFILE_H
#define IPU_REPORT_PROFILE_H

#include <stdbool.h>

#include "base/error.h"

enum { IPU__PROFILE_VERSION = 1 };

/* A step of a program. Steps follow each other in one run; times is how often a
 * step is executed in it. Cycles are of one execution. Most runs skip the steps
 * of an update. */
struct ipu__profile_step {
    const char *tensor; /* tensor that it makes; a host call's name */
    const char *op;
    const char *parts; /* ops of a fused step: "bias_add, relu"; or NULL */
    const char *file;  /* NULL: unknown */
    int32_t line;
    const char *module; /* of the model; NULL: unknown */
    int32_t block;      /* block that it makes; -1: none */
    int32_t ipu;
    int32_t times;
    int32_t every; /* runs per execution; 1: every run */
    bool again;    /* it computes an activation again */
    int64_t compute, exchange, sync, host, total;
    int64_t exchange_bytes, temporary_bytes;
    double available_memory_proportion; /* proportion of a product; else 0 */
    double flops;
    int32_t element_bytes; /* element size of the tensor that it makes */
    int32_t busy_tiles;
    int32_t fullest_tile;
    int64_t fullest_tile_bytes;
    int64_t ns;           /* measured in all runs; -1: not measured */
    const char *estimate; /* reason, if the cycles are an estimate; or NULL */
    int32_t calls;        /* steps that run its code; 0 or 1: only it */
    int32_t code_of;      /* the step whose code it runs */
    int64_t copied_bytes; /* bytes copied to that step's operands, and back */
    int64_t vertex_code_bytes, exchange_code_bytes; /* on each tile */
};

/* Neighbouring tiles with the same number of bytes each; first is the first
 * tile. */
struct ipu__profile_share {
    int32_t first, count;
    int64_t bytes;
};

struct ipu__profile_block {
    const char *tensor;
    const char *op;   /* NULL: no step makes it */
    const char *file; /* NULL: unknown */
    int32_t line;
    const char *module; /* NULL: unknown */
    ipu_category sort;
    const char *category, *type; /* "results", "float32 [64,10]" */
    int32_t element_bytes;
    int32_t tensors;
    int64_t bytes;
    int32_t birth, death;
    bool always;
    struct ipu__profile_share *shares; /* owned */
    int32_t nshares;
    int32_t *uses; /* owned; steps that use it, in order */
    int32_t nuses;
};

/* Neighbouring tiles with the same contents, each at its peak. */
struct ipu__profile_tiles {
    int32_t first, count;
    int32_t peak_step;
    int64_t bytes[IPU_NUM_CATEGORIES];
    int64_t total;
};

/* A stream. kind: "input", "output" and "call" belong to the host. In a program
 * of a pipeline, "stash" waits on the chip, "link" comes from another stage or
 * goes to one, "argument" stays for the whole run. */
struct ipu__profile_stream {
    const char *name;
    const char *kind;
    int64_t bytes, cycles;
};

struct ipu__program {
    const char *name;
    const char *parent; /* program with the loop of this body; or NULL */
    int64_t iterations; /* iterations of that loop, per execution; 1: no loop */
    int32_t ipu;        /* first chip that it runs on */
    int32_t ipus;       /* number of chips; tiles are numbered through */
    ipu_target target;
    ipu_memory_info memory;
    ipu_program_cycles cycles;
    /* Cycles of an execution in the pipeline, including transfers to and from
     * streaming memory; 0: not part of a pipeline. */
    int64_t pipeline_cycles;
    int64_t half_cycles; /* cycles of the steps, if all elements were float16 */
    int64_t code_bytes, exchange_code_bytes, state_bytes; /* per tile */
    bool measured;
    ipu_engine_times times;
    struct ipu__profile_step *steps; /* owned, like all below */
    int32_t nsteps;
    struct ipu__profile_block *blocks;
    int32_t nblocks;
    struct ipu__profile_tiles *tiles;
    int32_t ntiles;
    struct ipu__profile_stream *streams;
    int32_t nstreams;
};

/* A stage of a pipeline; its figures are per mini-batch. */
struct ipu__profile_stage {
    const char *name;
    int32_t position, ipu;
    int64_t forward, backward, recompute; /* cycles */
    int64_t stash_bytes,
        stash_depth; /* depth: mini-batches that wait besides the current one */
    int64_t sent_bytes; /* to other chips, forward and backward */
    int64_t ns;         /* measured, both directions; -1: not measured */
};

/* A chip of a pipeline. Bytes are of the whole chip, except those that are of a
 * tile. */
struct ipu__profile_chip {
    int32_t ipu;
    int64_t update; /* cycles of one update */
    /* the part of update that transfers to streaming memory take */
    int64_t offload;
    int64_t variable_bytes, stash_bytes, program_bytes;
    /* bytes in streaming memory; the part that AUTO has put there */
    int64_t streaming_bytes, automatic_bytes;
    int64_t tile_bytes, bytes_per_tile;
};

/* A run of a pipeline as a whole: cycles are those of the last run, times are
 * the sum of all measured runs. */
struct ipu__profile_run {
    int32_t replicas;
    bool io_tiles; /* streams overlap with stages */
    int64_t mini_batches, updates, slots;
    int64_t total, work, exchange, sync, host, update;
    double clock_hz;
    bool measured;
    ipu_engine_times times;
    struct ipu__profile_stage *stages; /* owned; NULL: the run is unknown */
    int32_t nstages;
    struct ipu__profile_chip *chips; /* owned */
    int32_t nchips;
};

struct ipu_profile {
    const char *name;
    struct ipu__program *programs; /* owned */
    int32_t nprograms;
    ipu_pipeline_slot *slots; /* owned */
    int32_t nslots;
    struct ipu__profile_run run; /* the run of the pipeline */
    char **texts;                /* owned, and each text */
    size_t ntexts, text_capacity;
    bool lacks_memory; /* there was no memory for one of the texts */
};

/* Returns a copy of a text that lives as long as the profile, made printable.
 * NULL stays NULL. Without memory it returns "", and the profile remembers the
 * failure. */
const char *ipu__profile_keep(struct ipu_profile *profile, const char *text);

/* Adds a zeroed program; returns NULL without memory. */
struct ipu__program *ipu__profile_program(struct ipu_profile *profile);
/* Removes the last program. */
void ipu__profile_drop(struct ipu_profile *profile);

void ipu__run_free(struct ipu__profile_run *run);

/* Checks that the data in a file about a pipeline's run can be true. Returns
 * IPU_ERR_DATA with the mistake and its place. */
int ipu__run_check(const char *where, const struct ipu__profile_run *run);

/* Checks that all numbers point to existing rows: no later code checks again.
 * Returns IPU_ERR_DATA with the mistake and its place. */
int ipu__program_check(const char *where, const struct ipu__program *program);

/* Returns the cycles of all executions, averaged over all runs. */
int64_t ipu__step_cycles(const struct ipu__profile_step *step, int64_t cycles);

/* Returns a block's bytes on the chip: 0 if it lies in streaming memory. */
int64_t ipu__block_bytes(const struct ipu__profile_block *block);

/* Returns a block's bytes on a tile. */
int64_t ipu__share_on(const struct ipu__profile_block *block, int32_t tile);

/* Returns true if the step uses the block. */
bool ipu__block_used(const struct ipu__profile_block *block, int32_t step);

/* Returns true if the block is alive during the step. */
bool ipu__block_alive(const struct ipu__profile_block *block, int32_t step);

int32_t ipu__program_tiles(const struct ipu__program *program);

#endif
