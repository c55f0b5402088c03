/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - a compiled graph, and the queries on it. The engine, files,
 * replicas, pipelines, reports and advice read it.
 *
 * An executable owns copies of all it needs; the graph may be gone. Values are
 * the tensors of the graph that the program uses. Values that share memory
 * because one is computed in the place of another are one block.
 *
 * A step is an op, a host call, a loop, or a fused step: several ops, its
 * parts, that go over their elements together, block by block. A value that
 * only passes between parts has no memory: the step has a buffer for the block
 * at hand.
 *
 * The body of a loop is a program of its own (bodies.c).
 */
#ifndef IPU_COMPILER_PROGRAM_H
#define IPU_COMPILER_PROGRAM_H

#include "compiler/program/progress.h"
#include "graph/graph.h"
#include "ops/op.h"

struct ipu__value {
    char *name; /* owned */
    char *file; /* owned; of the user's program, where it was asked for, or
                   NULL */
    int32_t line;
    struct ipu__shape shape;
    enum ipu__tensor_kind kind;
    size_t bytes;
    void *data;    /* owned; of a constant */
    int32_t birth; /* the step that makes it; -1: before the first */
    int32_t
        death; /* the last step that needs it; the program's nsteps: the end */
    int32_t block;  /* index of the memory it lives in */
    bool opens;     /* it is the first in its block */
    bool inner;     /* it passes between parts of a step: its block is empty */
    int32_t buffer; /* the buffer of the step where an inner value is */
    int32_t shard;  /* the chip it is on, if there are several */
    bool
        renewed; /* it is the new value of a variable, computed in its memory */
    bool remote; /* a variable in the DRAM beside the chip */
    bool rows;   /* it is a remote buffer */
    bool bound;  /* its memory is that of a value of the program around */
    bool shared; /* a variable that a step changes in place, or a loop */
    int32_t own; /* of a variable: enum ipu__own */
    struct ipu__mapping map;
};

struct ipu__block {
    size_t bytes;
    int32_t birth, death; /* of all its values */
    bool always;          /* it holds a variable or a constant */
    bool constant;        /* it holds a constant */
    bool remote;          /* it is on no tile */
    size_t offset;        /* in the engine's memory */
    int32_t first_tile;   /* the first that it is spread over */
    int32_t tiles; /* how many these may be, as the program says; 0: all */
};

/* The values in a block. */
struct ipu__tenants {
    int32_t first, count; /* the value that opens it; how many there are */
};

enum ipu__step_kind { IPU__COMPUTE, IPU__HOST_CALL, IPU__FUSED, IPU__LOOP };

/* The most parts of a fused step; the most elements of its block. */
enum { IPU__MOST_PARTS = 24, IPU__MOST_BLOCK = 32768 };

/* One op of a step. */
struct ipu__step_op {
    const struct ipu__op *op;
    struct ipu__attributes attributes;
    int32_t inputs[IPU__MAX_INPUTS]; /* values */
    int32_t output;
};

struct ipu__step {
    enum ipu__step_kind kind;
    /* Compute. The op of a fused step has no inputs, and its output is that of
     * the last part: ipu__part_of has the parts. */
    const struct ipu__op *op;
    struct ipu__attributes attributes;
    int32_t inputs[IPU__MAX_INPUTS]; /* values */
    int32_t output;
    /* Fused */
    int32_t first_part, nparts; /* in the executable's parts */
    const struct ipu__op *head; /* the first part, if that is no op by element
                                   but hands over what it makes; or NULL */
    int64_t elements;           /* that parts go over */
    int64_t block;              /* elements that they go over at a time */
    int32_t nbuffers;
    char *text; /* owned; "bias_add, relu" */
    /* Host call */
    int32_t stream;
    /* Loop. Its op is ipu__loop_op, its output one of its outputs, or nothing.
     */
    int32_t loop;
    /* A step of an update region: gate is the value + 1 that is 0 when the step
     * is passed over; 0: none. It runs every count-th time; 0: each time. */
    int32_t gate, count;
    bool again; /* it computes an activation again */
    /* Shared code (outline.c). body: the step + 1 before this whose code it
     * runs; 0: it has its own. copies: operands that do not lie where shared
     * code has them; bytes that are copied there and back, and bytes that lie
     * there meanwhile, on the tile that has most. */
    int32_t body, calls, copies; /* calls: steps that run it; 0: one */
    int64_t copied_bytes, held_bytes;
    /* Cost on the chip */
    double proportion; /* a product's share of a tile's memory; else 0 */
    ipu_cycles cycles;
    int64_t busy_tiles;  /* tiles that compute */
    int64_t messages;    /* messages in which fetch_bytes come */
    int64_t fetch_bytes; /* the most that a tile receives, since operands do not
                            lie where the step runs (exchange.c) */
    int64_t give_bytes;  /* the most that a tile sends for them */
    int64_t tile_bytes;  /* bytes of tensors alive, on the tile that has most */
    int32_t fullest_tile; /* the fullest tile, with what the step needs for
                             itself */
    int64_t full_bytes;   /* bytes of both on that tile */
};

