/* SPDX-License-Identifier: Apache-2.0 */
/*
 * effects.h - which nodes must run before a loop or a store.
 */
#ifndef IPU_COMPILER_SCHEDULE_EFFECTS_H
#define IPU_COMPILER_SCHEDULE_EFFECTS_H

#include "compiler/program.h"

struct ipu__effects {
    const ipu_graph *graph; /* borrowed */
    bool *live;             /* owned, [nodes]: something needs it; NULL: there
                               is nothing to order */
};

int ipu__effects_init(struct ipu__effects *effects, const ipu_graph *graph);
void ipu__effects_fini(struct ipu__effects *effects);

/* Marks nodes that are not scheduled and that node n needs in addition to its
 * inputs, or that must run before it. All of them come before n in the graph.
 */
void ipu__effects_want(const struct ipu__effects *effects, int32_t n,
                       const bool *scheduled, bool *wanted);

#endif
