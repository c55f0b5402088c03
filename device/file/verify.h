/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - checks that a graph that was read can be compiled, and that a
 * program that was read can run.
 */
#ifndef IPU_FILE_VERIFY_H
#define IPU_FILE_VERIFY_H

#include "compiler/program.h"
#include "file/pack.h"

/* Checks a graph, and fills in what follows from the rest. Returns IPU_ERR_DATA
 * with the impossible value. */
int ipu__verify_graph(const struct ipu__reader *reader, ipu_graph *graph);

/* Checks a program. Returns IPU_ERR_DATA with the impossible value. */
int ipu__verify(const struct ipu__reader *reader,
                const ipu_executable *executable);

/* ------------------------------------- between verify.c and verify_loops.c */

/* A program under check, or one within a step of another. */
struct ipu__verified {
    const ipu_executable *e;
    const struct ipu__verified *outer; /* NULL: this is the outermost */
    const struct ipu__inner *inner;    /* its place in a step of outer */
    int32_t *bound; /* owned, [blocks]: the bound value in the block, as an
                       index in inner: its memory is in outer; -1: none */
};

/* Checks the blocks, and that each value lies in one. */
int ipu__verify_blocks(const struct ipu__reader *reader,
                       const ipu_executable *executable);
/* Checks the rest, once the bound values are known. */
int ipu__verify_program(const struct ipu__reader *reader,
                        const struct ipu__verified *program);

/* Returns how many bytes a value in the block may have. */
size_t ipu__verified_room(const struct ipu__verified *program, int32_t block);

/* Return true if two values, neither of them inner, share any memory, or all of
 * it. */
bool ipu__verified_overlap(const struct ipu__verified *program, int32_t a,
                           int32_t b);
bool ipu__verified_same(const struct ipu__verified *program, int32_t a,
                        int32_t b);

/* Checks loops and queues. */
int ipu__verify_loops(const struct ipu__reader *reader,
                      const struct ipu__verified *program);
int ipu__verify_feeds(const struct ipu__reader *reader,
                      const ipu_executable *executable);

#endif
