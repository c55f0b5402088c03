/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.h - makes a program of a graph, piece by piece.
 */
#ifndef IPU_COMPILER_SCHEDULE_EMIT_H
#define IPU_COMPILER_SCHEDULE_EMIT_H

#include "compiler/program.h"

struct ipu__emitter {
    const ipu_graph *graph;   /* borrowed */
    struct ipu_executable *e; /* borrowed */
    int32_t
        *value_of; /* [tensors]; -1: not used so far; owned by the executable */
    size_t bytes;  /* bytes of all values so far */
};

/* Makes room in the executable, which owns it. */
int ipu__emitter_init(struct ipu__emitter *emitter, const ipu_graph *graph,
                      struct ipu_executable *executable);

/* Adds a node's step. All that it needs has been emitted. */
int ipu__emit_node(struct ipu__emitter *emitter, int32_t node);

/* Adds a host call's step and stream, or an output's stream. */
int ipu__emit_sink(struct ipu__emitter *emitter, const struct ipu__sink *sink);

int ipu__emit_assign(struct ipu__emitter *emitter,
                     const struct ipu__assign *assign);

/* Adds the element that a queue gets. Its tensors have been emitted. */
int ipu__emit_enqueue(struct ipu__emitter *emitter,
                      const struct ipu__enqueue *enqueue);

/*
 * Adds inputs, variables and the elements that queues give. Called last, when
 * it is known which tensors are used. Every input stays connectable, and every
 * variable is kept, since the host may write and read it.
 */
int ipu__emit_inputs(struct ipu__emitter *emitter);

#endif
