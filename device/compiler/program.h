/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - a compiled graph, and the queries on it. The engine, files,
 * replicas, pipelines, reports and advice read it.
 *
 * An executable owns copies of all it needs; the graph may be freed. Values are
 * the tensors of the graph that the program uses. Values that share memory
 * because one is computed in the place of another form one block.
 *
 * A step is an op, a host call, a loop, or a fused step: several ops, its
 * parts, that process their elements together, block by block. A value that
 * only passes between parts has no memory: the step has a buffer for the
 * current block.
 *
 * The body of a loop is a separate program (bodies.c).
 */
#ifndef IPU_COMPILER_PROGRAM_H
#define IPU_COMPILER_PROGRAM_H

#include "compiler/program/progress.h"
#include "graph/graph.h"
#include "ops/op.h"

struct ipu__value {
    char *name; /* owned */
    /* owned; the file of the user's program that asked for it, or NULL */
    char *file;
    int32_t line;
    char *module; /* owned; the module that it belongs to, or NULL */
    struct ipu__shape shape;
    enum ipu__tensor_kind kind;
    size_t bytes;
    void *data;    /* owned; the data of a constant */
    int32_t birth; /* the step that makes it; -1: before the first */
    int32_t
        death; /* the last step that needs it; the program's nsteps: the end */
    int32_t block; /* index of its block of memory */
    bool opens;    /* it is the first value in its block */
    bool inner; /* it passes between parts of a step, and its block is empty */
    int32_t buffer; /* the buffer of the step where an inner value is */
    int32_t shard;  /* number of its chip, if there are several */
    bool
        renewed; /* it is the new value of a variable, computed in its memory */
    bool remote; /* a variable in streaming memory */
    bool rows;   /* it is a remote buffer */
    bool bound;  /* its memory belongs to a value of the outer program */
    /* a variable that a loop carries: nobody sees it if an iteration fails */
    bool carried;
    bool shared; /* a variable that a step or a loop changes in place */
    int32_t own; /* enum ipu__own of a variable */
    struct ipu__mapping map;
};

struct ipu__block {
    size_t bytes;
    int32_t birth, death; /* lifetime of all its values */
    bool always;          /* it holds a variable or a constant */
    bool constant;        /* it holds a constant */
    bool remote;          /* it is on no tile */
    size_t offset;        /* offset in the engine's memory */
    int32_t first_tile;   /* first tile of the block */
    int32_t tiles; /* number of tiles that the program asks for; 0: all */
};

/* The values in a block. */
struct ipu__tenants {
    /* the value that opens the block; the number of values */
    int32_t first, count;
};

enum ipu__step_kind { IPU__COMPUTE, IPU__HOST_CALL, IPU__FUSED, IPU__LOOP };

/* The greatest number of parts in a fused step; the greatest number of elements
 * in its block. */
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
     * the last part; ipu__part_of returns the parts. */
    const struct ipu__op *op;
    struct ipu__attributes attributes;
    int32_t inputs[IPU__MAX_INPUTS]; /* values */
    int32_t output;
    /* Fused */
    int32_t first_part, nparts; /* range in the executable's parts */
    /* the first part, if it is not an op by element but hands over parts of
     * its output; or NULL */
    const struct ipu__op *head;
    int64_t elements; /* elements that the parts process */
    int64_t block;    /* elements that they process at a time */
    int32_t nbuffers;
    char *text; /* owned; "bias_add, relu" */
    /* Host call */
    int32_t stream;
    /* Loop. Its op is ipu__loop_op; its output is one output of the loop, or
     * none. */
    int32_t loop;
    /* A step of an update region is skipped if this value is 0; -1: never. It
     * runs every count-th time; 0: each time. */
    int32_t gate, count;
    bool again; /* it computes an activation again */
    /* Shared code (outline.c). body: the earlier step whose code this one runs;
     * -1: it has its own code. copies: operands that are not where the
     * shared code expects them; the bytes copied there and back, and the bytes
     * that are kept there meanwhile, on the tile that has most. */
    int32_t body, calls, copies; /* calls: steps that run this code; 0: one */
    int64_t copied_bytes, held_bytes;
    /* Cost on the chip */
    /* the share of a tile's memory that a product may take; else 0 */
    double proportion;
    ipu_cycles cycles;
    int64_t busy_tiles; /* number of tiles that compute */
    int64_t messages;   /* number of messages that carry fetch_bytes */
    /* the most that a tile receives because operands are not where the step
     * runs (exchange.c) */
    int64_t fetch_bytes;
    int64_t give_bytes; /* the most that a tile sends for them */
    int64_t tile_bytes; /* bytes of tensors alive, on the tile that has most */
    /* the fullest tile, counting what the step itself needs */
    int32_t fullest_tile;
    int64_t full_bytes; /* bytes of tensors and of the step on that tile */
};

