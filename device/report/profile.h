/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - a profile as the files of this room see it.
 *
 * It is the same whether it was gathered from an executable or read from a
 * file: all that is drawn or printed is made of what stands here.
 */
#ifndef IPU_REPORT_PROFILE_H
#define IPU_REPORT_PROFILE_H

#include <stdbool.h>

#include "base/error.h"

enum { IPU__PROFILE_VERSION = 1 };

/* Steps of the program follow each other in one run; times is how often a step
 * is executed in it. Cycles are of one execution. Steps of an update are passed
 * over in most runs. */
struct ipu__profile_step {
    const char *tensor; /* what it makes; of a host call, its name */
    const char *op;
    const char *parts; /* of several in one: "bias_add, relu"; or NULL */
    const char *file;  /* NULL: not known */
    int32_t line;
    int32_t block; /* of what it makes; -1: none */
    int32_t ipu;
    int32_t times;
    int32_t every; /* so many runs; 1: in each */
    bool again;    /* it computes an activation again */
    int64_t compute, exchange, sync, host, total;
    int64_t exchange_bytes, temporary_bytes;
    double available_memory_proportion; /* of a product; else 0 */
    double flops;
    int32_t element_bytes; /* of what it makes */
    int32_t busy_tiles;
    int32_t fullest_tile;
    int64_t fullest_tile_bytes;
    int64_t ns;           /* measured, of all runs; -1: not measured */
    const char *estimate; /* why the cycles are one, or NULL */
    int32_t calls;        /* steps that run its code; 0 or 1: it alone */
    int32_t code_of;      /* the step that it is of */
    int64_t copied_bytes; /* to where that has its operands, and back */
};

/* So many neighbouring tiles, from first on, with bytes each. */
struct ipu__profile_share {
    int32_t first, count;
    int64_t bytes;
};

struct ipu__profile_block {
    const char *tensor;
    const char *op;   /* NULL: none makes it */
    const char *file; /* NULL: not known */
    int32_t line;
    ipu_category sort;
    const char *category, *type; /* "results", "float32 [64,10]" */
    int32_t element_bytes;
    int32_t tensors;
    int64_t bytes;
    int32_t birth, death;
    bool always;
    struct ipu__profile_share *shares; /* owned */
    int32_t nshares;
    int32_t *uses; /* owned; the steps that use it, in their order */
    int32_t nuses;
};

/* Neighbouring tiles that hold the same, each when it is fullest. */
struct ipu__profile_tiles {
    int32_t first, count;
    int32_t peak_step;
    int64_t bytes[IPU_NUM_CATEGORIES];
    int64_t total;
};

/* kind: "input", "output" and "call" are the host's; of a program of a pipeline
 * "stash" is what waits on the chip, "link" comes from another stage or goes to
 * one, "argument" is there for the whole run. */
struct ipu__profile_stream {
    const char *name;
    const char *kind;
    int64_t bytes, cycles;
};

bool ipu__stream_of_host(const struct ipu__profile_stream *stream);

struct ipu__program {
    const char *name;
    const char *parent; /* the program with the loop that it is the body of; or
                           NULL */
    int64_t iterations; /* of that loop, each time; 1: it is none */
    int32_t ipu;        /* the first that it runs on */
    int32_t ipus;       /* how many; tiles are counted through */
    ipu_target target;
    ipu_memory_info memory;
    ipu_program_cycles cycles;
    /* Of a pipeline's, what an execution takes there: with what is moved to and
     * from beside the chip; 0: it is none of a pipeline. */
    int64_t pipeline_cycles;
    int64_t half_cycles; /* of the steps, if all elements were halves */
    int64_t code_bytes, exchange_code_bytes, state_bytes; /* on each tile */
    bool measured;
    ipu_engine_times times;
    struct ipu__profile_step *steps; /* owned, as all below */
    int32_t nsteps;
    struct ipu__profile_block *blocks;
    int32_t nblocks;
    struct ipu__profile_tiles *tiles;
    int32_t ntiles;
    struct ipu__profile_stream *streams;
    int32_t nstreams;
};

/* A stage of a pipeline; of one mini-batch. */
struct ipu__profile_stage {
    const char *name;
    int32_t position, ipu;
    int64_t forward, backward, recompute; /* cycles */
    int64_t stash_bytes, stash_depth; /* depth: how many wait beside the one at
                                         work */
    int64_t sent_bytes;               /* to other chips, there and back */
    int64_t ns; /* measured, there and back; -1: not measured */
};

/* A chip of a pipeline. Bytes are of the whole chip but those of a tile. */
struct ipu__profile_chip {
    int32_t ipu;
    int64_t update;  /* cycles of one */
    int64_t offload; /* ... of these, to move what lies beside the chip */
    int64_t variable_bytes, stash_bytes, program_bytes;
    int64_t streaming_bytes, automatic_bytes; /* beside; because of AUTO */
    int64_t tile_bytes, bytes_per_tile;
};

/* A run of a pipeline as a whole: cycles are those of the last one, times of
 * all that were measured. */
struct ipu__profile_run {
    int32_t replicas;
    bool io_tiles; /* streams overlap with stages */
    int64_t mini_batches, updates, slots;
    int64_t total, work, exchange, sync, host, update;
    double clock_hz;
    bool measured;
    ipu_engine_times times;
    struct ipu__profile_stage *stages; /* owned; 0 of them: nothing is known of
                                          the run as a whole */
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
    struct ipu__profile_run run; /* of the pipeline */
    char **texts; /* owned, each owned: all texts of the profile */
    size_t ntexts, text_capacity;
    bool lacks_memory; /* for one of them */
};

/* A copy that lives as long as the profile; NULL stays NULL, and "" is what
 * comes if there is no memory, which the profile then remembers. Made
 * printable. */
const char *ipu__profile_keep(struct ipu_profile *profile, const char *text);

/* One more program, zeroed; NULL: no memory. */
struct ipu__program *ipu__profile_program(struct ipu_profile *profile);
/* The last one goes again. */
void ipu__profile_drop(struct ipu_profile *profile);

void ipu__run_free(struct ipu__profile_run *run);

/* IPU_ERR_DATA, naming what and where, unless what is told of a pipeline's run
 * can be true. */
int ipu__run_check(const char *where, const struct ipu__profile_run *run);

/* IPU_ERR_DATA, naming what and where, unless all numbers point into what
 * there is: no later code looks again. */
int ipu__program_check(const char *where, const struct ipu__program *program);

/* Cycles of all executions, in the mean of all runs. */
int64_t ipu__step_cycles(const struct ipu__profile_step *step, int64_t cycles);

/* What lies on the chip of a block: nothing, if it lies beside it. */
int64_t ipu__block_bytes(const struct ipu__profile_block *block);

/* What lies on a tile of a block. */
int64_t ipu__share_on(const struct ipu__profile_block *block, int32_t tile);

/* Does the step use the block? */
bool ipu__block_used(const struct ipu__profile_block *block, int32_t step);

/* Is the block there during the step? */
bool ipu__block_alive(const struct ipu__profile_block *block, int32_t step);

int32_t ipu__program_tiles(const struct ipu__program *program);

#endif
