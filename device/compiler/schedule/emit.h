/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.h - what a graph becomes in a program, piece by piece.
 */
#ifndef IPU_COMPILER_SCHEDULE_EMIT_H
#define IPU_COMPILER_SCHEDULE_EMIT_H

#include "compiler/program.h"

struct ipu__emitter {
    const ipu_graph *graph;   /* borrowed */
    struct ipu_executable *e; /* borrowed */
    int32_t *value_of;        /* [tensors]; -1: not used so far; the
                                 executable's */
    size_t bytes;             /* of all values so far */
};

/* Make room in the executable, which owns it. */
int ipu__emitter_init(struct ipu__emitter *emitter, const ipu_graph *graph,
                      struct ipu_executable *executable);

/* The value of a tensor, made if it is new. */
int ipu__emit_value(struct ipu__emitter *emitter, int32_t tensor);

/* A node's step; all that it needs is there. */
int ipu__emit_node(struct ipu__emitter *emitter, int32_t node);

/* A host call's step and stream, or an output's stream. */
int ipu__emit_sink(struct ipu__emitter *emitter, const struct ipu__sink *sink);

int ipu__emit_assign(struct ipu__emitter *emitter,
                     const struct ipu__assign *assign);

/* What a queue gets; its tensors are there. */
int ipu__emit_enqueue(struct ipu__emitter *emitter,
                      const struct ipu__enqueue *enqueue);

/*
 * At the end, when it is known which tensors are used: inputs, of which every
 * one stays connectable, and what queues give. Every variable is kept, since
 * the host may write and read it.
 */
int ipu__emit_inputs(struct ipu__emitter *emitter);

#endif
