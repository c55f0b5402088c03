/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - the declarations that the files of memory/ share: network.c builds
 * the graph, backends.c what runs it, training.c trains with each tool, and
 * account.c reports what that takes. Functions return 0 or PROBLEM with the
 * text kept, except where the device calls them.
 */
#ifndef MODELS_MEMORY_PARTS_H
#define MODELS_MEMORY_PARTS_H

#include "memory/batches.h"
#include "memory/training.h"
#include "trainer/engine.h"
#include "trainer/pipeline.h"
#include "trainer/replicas.h"

#include <hvd_model.h>

enum { MOST_LAYERS = 64 };

struct stage {
    struct training *training;
    int number;
};

/* One training with one tool. */
struct training {
    const struct training_settings *settings;
    enum tool tool;
    int rows;  /* rows of a run of one replica */
    int parts; /* runs, replicas or mini-batches in an update */
    ipu_graph *graph;
    ipu_executable *executable; /* owned by the backend */
    union {
        struct engine engine;
        struct replicas replicas;
        struct pipeline pipeline;
    };
    struct backend *backend; /* one of these; NULL: not made yet */
    struct stage stages[IPU_MAX_STAGES];
    struct hvd_iterator *batches; /* owned, as the net */
    hvd_net *net;
    int nvariables; /* weights of the layers, in their order */
    const hvd_variable *variables;
};

/* Returns layer i of x, in t's graph, and sets *w to its weights. */
ipu_tensor training_layer(const struct training *t, ipu_tensor x, int i,
                          int outputs, ipu_tensor *w);
/* Builds the graph, as the tool has it. */
int training_build(struct training *t);

/* Makes what runs the network. */
int training_make_backend(struct training *t);

/* Reports what the program takes on the chips, and what the compiler told of
 * it. */
int training_account(const struct training *t, struct training_result *result);
int training_ask_compiler(const struct training *t,
                          struct training_result *result);

#endif
