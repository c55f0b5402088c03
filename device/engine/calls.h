/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - the host's functions that a run calls: those of the graph, until
 * ipu_engine_connect_call replaces them.
 */
#ifndef IPU_ENGINE_CALLS_H
#define IPU_ENGINE_CALLS_H

#include "compiler/program.h"

struct ipu__host_function {
    ipu_host_fn fn; /* NULL: it has none */
    void *context;  /* borrowed */
};

struct ipu__calls {
    const struct ipu_executable *executable; /* borrowed */
    struct ipu__host_function *streams; /* owned, [streams]: of host calls */
    struct ipu__host_function *steps;   /* owned, [steps]: that receive */
};

int ipu__calls_init(struct ipu__calls *calls,
                    const struct ipu_executable *executable);
void ipu__calls_fini(struct ipu__calls *calls);

/* Give all of that name a function; NULL: the graph's. IPU_ERR_NAME. */
int ipu__calls_set(struct ipu__calls *calls, const char *name, ipu_host_fn fn,
                   void *context);

/* IPU_ERR_STATE names one without a function. */
int ipu__calls_check(const struct ipu__calls *calls);

/* Returns the attributes for a step that receives from the host. */
struct ipu__attributes ipu__calls_attributes(const struct ipu__calls *calls,
                                             const struct ipu__step *step);

#endif