/* A connection to the host: an input, an output, or a host call. */
struct ipu__stream {
    char *name;    /* owned */
    int32_t value; /* -1: an input that the program does not use */
    size_t bytes;
    int64_t cycles; /* of a copy; a call's are its step's */
    int32_t gate;   /* of outputs, as that of a step */
    enum { IPU__STREAM_IN, IPU__STREAM_OUT, IPU__STREAM_CALL } kind;
    ipu_host_fn fn;
    void *context; /* borrowed */
};

/* Elements of a queue: taken before the first step, or given after the last. */
struct ipu__feed_code {
    ipu_infeed *infeed;   /* shared; or */
    ipu_outfeed *outfeed; /* shared */
    int32_t count;
    int32_t *values;       /* owned; -1: not used */
    int64_t bytes, cycles; /* of an element */
};

/* A program within a step. */
struct ipu__inner {
    ipu_executable *program; /* owned; NULL: there is none */
    /* Owned, [nbound]: values of the program that are bound, the carried ones
     * first; the values that they are bound to. */
    int32_t *inner, *outer;
    int32_t nbound;
};

struct ipu__loop_code {
    const char *name; /* static */
    int64_t count;    /* with a condition: the most; 0: no limit */
    int32_t ncarried;
    int32_t *initial, *outputs; /* owned: values */
    struct ipu__inner body, condition;
};

/* Bytes that a tile holds, without code. */
struct ipu__tile {
    int64_t always_bytes; /* variables and constants */
    int64_t peak_bytes;   /* these and the rest, when the tile is fullest */
    int32_t peak_step;
    int64_t constant_bytes;  /* always: constants alone */
    int64_t fetch_bytes;     /* at the peak: received for the step */
    int64_t partial_bytes;   /* at the peak: sums that are not complete */
    int64_t temporary_bytes; /* at the peak: both, and what else the step
                                needs */
};

struct ipu_executable {
    struct ipu__value *values; /* owned, as everything below */
    int32_t nvalues;
    struct ipu__block *blocks;
    struct ipu__tenants *tenants; /* [blocks] */
    int32_t nblocks;
    struct ipu__step *steps;
    int32_t nsteps;
    struct ipu__step_op *parts; /* of fused steps */
    struct ipu__stream *streams;
    int32_t nparts;
    int32_t nstreams;
    ipu_target target;
    /* The proportion of products that have none of their own, by kind. */
    double proportions[IPU__CONVOLUTION + 1];
    struct ipu__tile *tiles; /* [target.tiles] */
    int64_t code_bytes;      /* on each tile, with the two below */
    int64_t exchange_code_bytes;
    int64_t state_bytes;   /* of vertices */
    int64_t stream_cycles; /* inputs and outputs of a run */
    size_t memory_bytes;   /* what the engine allocates */
    size_t scratch_bytes;  /* the most that a step needs */
    ipu_memory_info info;
    struct ipu__loop_code *loops;
    struct ipu__feed_code *feeds;
    int32_t nloops, nfeeds;
    int32_t *value_of; /* [tensors of the graph], in a body; or NULL */
    char **texts; /* owned, each too: texts of estimates in a loaded program */
    int32_t ntexts;
    /* Borrowed, and only while the program is being compiled: */
    struct ipu__progress *progress;
    struct ipu__plans *plans;
    const struct ipu__congruent
        *congruent;         /* steps to be placed on the same tiles; or NULL */
    int64_t reserved_bytes; /* bytes on each tile that others have: for a body,
                               those of the program around it */
    ipu_offload automatic;  /* what IPU_OFFLOAD_AUTO means: ON or OFF */
    /* Bytes of variables that lie on the chip because automatic is OFF, and
     * would lie beside it if it were ON. */
    int64_t spared_bytes;
    /* The compilation ended before steps were put in order, because variables
     * alone are more than the chip has. */
    bool hopeless;
};

/* Fills in what follows from the rest of a program, in compiling and in
 * loading: the tenants; the most scratch that a step needs. */
int ipu__find_tenants(struct ipu_executable *executable);
void ipu__find_scratch(struct ipu_executable *executable);