/* Sets step to one of that kind and op, with its own code and without a gate.
 */
void ipu__step_init(struct ipu__step *step, enum ipu__step_kind kind,
                    const struct ipu__op *op);

/* A connection to the host: an input, an output, or a host call. */
struct ipu__stream {
    char *name;    /* owned */
    int32_t value; /* -1: an input that the program does not use */
    size_t bytes;
    int64_t cycles; /* cycles of a copy; a call's are in its step */
    int32_t gate;   /* gate of an output, as in a step */
    enum { IPU__STREAM_IN, IPU__STREAM_OUT, IPU__STREAM_CALL } kind;
    ipu_host_fn fn;
    void *context; /* borrowed */
};

/* Elements of a queue, taken before the first step or given after the last. */
struct ipu__feed_code {
    ipu_infeed *infeed;   /* shared; NULL for an outfeed */
    ipu_outfeed *outfeed; /* shared; NULL for an infeed */
    int32_t count;
    int32_t *values;       /* owned; -1: not used */
    int64_t bytes, cycles; /* size and transfer cycles of an element */
};

/* A program within a step. */
struct ipu__inner {
    ipu_executable *program; /* owned; NULL: there is none */
    /* Owned, [nbound]: the bound values of the inner program, the carried ones
     * first, and the values of the outer program that they are bound to. */
    int32_t *inner, *outer;
    int32_t nbound;
};

struct ipu__loop_code {
    const char *name; /* static */
    /* iterations; with a condition, the limit, or 0 for no limit */
    int64_t count;
    int32_t ncarried;
    int32_t *initial, *outputs; /* owned: values */
    struct ipu__inner body, condition;
};

/* Bytes that a tile holds, except code. */
struct ipu__tile {
    int64_t always_bytes; /* variables and constants */
    int64_t peak_bytes;   /* these and all others, when the tile is fullest */
    int32_t peak_step;
    int64_t constant_bytes; /* the constants among always_bytes */
    int64_t fetch_bytes;    /* at the peak: bytes received for the step */
    int64_t partial_bytes;  /* at the peak: incomplete sums */
    /* at the peak: both, and what else the step needs */
    int64_t temporary_bytes;
};

struct ipu_executable {
    struct ipu__value *values; /* owned, like all pointers below */
    int32_t nvalues;
    /* [nvariables]: the first value of each variable, as they were made and in
     * the order of their names. */
    const struct ipu__value **variables, **by_name;
    int32_t nvariables;
    struct ipu__block *blocks;
    struct ipu__tenants *tenants; /* [blocks] */
    int32_t nblocks;
    struct ipu__step *steps;
    int32_t nsteps;
    struct ipu__step_op *parts; /* parts of fused steps */
    struct ipu__stream *streams;
    int32_t nparts;
    int32_t nstreams;
    ipu_target target;
    /* The proportion, by kind, for products without a proportion of their own.
     */
    double proportions[IPU__CONVOLUTION + 1];
    struct ipu__tile *tiles; /* [target.tiles] */
    int64_t code_bytes;      /* on each tile, including the two below */
    int64_t exchange_code_bytes;
    int64_t state_bytes;   /* state of vertices */
    int64_t stream_cycles; /* cycles for the inputs and outputs of a run */
    size_t memory_bytes;   /* memory that the engine allocates */
    size_t scratch_bytes;  /* the most that a step needs */
    ipu_memory_info info;
    struct ipu__loop_code *loops;
    struct ipu__feed_code *feeds;
    int32_t nloops, nfeeds;
    int32_t *value_of; /* [tensors of the graph], in a body; or NULL */
    /* owned, with each text: texts of estimates in a loaded program */
    char **texts;
    int32_t ntexts;
    /* Borrowed, and set only during compilation: */
    struct ipu__progress *progress;
    struct ipu__plans *plans;
    const struct ipu__congruent
        *congruent; /* steps to be placed on the same tiles; or NULL */
    /* bytes on each tile that are reserved for others; in a body, for the
     * outer program */
    int64_t reserved_bytes;
    ipu_offload automatic; /* the meaning of IPU_OFFLOAD_AUTO: ON or OFF */
    /* Bytes of variables that are on the chip because automatic is OFF, and
     * would be in streaming memory if it were ON. */
    int64_t spared_bytes;
    /* The compilation ended before steps were put in order, because variables
     * alone are more than the chip has. */
    bool hopeless;
};

/* Fill in what follows from the rest of a program, both when it is compiled and
 * when it is loaded: the variables, the tenants, and the most scratch that a
 * step needs. Values are neither added nor moved afterwards. */
int ipu__find_variables(struct ipu_executable *executable);
int ipu__find_tenants(struct ipu_executable *executable);
void ipu__find_scratch(struct ipu_executable *executable);

