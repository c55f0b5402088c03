/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transformer.h - a decoder of characters, as a model (b pieces of t
 * characters, c wide):
 *
 *   characters [b, t]
 *     table of characters + table of places   [b t, c]
 *     layers times:
 *       x += dense(attention(dense(norm(x)))) causal, in heads
 *       x += dense(gelu(dense(norm(x))))      4 c wide inside
 *     norm, dense                             [b t, characters]  logits
 *
 * Norms come before the layers that they feed (Radford et al., 2019). Dropout,
 * if any, is applied to the sum of the tables and to each sum that is added to
 * x. Weights start normally with a deviation of 0.02, those before an addition
 * with 0.02 / sqrt(2 layers). Tied, the last dense layer is the table of
 * characters transposed (Press and Wolf, 2017), without a bias; it has none
 * untied either.
 */
#ifndef MODELS_TRANSFORMER_H
#define MODELS_TRANSFORMER_H

#include <stdbool.h>

struct hvd_model; /* hvd_model.h */
struct model;     /* model.h */

/* What an option says of it each. */
struct gpt_shape {
    int layers, heads, width, context;
    double dropout;
    bool tied;
};

/* Makes the network: its inputs are "inputs" and "labels", int32 [t]. NULL with
 * the text kept. */
struct hvd_model *transformer_new(const struct gpt_shape *shape,
                                  int characters);
void transformer_free(struct hvd_model *network); /* NULL is accepted */

/* Makes such a network, which must outlive it, a model, which the caller owns.
 * PROBLEM: no memory; *model stays as it is. */
int transformer_model(const struct hvd_model *network, int batch_size,
                      struct model **model);

#endif
