/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.h - what the builders of optimisers share. Each of them sets
 * part->result; failures stay in the graph.
 */
#ifndef IPU_OPS_OPTIMIZERS_BUILD_H
#define IPU_OPS_OPTIMIZERS_BUILD_H

#include "ops/optimizers/optimizers.h"
#include "ops/optimizers/update.h"

/* Checks that part->variable is a variable. name: of the optimiser. */
int ipu__update_check(ipu_graph *graph, const char *name,
                      const struct ipu__update *part);

/* Check the size of options, and their numbers. */
int ipu__update_size(const char *name, uint32_t size, size_t wanted);
int ipu__update_share(const char *name, const char *what, double value);
int ipu__update_positive(const char *name, const char *what, double value);
int ipu__update_decay(const char *name, double value);

/* Returns a variable that is kept beside another, for what is updated of it, on
 * its chip: w/what. */
ipu_tensor ipu__update_slot(ipu_graph *graph, const struct ipu__update *part,
                            const char *what);

/* Returns a fa + b fb, or with ipu__blend_square a fa + b^2 fb. */
ipu_tensor ipu__update_blend(ipu_graph *graph, const struct ipu__op *op,
                             ipu_tensor a, double fa, ipu_tensor b, double fb);

/* A factor that depends on a momentum: constant + slope momentum. */
struct ipu__factor {
    double constant, slope;
};

static const struct ipu__factor ipu__one = {1, 0}, ipu__share = {0, 1},
                                ipu__rest = {1, -1};

/* Returns a fa + b fb, with the part's momentum if it has a tensor for it, else
 * with that of the options. */
ipu_tensor ipu__update_carry(ipu_graph *graph, const struct ipu__update *part,
                             double momentum, ipu_tensor a,
                             struct ipu__factor fa, ipu_tensor b,
                             struct ipu__factor fb);

/* Keeps what momentum carries on: w/what becomes what it was times the
 * momentum, plus x fx, which is returned. */
ipu_tensor ipu__update_keep_by(ipu_graph *graph, const struct ipu__update *part,
                               const char *what, double momentum, ipu_tensor x,
                               struct ipu__factor fx);

/* Keeps a mean: w/what becomes what it was times fa, plus x (or its square)
 * times fb, which is returned. */
ipu_tensor ipu__update_keep(ipu_graph *graph, const struct ipu__update *part,
                            const char *what, const struct ipu__op *op,
                            double fa, ipu_tensor x, double fb);

/* Sets the result: value - rate (u + decay value). */
int ipu__update_descend(ipu_graph *graph, struct ipu__update *part,
                        ipu_tensor u, ipu_tensor rate, double decay);

/* Returns the square root of the sum of the squares of all parts, in float32.
 * what: the name of the sum. */
ipu_tensor ipu__update_length(ipu_graph *graph, const struct ipu__update *part,
                              const char *what, ipu_tensor x);

/* Returns a / b, and 1 if one of the lengths p and q is 0; all are scalars. */
ipu_tensor ipu__update_ratio(ipu_graph *graph, ipu_tensor a, ipu_tensor b,
                             ipu_tensor p, ipu_tensor q);

/* The optimisers, each in the file of its family. */
int ipu__sgd(ipu_graph *graph, struct ipu__update *part, ipu_tensor gradient,
             ipu_tensor rate, const ipu_sgd_options *options);
int ipu__lars(ipu_graph *graph, struct ipu__update *part, ipu_tensor gradient,
              ipu_tensor rate, const ipu_lars_options *options);
int ipu__moments(ipu_graph *graph, ipu_optimizer_kind kind,
                 struct ipu__update *part, ipu_tensor gradient, ipu_tensor rate,
                 ipu_tensor step, const ipu_adam_options *options);
int ipu__rms(ipu_graph *graph, ipu_optimizer_kind kind,
             struct ipu__update *part, ipu_tensor gradient, ipu_tensor rate,
             const ipu_rms_options *options);

#endif