/* Returns the first value of a variable; -1: there is none of that name. */
int32_t ipu__variable_named(const struct ipu_executable *executable,
                            const char *name);

/* Return the scratch that the head of a fused step needs, and the bytes of one
 * of its buffers. */
size_t ipu__head_scratch(const struct ipu_executable *executable,
                         const struct ipu__step *step);
size_t ipu__buffer_bytes(const struct ipu__step *step);
/* The op of a fused step, which no graph has: its ops are the step's parts. */
extern const struct ipu__op ipu__fused_step;

/* Returns the loop of a step; NULL if it is not a loop. */
const struct ipu__loop_code *ipu__loop_of(const struct ipu_executable *e,
                                          const struct ipu__step *step);
/* Return value number i that a loop's step reads in addition to its inputs, or
 * that it makes; -1 if there are no more, or the step is not a loop. */
int32_t ipu__loop_read(const struct ipu_executable *executable,
                       const struct ipu__step *step, int32_t i);
int32_t ipu__loop_makes(const struct ipu_executable *executable,
                        const struct ipu__step *step, int32_t i);
/*
 * ipu__loop_times returns the iterations that are counted. ipu__add_times adds
 * number times times to a sum. The sum is limited to a value beyond what a chip
 * counts in a year, so that sums of such sums do not overflow.
 */
int64_t ipu__loop_times(const struct ipu__loop_code *loop);
void ipu__add_times(int64_t *sum, int64_t number, int64_t times);
/* Count the cycles of a loop's step, divided by kind or as for any step. */
int ipu__loop_cycles(const struct ipu_executable *executable,
                     const struct ipu__step *step, ipu_program_cycles *sum);
int ipu__count_loop(const struct ipu_executable *executable,
                    const struct ipu__step *step, ipu_cycles *cycles);

/* Return FNV-1a of bytes, or of an op's attributes, beginning with hash. */
uint64_t ipu__hash_bytes(uint64_t hash, const void *bytes, size_t count);
uint64_t ipu__attributes_hash(uint64_t hash,
                              const struct ipu__attributes *attributes);
/* Return whether two ops have the same attributes, or the same except for the
 * seeds of random numbers, so that the same code can run both. */
bool ipu__attributes_equal(const struct ipu__attributes *a,
                           const struct ipu__attributes *b);
bool ipu__attributes_congruent(const struct ipu__attributes *a,
                               const struct ipu__attributes *b);

/* Returns the cycles of a run, without streams of inputs and outputs, if all
 * elements had that many bytes; 0: if they stay as they are. */
int64_t ipu__cycles_with(const struct ipu_executable *executable,
                         int element_bytes);

/* Returns the bytes that a block occupies on a tile while it is alive. */
int64_t ipu__bytes_on_tile(const struct ipu_executable *executable,
                           const struct ipu__block *block, int32_t tile);

/* Return IPU_ERR_ARGUMENT if the executable or the place for an info is NULL,
 * or if there is no step or tile with that number. */
int ipu__check_info(const char *what, const ipu_executable *executable,
                    const void *info);
int ipu__check_step(const struct ipu_executable *executable, int32_t step);
int ipu__check_tile(const struct ipu_executable *executable, int32_t tile);

/* Returns the name of a step's op: "matmul", "host_call". */
const char *ipu__step_name(const struct ipu__step *step);

/* Return how many ops a step has (0 for a host call, 1 if it is not fused), and
 * the k-th of them, in place if the step is not fused. */
int32_t ipu__nparts(const struct ipu__step *step);
const struct ipu__step_op *ipu__part_of(const struct ipu_executable *executable,
                                        const struct ipu__step *step, int32_t k,
                                        struct ipu__step_op *place);

/* Returns the output of a collective op in the program or in a loop of it; NULL
 * if there is none. */
const struct ipu__value *ipu__find_collective(
    const struct ipu_executable *executable);

/* Fill a call with the operands of a part, or of a step that is not fused,
 * without memory. */
void ipu__part_call(const struct ipu_executable *executable,
                    const struct ipu__step_op *part, struct ipu__call *call);
void ipu__step_call(const struct ipu_executable *executable,
                    const struct ipu__step *step, struct ipu__call *call);

/* The way in which a part of a fused step reads an input: all elements, as many
 * as its output has; rows of the last dimensions, repeated; or one element. */
enum ipu__view { IPU__NO_VIEW, IPU__WHOLE, IPU__ROW, IPU__SCALAR };

enum ipu__view ipu__view_of(const struct ipu_executable *executable,
                            const struct ipu__step_op *part, int k);
/* Returns the number of elements in a part's rows; 1 if it has no rows. */
int64_t ipu__period_of(const struct ipu_executable *executable,
                       const struct ipu__step_op *part);

#endif
