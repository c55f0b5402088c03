/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remedy.h - the door of advice: changes by which a program would fit.
 *
 * This room is above pipelines, whose programs it compiles. It owns
 * ipu_compile, which refuses a program that does not fit and lists what would
 * help, and ipu_remedy_try. It changes a graph as its author would have to
 * change it, and compiles the result.
 *
 *     compile.c       ipu_compile
 *     fit.c           the text of the refusal
 *     balance.c       spreads a program over chips by time
 *     remedy.c        measures one remedy; finds the fewest parts that fit
 *     spread.c        measures those that spread a program over chips
 *     divide.c, halve.c, split_update.c, stages.c
 *                     change graphs
 */
#ifndef IPU_ADVICE_REMEDY_H
#define IPU_ADVICE_REMEDY_H

#include "compiler/compiler.h"
#include "pipeline/pipeline.h"

/* A trial of remedies: the program, and how to compile it. */
struct ipu__trial {
    const ipu_graph *graph;
    const ipu_compile_options *options;
    /* bytes on the fullest tile of the unchanged program */
    int64_t plain_bytes;
    ipu_offload
        automatic; /* the meaning of IPU_OFFLOAD_AUTO (struct ipu__setting) */
    /* borrowed; NULL: each compilation keeps its own */
    struct ipu__plans *plans;
    /* Borrowed. Set to true if the code and variables of the last program tried
     * exceed a tile's memory by themselves: tile_bytes then counts only them.
     * If NULL, every program is compiled in full. */
    bool *hopeless;
};

/* Returns IPU_ERR_FULL if a tile would exceed its memory, with a text of all
 * that would help: the graph is compiled anew with each remedy. plans are
 * borrowed. */
int ipu__check_fit(const struct ipu_executable *executable,
                   const ipu_graph *graph, const ipu_compile_options *options,
                   struct ipu__plans *plans);

/* Tries a remedy with that many parts; 0: the fewest that fit (ipu_remedy_try).
 */
int ipu__try_remedy(const struct ipu__trial *trial, ipu_remedy_kind kind,
                    int32_t parts, ipu_remedy *remedy);

/* Fills in the memory and the time that a compiled program takes. */
int ipu__remedy_of(const struct ipu_executable *executable,
                   const ipu_graph *graph, ipu_remedy *remedy);

/* Compiles a graph as the trial says, without those passes; the program need
 * not fit. */
int ipu__compile_trial(const struct ipu__trial *trial, const ipu_graph *graph,
                       uint32_t without, ipu_executable **executable);

/* Returns the chip of a trial. */
ipu_target ipu__trial_target(const struct ipu__trial *trial);

/* Returns whether the program, or a loop in it, has gradients. */
bool ipu__has_gradients(const ipu_graph *graph);

/* ---------------------------------------------------------- several chips */

/* A way to spread a program over chips. */
struct ipu__balance {
    const struct ipu__trial *trial; /* borrowed: how programs are compiled */
    bool stages; /* parts are stages of a pipeline, which share no variables */
    /* Judges a graph whose tensors have been placed: returns 1 if each chip has
     * room for its part, 0 if one has not, IPU_ERR_STATE if the graph cannot be
     * divided there, or another failure, which ends the search. */
    int (*judge)(void *context, const ipu_graph *graph);
    void *context;
};

/* Mini-batches of a stage between two updates: the fewest that the grouped
 * schedule takes. */
enum { IPU__BATCHES_PER_STAGE = 2 };

/* Places the tensors of a graph on count chips so that the slowest is as fast
 * as can be among the ways that judge takes; if it takes none, so that parts
 * are as even in bytes as can be. The last way that was judged, or the last
 * that was judged to fit, is the one that is left. Returns the judgement on it.
 */
int ipu__balance(const struct ipu__balance *how, ipu_graph *graph,
                 int32_t count);

/* Spreads a graph over remedy->parts chips by time, and measures that: one
 * after the other (IPU_REMEDY_SHARD) or as stages (IPU_REMEDY_PIPELINE). */
int ipu__measure_spread(const struct ipu__trial *trial, ipu_graph *graph,
                        ipu_remedy *remedy);

/* ------------------------------------------------- how graphs are changed */

/*
 * Each of these functions changes a copy of a graph. It returns IPU_OK or, if
 * the graph cannot be changed in this way, IPU_ERR_STATE with a short reason.
 */

/*
 * Moves nodes that depend on derivatives but are none themselves, such as
 * optimisers, to an update region of count runs. If count is more than 1,
 * derivatives are accumulated. The graph must have no region.
 */
int ipu__split_update(ipu_graph *graph, int32_t count);

/* Changes tensors from float32 to float16, except those of loops. Returns 1 if
 * some were changed, 0 if there is none. */
int ipu__halve(ipu_graph *graph);

/* Reduces the rows of inputs to 1 / parts of them, and changes the tensors that
 * follow from them. */
int ipu__divide_batch(ipu_graph *graph, int32_t parts);

/*
 * Measures a program with gradients as if it were a pipeline (stages.c). Its
 * batch is one of count mini-batches, and its tensors are distributed over as
 * many chips as there are stages. Fails as the changes above do.
 */
int ipu__measure_stages(const struct ipu__trial *trial, const ipu_graph *graph,
                        const ipu_target *target, int32_t nstages,
                        int64_t count, struct ipu__pipeline_cost *cost);

#endif
