/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compiler.h - the door of the compiler: a graph in, a program out.
 *
 * The compiler owns the passes and the format of a program (program.h), which
 * engine, files, replicas, pipelines and reports read. ipu_compile
 * (advice/compile.c), pipelines and advice call it. A pass has a folder:
 *
 *     rewrite/    fold, simplify, merge, offload: a draft, that is a copy of
 *                 the graph, which they may change
 *     schedule/   nodes become steps, in the order in which they run
 *     fusion/     neighbouring steps become one
 *     order/      the same steps in an order that needs less memory
 *     placement/  when each value is alive, which values share a block, where
 *                 blocks lie in memory and on tiles
 *     cost/       cycles, exchange, temporary memory and code of each step
 *     outline/    congruent steps share code where it is too much otherwise
 *     program/    queries on a program, used by all passes and other rooms
 *
 * compile.c runs the passes in this order and lists the additions of each;
 * bodies.c runs them for the bodies of loops first. passes.h declares them.
 *
 * The program follows from the graph, the options and the setting alone, so all
 * processes that compile the same graph get the same program. No pass changes
 * the bits of a result. A compiled program keeps no pointer into the graph,
 * which may be freed.
 */
#ifndef IPU_COMPILER_COMPILER_H
#define IPU_COMPILER_COMPILER_H

#include "compiler/program.h"

/* The settings that other rooms give a compilation in addition to the options.
 */
struct ipu__setting {
    struct ipu__plans
        *plans; /* borrowed: known plans of products, shared by compilations for
                   one chip; NULL: the compilation keeps its own */
    /* bytes on each tile that are reserved for others */
    int64_t reserved_bytes;
    /* the meaning of IPU_OFFLOAD_AUTO; if AUTO itself: ON only if the program
     * does not fit otherwise */
    ipu_offload automatic;
};

/* Compiles a graph. The result may need more memory than the target has,
 * whatever the options say; ipu__fits returns whether it does. */
int ipu__compile(const ipu_graph *graph, const ipu_compile_options *options,
                 const struct ipu__setting *setting,
                 ipu_executable **executable);

/* Returns IPU_ERR_ARGUMENT for options that no compilation can have. */
int ipu__check_compile_options(const ipu_compile_options *options);

/* Returns whether the program, or a loop in it, lets the compiler choose where
 * the variables of an update region are stored. */
bool ipu__leaves_offload(const ipu_graph *graph);

/* Returns 1 if no tile exceeds its memory, 0 if one does. */
int ipu__fits(const struct ipu_executable *executable);
/* Counts the bytes by which a tile exceeds its memory; a negative number is the
 * free space. With several chips it counts the excess of all code. */
int ipu__excess(const struct ipu_executable *executable, int64_t *bytes);
/* Returns IPU_ERR_FULL if one of several chips exceeds its memory; the message
 * names the chip. */
int ipu__check_shards(const struct ipu_executable *executable);

#endif
