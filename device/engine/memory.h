/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - the memory of a device: one piece as the compiler planned it; or,
 * with IPU_POISON=1, a hostile one, for tests.
 */
#ifndef IPU_ENGINE_MEMORY_H
#define IPU_ENGINE_MEMORY_H

#include "compiler/program.h"

struct ipu__memory {
    const struct ipu_executable *executable; /* borrowed */
    unsigned char *planned;                  /* owned; NULL if poisoned */
    unsigned char **own; /* owned, [values], each owned; NULL if planned */
    void *scratch;       /* owned */
    void **placed; /* owned, [values]: memory of the host, borrowed, or NULL */
    struct ipu__packed *packed; /* owned, [steps], each with its data */
    struct ipu__sums *sums;     /* owned; those of this run */
};

int ipu__memory_init(struct ipu__memory *memory,
                     const struct ipu_executable *executable);
void ipu__memory_fini(struct ipu__memory *memory);

/*
 * Places the value in memory of the host, together with all that shares its
 * own; a hostile memory shares nothing. NULL: in the device's again.
 */
void ipu__memory_place(struct ipu__memory *memory, int32_t value, void *data);

/* Returns where a step's product, or the one at its head, may keep its second
 * input in another form; NULL: it is no product, or the input no constant. */
struct ipu__packed *ipu__memory_packed(const struct ipu__memory *memory,
                                       const struct ipu__step *step);

/* Returns the bytes of all that was kept so. */
int64_t ipu__memory_packed_bytes(const struct ipu__memory *memory);

/* Returns the address of a value; 64-byte aligned, if the host did not place
 * it. */
void *ipu__memory_of(const struct ipu__memory *memory, int32_t value);

/* Prepares a run: a hostile memory spoils everything but the variables. */
void ipu__memory_before(struct ipu__memory *memory);

/* Ends a step: a hostile memory spoils values that nobody may read any more,
 * and fails if an op has written past its output. */
int ipu__memory_after(struct ipu__memory *memory, int32_t step);

/* Tell OpenBLAS how many threads to use, once ipu_set_threads was called or
 * an engine made. */
void ipu__threads_apply(void);

/* Run a fused step. */
int ipu__run_fused(struct ipu__memory *memory, const struct ipu__step *step);

#endif
