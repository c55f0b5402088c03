/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remedy.h - what a program would be if something were done about its memory:
 * the graph is changed as its author would have to change it, and compiled.
 */
#ifndef IPU_COMPILER_REMEDY_H
#define IPU_COMPILER_REMEDY_H

#include "compiler/program.h"

struct ipu__remedy {
    int64_t bytes;  /* of the fullest tile */
    double ms;      /* of a run; of all runs up to an update */
    int64_t remote; /* bytes of variables beside the chip */
};

/*
 * Each returns IPU_OK, or a failure if the program is not one that could be
 * changed so: what is not made of rows of a batch is not cut in parts, what
 * has no derivatives computes none again.
 */
int ipu__try_recompute(const ipu_graph *graph,
                       const ipu_compile_options *options,
                       struct ipu__remedy *remedy);
int ipu__try_half(const ipu_graph *graph, const ipu_compile_options *options,
                  struct ipu__remedy *remedy);
/* Batches of 1 / parts, and an update after as many runs. */
int ipu__try_accumulation(const ipu_graph *graph,
                          const ipu_compile_options *options, int32_t parts,
                          struct ipu__remedy *remedy);
int ipu__try_offload(const ipu_graph *graph, const ipu_compile_options *options,
                     struct ipu__remedy *remedy);

/* ------------------------------------------------- how graphs are changed */

/* What depends on derivatives and is none, as optimisers are, into a region of
 * its own, of count runs, in which derivatives are accumulated if it is more
 * than 1. IPU_ERR_STATE if derivatives are made of it. */
int ipu__put_update_apart(ipu_graph *graph, int32_t count);

/* Inputs with 1 / parts of the rows, and what follows from them. */
int ipu__divide_batch(ipu_graph *graph, int32_t parts);

/* float16 for all float32 but scalars. */
int ipu__halve_dtypes(ipu_graph *graph);

#endif