/* Returns the scratch that the head of a fused step needs; the bytes of one of
 * its buffers. */
size_t ipu__head_scratch(const struct ipu_executable *executable,
                         const struct ipu__step *step);
size_t ipu__buffer_bytes(const struct ipu__step *step);
/* The op of a fused step, which no graph has: its ops are the step's parts. */
extern const struct ipu__op ipu__fused_step;

/* Returns the loop of a step; NULL if it is none. */
const struct ipu__loop_code *ipu__loop_of(const struct ipu_executable *e,
                                          const struct ipu__step *step);
/* Returns value number i that a loop's step reads beside its inputs, or makes;
 * -1 if there are no more, or it is no loop's step. */
int32_t ipu__loop_read(const struct ipu_executable *executable,
                       const struct ipu__step *step, int32_t i);
int32_t ipu__loop_makes(const struct ipu_executable *executable,
                        const struct ipu__step *step, int32_t i);
/*
 * Returns the iterations that are counted. Adds number times times to a sum,
 * which ends at more than a chip counts in a year, so that sums of such sums do
 * not overflow.
 */
int64_t ipu__loop_times(const struct ipu__loop_code *loop);
void ipu__add_times(int64_t *sum, int64_t number, int64_t times);
/* Counts the cycles of a loop's step: of all kinds, and as those of any step.
 */
int ipu__loop_cycles(const struct ipu_executable *executable,
                     const struct ipu__step *step, ipu_program_cycles *sum);
int ipu__count_loop(const struct ipu_executable *executable,
                    const struct ipu__step *step, ipu_cycles *cycles);

/* Returns FNV-1a over bytes, beginning with hash; the same over an op's
 * attributes. */
uint64_t ipu__hash_bytes(uint64_t hash, const void *bytes, size_t count);
uint64_t ipu__attributes_hash(uint64_t hash,
                              const struct ipu__attributes *attributes);
/* Returns whether two ops have the same attributes; whether they have the same
 * but for the seeds of random numbers, so that the same code can run both. */
bool ipu__attributes_equal(const struct ipu__attributes *a,
                           const struct ipu__attributes *b);
bool ipu__attributes_congruent(const struct ipu__attributes *a,
                               const struct ipu__attributes *b);

/* Returns the cycles of a run, without streams of inputs and outputs, if all
 * elements had so many bytes; 0: as they are. */
int64_t ipu__cycles_with(const struct ipu_executable *executable,
                         int element_bytes);

/* Returns the bytes of a block that lie on a tile while it is alive. */
int64_t ipu__bytes_on_tile(const struct ipu_executable *executable,
                           const struct ipu__block *block, int32_t tile);

/* Return IPU_ERR_ARGUMENT if the executable, or the place for an info on it, is
 * NULL; if there is no step or tile of that number. */
int ipu__check_info(const char *what, const ipu_executable *executable,
                    const void *info);
int ipu__check_step(const struct ipu_executable *executable, int32_t step);
int ipu__check_tile(const struct ipu_executable *executable, int32_t tile);

/* Returns the name of a step's op: "matmul", "host_call". */
const char *ipu__step_name(const struct ipu__step *step);

/* Returns how many ops a step has: 0 for a host call, 1 if it is not fused.
 * Returns the k-th, in place if it is not fused. */
int32_t ipu__nparts(const struct ipu__step *step);
const struct ipu__step_op *ipu__part_of(const struct ipu_executable *executable,
                                        const struct ipu__step *step, int32_t k,
                                        struct ipu__step_op *place);

/* Returns what a collective op makes, in the program or in a loop of it; NULL
 * if there is none. */
const struct ipu__value *ipu__find_collective(
    const struct ipu_executable *executable);

/* Fills a call with what a part works on, without memory; the same for a step
 * that is not fused. */
void ipu__part_call(const struct ipu_executable *executable,
                    const struct ipu__step_op *part, struct ipu__call *call);
void ipu__step_call(const struct ipu_executable *executable,
                    const struct ipu__step *step, struct ipu__call *call);

/* Views that a part of a fused step may have of an input: all elements, as many
 * as its output has; rows of the last dimensions, repeated; or one element. */
enum ipu__view { IPU__NO_VIEW, IPU__WHOLE, IPU__ROW, IPU__SCALAR };

enum ipu__view ipu__view_of(const struct ipu_executable *executable,
                            const struct ipu__step_op *part, int k);
/* Returns the elements of a part's rows; 1 if it has none. */
int64_t ipu__period_of(const struct ipu_executable *executable,
                       const struct ipu__step_op *part);

#endif
