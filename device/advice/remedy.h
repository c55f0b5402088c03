/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remedy.h - the door of advice: how a program would fit.
 *
 * This room lies above pipelines, whose programs it compiles. It owns
 * ipu_compile, which refuses a program that does not fit and says what would
 * help, and ipu_remedy_try. A graph is changed as its author would have to
 * change it, and compiled.
 *
 *     compile.c       ipu_compile
 *     fit.c           the refusal, in words
 *     remedy.c        measures one remedy; finds the fewest parts that fit
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
    int64_t plain_bytes; /* of the fullest tile of the program as it is */
    ipu_offload
        automatic; /* what IPU_OFFLOAD_AUTO means (struct ipu__setting) */
    struct ipu__plans *plans; /* borrowed; NULL: each compilation has its own */
    /* Borrowed. Set if code and variables of the last that was tried are alone
     * too much for a tile: tile_bytes then counts only them. NULL: all is
     * compiled in full. */
    bool *hopeless;
};

/* Returns IPU_ERR_FULL if a tile would hold more than it can, with a text of
 * all that would help, found by compiling the graph anew with each remedy.
 * plans are borrowed. */
int ipu__check_fit(const struct ipu_executable *executable,
                   const ipu_graph *graph, const ipu_compile_options *options,
                   struct ipu__plans *plans);

/* Tries a remedy with so many parts; 0: the fewest that fit (ipu_remedy_try).
 */
int ipu__try_remedy(const struct ipu__trial *trial, ipu_remedy_kind kind,
                    int32_t parts, ipu_remedy *remedy);

/* Fills in what a compiled program needs and takes. */
int ipu__remedy_of(const struct ipu_executable *executable,
                   const ipu_graph *graph, ipu_remedy *remedy);

/* Returns whether the program, or what it repeats, has gradients. */
bool ipu__has_gradients(const ipu_graph *graph);

/* ------------------------------------------------- how graphs are changed */

/*
 * Each of these changes a copy of a graph. It returns IPU_OK; or IPU_ERR_STATE,
 * with a text of a few words why, if the graph cannot be changed so.
 */

/*
 * Moves what depends on derivatives and is none, as optimisers, to an update
 * region of count runs. If count is more than 1, derivatives are accumulated.
 * The graph must have no region.
 */
int ipu__split_update(ipu_graph *graph, int32_t count);

/* Changes tensors from float32 to float16, but for those of its loops. Returns
 * 1 if some were changed, 0 if there is none. */
int ipu__halve(ipu_graph *graph);

/* Gives inputs 1 / parts of their rows, and changes what follows from them. */
int ipu__divide_batch(ipu_graph *graph, int32_t parts);

/*
 * Measures what a program with gradients would be as a pipeline (stages.c). Its
 * batch is one of count mini-batches, and its tensors are shared out over as
 * many chips as there are stages. Fails as the changes above do.
 */
int ipu__measure_stages(const struct ipu__trial *trial, const ipu_graph *graph,
                        const ipu_target *target, int32_t nstages,
                        int64_t count, struct ipu__pipeline_cost *cost);

#endif
