/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atoms.h - lets other ranks run between two accesses to shared memory. The
 * files of libhvd that look at the memory of other ranks are compiled a second
 * time for the simulator, with this header in front of them (tests/room.mk). It
 * replaces the macros of stdatomic.h that they use: before each atomic access,
 * and after a store, another rank may come between (sim_between). What is
 * written between two of them is seen all at once, and in order.
 *
 * These files also take the number of slots from the seed, so that slots run
 * out after a few requests and not after a thousand.
 */
#ifndef SIM_ATOMS_H
#define SIM_ATOMS_H

#include <stdatomic.h>

/* Lets others run, or not, as the seed decides (ranks.c). */
void sim_between(void);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_load
#undef atomic_store

#define atomic_load_explicit(object, order)                                    \
    (sim_between(), __atomic_load_n((object), (order)))
#define atomic_store_explicit(object, value, order)                            \
    (sim_between(), __atomic_store_n((object), (value), (order)), sim_between())
#define atomic_load(object) atomic_load_explicit((object), memory_order_seq_cst)
#define atomic_store(object, value)                                            \
    atomic_store_explicit((object), (value), memory_order_seq_cst)

#include "transport/shm/shm.h"

/* A power of two, up to the number for which an area has room. */
extern uint16_t sim_slots;
#define HVD__LOG_SLOTS sim_slots

#endif
