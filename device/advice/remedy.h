/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remedy.h - what a program would be if something were done about its memory:
 * the graph is changed as its author would have to change it, and compiled.
 */
#ifndef IPU_ADVICE_REMEDY_H
#define IPU_ADVICE_REMEDY_H

#include "compiler/compiler.h"
#include "pipeline/pipeline.h"

/* What is asked, and of what. */
struct ipu__trial {
    const ipu_graph *graph;
    const ipu_compile_options *options;
    int64_t plain_bytes;   /* of the fullest tile, as the program is */
    ipu_offload automatic; /* what IPU_OFFLOAD_AUTO means: ON, OFF, or what it
                              comes to (struct ipu__setting) */
    struct ipu__plans *plans; /* borrowed; NULL: each compilation has its own */
    /* Borrowed; NULL: whatever is tried is compiled in full. Else it says of
     * the last that code and variables alone are too much for a tile: they are
     * its tile_bytes. */
    bool *hopeless;
};

/* Returns IPU_ERR_FULL if a tile would hold more than it can, with all that
 * would help: found by compiling the graph anew with each remedy. plans are
 * borrowed. */
int ipu__check_fit(const struct ipu_executable *executable,
                   const ipu_graph *graph, const ipu_compile_options *options,
                   struct ipu__plans *plans);

/* The fewest parts that fit, or parts of them (ipu_remedy_try). */
int ipu__try_remedy(const struct ipu__trial *trial, ipu_remedy_kind kind,
                    int32_t parts, ipu_remedy *remedy);

/* What a program that was compiled is; of which those of the kind are told. */
int ipu__remedy_of(const struct ipu_executable *executable,
                   const ipu_graph *graph, ipu_remedy *remedy);

/* Of the program, or of what it repeats. */
bool ipu__has_gradients(const ipu_graph *graph);

/* ------------------------------------------------- how graphs are changed */

/*
 * Each changes a copy of a graph, and returns IPU_OK, or IPU_ERR_STATE if it
 * is not one that could be changed so, with a text of a few words: why. What is
 * not made of rows of a batch is not cut in parts, what has no derivatives
 * computes none again.
 */

/* What depends on derivatives and is none, as optimisers are, into a region of
 * its own, of count runs, in which derivatives are accumulated if it is more
 * than 1. The graph has no region before. */
int ipu__split_update(ipu_graph *graph, int32_t count);

/* Tensors of float16 instead of float32; not those of its loops. 1: some
 * were changed; 0: there is none. */
int ipu__halve(ipu_graph *graph);

/* Inputs with 1 / parts of the rows, and what follows from them. */
int ipu__divide_batch(ipu_graph *graph, int32_t parts);

/*
 * What a program with gradients would be as a pipeline, its batch one of count
 * mini-batches and its tensors shared out over as many chips as there are
 * stages (stages.c). Failures as above.
 */
int ipu__measure_stages(const struct ipu__trial *trial, const ipu_graph *graph,
                        const ipu_target *target, int32_t nstages,
                        int64_t count, struct ipu__pipeline_cost *cost);

#endif
