/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - makes a model (model/model.h) of a network's building functions
 * (hvd_model.h).
 *
 * The functions are called first on graphs that are thrown away: so it becomes
 * known which variables, inputs, results and losses the network has. From then
 * on the model calls them for each program, with the variables of that program.
 */
#ifndef MODELS_NET_H
#define MODELS_NET_H

#include "model/model.h"

#include <hvd_model.h>

/* A variable that the functions have asked for. */
struct net_variable {
    char name[48];
    hvd_initializer initializer;
    bool trained;
    int32_t ndim;
    int64_t shape[4];
    bool pieces[HVD_MODEL_MOST_PIECES]; /* those that need it */
    int number; /* in the model; -1 before there is one */
};

/* Where a variable is that a strategy updates. */
struct net_place {
    float *value, *mean;           /* owned; mean: NULL, but of a statistic */
    struct hvd_strategy *strategy; /* borrowed */
    int32_t number;                /* in it */
};

struct hvd_net {
    hvd_model of;                                   /* the caller's */
    hvd_build_fn *functions[HVD_MODEL_MOST_PIECES]; /* one, or one a piece */
    struct net_marks *marks; /* of the call for one piece (pieces.c) */
    struct model *model;     /* NULL before all is known */
    struct model_tensor inputs[MODEL_MOST_INPUTS];
    int ninputs;
    int npieces;                    /* 0: a network of a program's own */
    uint64_t needed;                /* bit i: a prediction needs input i */
    struct net_variable *variables; /* owned, as they were asked for */
    int nvariables, capacity;
    struct model_tensor outputs[MODEL_MOST_OUTPUTS];
    int noutputs;
    bool draws;
    bool is_spare; /* the graph is one that is thrown away */
    int64_t work[HVD_MODEL_MOST_PIECES]; /* products of a piece */
    /* These belong to the present call: */
    ipu_graph *graph;
    hvd_mode mode;
    const struct model_pass *pass;
    const ipu_tensor *given; /* [variables of the model]; NULL: none yet */
    ipu_tensor *made;        /* owned, [capacity]: without a model */
    ipu_tensor results[MODEL_MOST_OUTPUTS];
    int piece;
    uint64_t drops; /* calls of hvd_dropout in this piece */
    int status;     /* the first failure, with the text below */
    char text[512];
    /* These belong to a program's own pass (own.c): */
    struct model_pass own;
    uint64_t seed;
    hvd_variable *told;       /* owned, [capacity] */
    struct net_place *places; /* owned, [nplaces] (connect.c) */
    int nplaces;
};

/*
 * Makes a model of a network whose inputs are those, each with the batch as its
 * first dimension. The caller owns *model. PROBLEM with the text kept; then
 * of->context has been given back, too.
 */
int net_model(const hvd_model *of, int ninputs,
              const struct model_tensor *inputs, struct model **model);

/* Keeps a failure of a building function. Returns a tensor that says so. */
__attribute__((format(printf, 2, 3))) ipu_tensor net_fail(hvd_net *net,
                                                          const char *format,
                                                          ...);

/* Returns the dimensions of a tensor and its shape, of IPU_MAX_DIMS; -1 for one
 * that is a failure. */
int32_t net_shape(hvd_net *net, ipu_tensor x, int64_t *shape);

/* Calls the functions of all pieces, one after the other. */
ipu_tensor net_build_all(hvd_net *net, ipu_tensor x);

/* Builds one piece on the graph. */
ipu_tensor net_build_piece(hvd_net *net, int piece, ipu_tensor x);

/* Checks that each piece can be built on a graph of its own. */
int net_check_pieces(const struct model *model);

/* Returns a variable of a layer: "conv1/kernel". */
ipu_tensor net_layer_variable(hvd_net *net, const char *layer, const char *what,
                              hvd_initializer initializer, int32_t ndim,
                              const int64_t *shape);

/* Returns the dimensions of a layer's input x, or -1 with a failure kept if
 * there are fewer than wanted. */
int32_t net_layer_shape(hvd_net *net, const char *layer, ipu_tensor x,
                        int32_t wanted, int64_t *shape);

/* Returns the first value's distribution of a shape, by what hvd_initializer
 * says of it. */
enum model_start net_start(const hvd_initializer *initializer, int32_t ndim,
                           const int64_t *shape, double *spread);

#endif
