/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - is what was read a graph that can be compiled, a program that can
 * run?
 */
#ifndef IPU_FILE_VERIFY_H
#define IPU_FILE_VERIFY_H

#include "compiler/program.h"
#include "file/pack.h"

/* IPU_ERR_DATA says what cannot be. Fills in what follows from the rest. */
int ipu__verify_graph(const struct ipu__reader *reader, ipu_graph *graph);

/* IPU_ERR_DATA says what cannot be. */
int ipu__verify(const struct ipu__reader *reader,
                const ipu_executable *executable);

/* ------------------------------------- between verify.c and verify_loops.c */

/* A program, or one within a step of another. */
struct ipu__verified {
    const ipu_executable *e;
    const struct ipu__verified *outer; /* NULL: it is the outermost */
    const struct ipu__inner *inner;    /* of outer's */
    int32_t *bound; /* owned, [blocks]: the number in inner of the value whose
                       memory is elsewhere and that is in the block; -1 */
};

/* Blocks, and that values are in some. */
int ipu__verify_blocks(const struct ipu__reader *reader,
                       const ipu_executable *executable);
/* ... and the rest, once it is known what is bound. */
int ipu__verify_program(const struct ipu__reader *reader,
                        const struct ipu__verified *program);

/* How many bytes a value in the block may have. */
size_t ipu__verified_room(const struct ipu__verified *program, int32_t block);

/* Whether two values, neither of them inner, have any memory in common; or
 * all. */
bool ipu__verified_overlap(const struct ipu__verified *program, int32_t a,
                           int32_t b);
bool ipu__verified_same(const struct ipu__verified *program, int32_t a,
                        int32_t b);

/* Of loops and queues. */
int ipu__verify_loops(const struct ipu__reader *reader,
                      const struct ipu__verified *program);
int ipu__verify_feeds(const struct ipu__reader *reader,
                      const ipu_executable *executable);

#endif
