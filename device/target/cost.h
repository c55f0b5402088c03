/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.h - the arithmetic that all cycle counts are made of. Files of this room
 * share it, and rooms above that count links, products and grains use it.
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
    /* Slots of a compiled loop, beside accesses and arithmetic: count, branch.
     * With a load and a store that is 4, with two loads 5, as in these. */
    IPU__COUNT_SLOTS = 2,
    IPU__INSTRUCTION_BYTES = 4,
    /* Bytes of a tile that plans leave for the code of a whole program. */
    IPU__CODE_BYTES = 32 << 10,
    /* A tile loads or stores so many bytes at once: tensors are spread over
     * tiles in these. */
    IPU__GRAIN_BYTES = 8,
    /* Exchange code to send or receive one message. */
    IPU__MESSAGE_CODE_BYTES = 8
};

int64_t ipu__ceil_div(int64_t a, int64_t b);
int64_t ipu__least(int64_t a, int64_t b);

/* Cycles until all of count vertices of so many issue slots each are through,
 * on one tile. A context gets one slot in workers cycles, alone or not. */
int64_t ipu__vertices_cycles(const ipu_target *target, int64_t count,
                             int64_t slots);

/* Issue slots of one iteration. */
int64_t ipu__loop_slots(const ipu_loop *loop);

/* Cycles for bytes into one tile, once they flow. */
int64_t ipu__words_cycles(const ipu_target *target, int64_t bytes);

/* Cycles until the first word is there, of the mean and of the longest way
 * over the chip, without the sync. */
int64_t ipu__mean_path(const ipu_target *target);
int64_t ipu__longest_path(const ipu_target *target);

/* The product unit of a tile, for elements of so many bytes: channels that go
 * in and come out of a pass, slots of a row. */
struct ipu__product_unit {
    int32_t element_bytes;
    int64_t in, out, row;
};

struct ipu__product_unit ipu__product_unit_of(const ipu_target *target,
                                              int32_t element_bytes);

/* A block [rows, k, n] on one tile, at each of so many positions of the
 * kernel. */
int64_t ipu__passes_cycles(const ipu_target *target,
                           const struct ipu__product_unit *unit, int64_t rows,
                           int64_t k, int64_t n, int64_t positions);

/* Count one exchange into cycles: bytes into the busiest tile, in so many
 * messages. */
void ipu__count_exchange(const ipu_target *target, int64_t bytes,
                         int64_t messages, ipu_cycles *cycles);

/* Adds the start of loops of a tile that follow each other, except the first:
 * the supervisor starts the contexts of each, and they read what they work
 * on. */
void ipu__count_loops(const ipu_target *target, int32_t loops,
                      ipu_cycles *cycles);

/* Adds to cycles the time that the mean tile waits for the busiest: units is
 * the work in all, most is the work on one tile, and fixed is what each tile
 * with work takes however much it has. */
void ipu__count_waiting(const ipu_target *target, int64_t units, int64_t most,
                        int64_t fixed, ipu_cycles *cycles);

/* Cycles to start so many loops, and of their contexts to begin and end. */
int64_t ipu__start_cycles(const ipu_target *target, int32_t loops);

/* Counts as ipu_model_link, for tiles that send as many bytes each. */
int ipu__link_cycles(const ipu_system *system, int32_t from, int32_t to,
                     int64_t bytes, int64_t senders, int32_t loaded,
                     ipu_cycles *cycles);

/* Sets cycles to what a tensor of so many bytes, spread over all tiles, takes
 * from chip to chip: each tile sends its part. */
int ipu__send_cycles(const ipu_system *system, int32_t from, int32_t to,
                     int64_t bytes, ipu_cycles *cycles);

/*
 * Sets cycles to what a sum over replicas takes, each of which is stride IPUs
 * from the next: a ring, in which pieces go around twice. Adds the bytes that
 * each sends to sent.
 */
int ipu__ring_cycles(const ipu_system *system, int32_t replicas, int32_t stride,
                     int64_t bytes, int64_t *sent, int64_t *cycles);

/* Counts as ipu_model_product, with others bytes of other data on the fullest
 * tile; -1: nothing but the product's own inputs and output. plans has those
 * that are known; NULL: none. */
struct ipu__plans;

int ipu__product_beside(const ipu_target *target, const ipu_product *product,
                        int64_t others, struct ipu__plans *plans,
                        ipu_plan *plan, ipu_cycles *cycles);

/* Counts as ipu__product_beside, within so much room of a tile, or less if the
 * product is to take less. */
int ipu__product_within(const ipu_target *target, const ipu_product *product,
                        int64_t room, struct ipu__plans *plans, ipu_plan *plan,
                        ipu_cycles *cycles);

/* The proportion of a tile that a product may take, if so much was said. */
double ipu__proportion_of(double said);

/* Add what comes before, with all of its cycles. The larger temporary memory
 * counts. */
void ipu__follow(ipu_cycles *cycles, const ipu_cycles *before);

/* Counts as ipu_model_elementwise for such a loop, whose iterations are counted
 * here; the instructions may be those of several loops. */
int ipu__elements_cycles(const ipu_target *target, int64_t elements,
                         int32_t element_bytes, ipu_loop loop, int32_t loops,
                         ipu_cycles *cycles);

/* The total of what was counted, into the caller's struct. */
void ipu__finish(const ipu_cycles *counted, ipu_cycles *cycles);

/* IPU_ERR_ARGUMENT unless target and place are as they must be. */
int ipu__check_model(const ipu_target *target, const ipu_cycles *cycles);

#endif
