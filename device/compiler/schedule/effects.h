/* SPDX-License-Identifier: Apache-2.0 */
/*
 * effects.h - the order that loops and stores ask of a schedule.
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

/* Mark what node n needs beside its inputs, and what must run before it, of
 * what has not been scheduled. All of these come before n in the graph. */
void ipu__effects_want(const struct ipu__effects *effects, int32_t n,
                       const bool *scheduled, bool *wanted);

#endif
