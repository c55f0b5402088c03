/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passes.h - the passes, in the order in which compile.c runs them. Each adds
 * its part to the executable, or returns a negative status.
 *
 * The passes that rewrite a draft of the graph run first;
 * compiler/rewrite/draft.h declares them.
 */
#ifndef IPU_COMPILER_PASSES_H
#define IPU_COMPILER_PASSES_H

#include "compiler/program.h"

/* Compiles the bodies of the graph's loops for tiles on which that many bytes
 * are reserved. */
int ipu__compile_bodies(const ipu_graph *graph,
                        const ipu_compile_options *options,
                        int64_t reserved_bytes,
                        struct ipu_executable *executable);
/* Decides which nodes run, in which order, with the host calls in between:
 * makes steps, values and streams. */
int ipu__schedule(const ipu_graph *graph, struct ipu_executable *executable);
/* Returns IPU_ERR_ARGUMENT if a tensor is mapped to tiles that do not exist. */
int ipu__check_maps(const struct ipu_executable *executable);
/* Fuses neighbouring steps into one. */
int ipu__fuse(struct ipu_executable *executable);
/* Puts steps into an order that needs less memory. */
int ipu__order(struct ipu_executable *executable);
/* Computes the lifetime of each value, and which values share a block. */
int ipu__liveness(struct ipu_executable *executable);
/* Assigns buffers to fused steps, once the values without memory are known. */
int ipu__buffers(struct ipu_executable *executable);
/* Gives each block an offset in the engine's memory. */
int ipu__plan_memory(struct ipu_executable *executable);
/* Puts blocks on tiles and fills in the memory info. The first call counts
 * tensors alone; the second, when costs are known, adds code and the temporary
 * memory of steps. */
int ipu__place(struct ipu_executable *executable, bool with_costs);
/* Counts the cycles and the memory that each step takes on the chip. */
int ipu__cost(struct ipu_executable *executable);
/* Counts how long steps wait for the device's network. cost calls it. */
int ipu__network_cost(struct ipu_executable *executable);
/* Lets congruent steps share code where it is too much otherwise. */
int ipu__outline(struct ipu_executable *executable);

/* ------------------------------------------------- queries between passes */

/* Finds blocks that are spread alike, since steps by element use them together.
 * For each block, roots is set to the first block that is spread in the same
 * way. place calls it. */
void ipu__align(const struct ipu_executable *executable, int32_t *roots);
/* Counts the code of all steps, once their costs are known. place calls it. */
int ipu__count_code(struct ipu_executable *executable);

/* Return the bytes of a step's code that only congruent steps can share, and
 * the bytes of code that copies that many operands to the place where shared
 * code expects them. Add the cycles of a vertex that copies that many bytes of
 * a tile. outline calls them. */
int64_t ipu__own_code_bytes(const struct ipu_executable *executable,
                            const struct ipu__step *step);
int64_t ipu__copy_code_bytes(int32_t copies);
int ipu__count_copies(const struct ipu_executable *executable, int64_t bytes,
                      ipu_cycles *cycles);

/* Returns how long the network is busy with the collective that a step starts.
 */
int64_t ipu__network_cycles(const struct ipu_executable *executable,
                            const struct ipu__step *step);

/* Bytes that tiles receive for a step because its operands are not where it
 * runs. cost and place use it. */
struct ipu__received {
    int64_t *bytes;         /* [tiles]: amounts are added to it */
    int64_t most, messages; /* on the tile that receives most */
    int64_t given;          /* bytes that the tile that gives most gives */
};

void ipu__receive(const struct ipu_executable *executable,
                  const struct ipu__step *step, struct ipu__received *received);

#endif
