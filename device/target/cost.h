/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.h - the arithmetic behind all cycle counts. Files of this room share it,
 * and rooms above that count links, products and grains use it.
 */
#ifndef IPU_TARGET_COST_H
#define IPU_TARGET_COST_H

#include "ipu_model.h"

enum {
    /* Cycles of the supervisor, to start the contexts of a tile; issue slots
     * of a context, to read what its vertex works on, to divide it among the
     * contexts, and to end: 17 for one tensor, 20 for one and a scalar, 58 for
     * two in Graphcore's estimates (lib/popops/popopsCycleEstimators.cpp). */
    IPU__LAUNCH_CYCLES = 50,
    IPU__VERTEX_SLOTS = 20,
    /* Slots of a compiled loop in addition to accesses and arithmetic: count
     * and branch. With a load and a store that is 4, with two loads 5, as in
     * these estimates. */
    IPU__COUNT_SLOTS = 2,
    IPU__INSTRUCTION_BYTES = 4,
    /* Bytes of a tile that plans reserve for the code of a whole program. */
    IPU__CODE_BYTES = 32 << 10,
    /* The bytes that a tile loads or stores at once: tensors are spread over
     * tiles in multiples of them. */
    IPU__GRAIN_BYTES = 8,
    /* Exchange code to send or receive one message. */
    IPU__MESSAGE_CODE_BYTES = 8
};

int64_t ipu__ceil_div(int64_t a, int64_t b);
int64_t ipu__least(int64_t a, int64_t b);

/* Returns the cycles until one tile has run count vertices of the given issue
 * slots each. A context gets one slot in workers cycles, even when it is alone.
 */
int64_t ipu__vertices_cycles(const ipu_target *target, int64_t count,
                             int64_t slots);

/* Returns the issue slots of one iteration. */
int64_t ipu__loop_slots(const ipu_loop *loop);

/* Returns the cycles in which one tile receives bytes, once they flow. */
int64_t ipu__words_cycles(const ipu_target *target, int64_t bytes);

/* Return the cycles until the first word arrives, over the mean and over the
 * longest path on the chip, without the sync. */
int64_t ipu__mean_path(const ipu_target *target);
int64_t ipu__longest_path(const ipu_target *target);

/* The product unit of a tile, for elements of one size: the channels that go
 * into a pass and come out of it, and the slots of a row. */
struct ipu__product_unit {
    int32_t element_bytes;
    int64_t in, out, row;
};

struct ipu__product_unit ipu__product_unit_of(const ipu_target *target,
                                              int32_t element_bytes);

/* Returns the cycles of a block [rows, k, n] on one tile at that many positions
 * of the kernel. */
int64_t ipu__passes_cycles(const ipu_target *target,
                           const struct ipu__product_unit *unit, int64_t rows,
                           int64_t k, int64_t n, int64_t positions);

/* Counts one exchange into cycles: the bytes that the busiest tile receives,
 * and the number of messages. */
void ipu__count_exchange(const ipu_target *target, int64_t bytes,
                         int64_t messages, ipu_cycles *cycles);

/* Adds the start of consecutive loops of a tile, except the first: the
 * supervisor starts the contexts of each, and they read their operands. */
void ipu__count_loops(const ipu_target *target, int32_t loops,
                      ipu_cycles *cycles);

/* Adds to cycles the time that the mean tile waits for the busiest: units is
 * the total work, most is the work on one tile, and fixed is the amount that
 * each tile with work takes in any case. */
void ipu__count_waiting(const ipu_target *target, int64_t units, int64_t most,
                        int64_t fixed, ipu_cycles *cycles);

/* Returns the cycles to start that many loops, and for their contexts to begin
 * and end. */
int64_t ipu__start_cycles(const ipu_target *target, int32_t loops);

/* Sets cycles to the time in which a tensor of that many bytes, spread over all
 * tiles, passes from chip to chip: each tile sends its part. */
int ipu__send_cycles(const ipu_system *system, int32_t from, int32_t to,
                     int64_t bytes, ipu_cycles *cycles);

/*
 * Sets cycles to the time of a sum over replicas that are stride IPUs apart: a
 * ring, in which pieces go around twice. Adds the bytes that each replica sends
 * to sent.
 */
int ipu__ring_cycles(const ipu_system *system, int32_t replicas, int32_t stride,
                     int64_t bytes, int64_t *sent, int64_t *cycles);

/* Counts as ipu_model_product does, with others bytes of other data on the
 * fullest tile; -1: only the product's inputs and output. plans has the known
 * plans; NULL: none. */
struct ipu__plans;

int ipu__product_beside(const ipu_target *target, const ipu_product *product,
                        int64_t others, struct ipu__plans *plans,
                        ipu_plan *plan, ipu_cycles *cycles);

/* Counts as ipu__product_beside does, within the given room of a tile, or less
 * if the product is limited to less. */
int ipu__product_within(const ipu_target *target, const ipu_product *product,
                        int64_t room, struct ipu__plans *plans, ipu_plan *plan,
                        ipu_cycles *cycles);

/* Returns the proportion of a tile that a product may take if the program gave
 * said. */
double ipu__proportion_of(double said);

/* Adds the cycles of what comes before. The larger temporary memory counts. */
void ipu__follow(ipu_cycles *cycles, const ipu_cycles *before);

/* Counts as ipu_model_elementwise does for such a loop, with its iterations
 * counted here; the instructions may be those of several loops. */
int ipu__elements_cycles(const ipu_target *target, int64_t elements,
                         int32_t element_bytes, ipu_loop loop, int32_t loops,
                         ipu_cycles *cycles);

/* Writes the total of the counted cycles into the caller's struct. */
void ipu__finish(const ipu_cycles *counted, ipu_cycles *cycles);

/* Returns IPU_ERR_ARGUMENT unless target and cycles are valid. */
int ipu__check_model(const ipu_target *target, const ipu_cycles *cycles);

#endif
