/* SPDX-License-Identifier: Apache-2.0 */
/* make.h - net_model (net.h) for those who do not see the device. */
#ifndef MODELS_NET_MAKE_H
#define MODELS_NET_MAKE_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_model;
struct model;

/* A component of the data, float32 or int32, with the batch as its first
 * dimension. */
struct net_component {
    const char *name;
    bool is_int;
    int32_t ndim;
    int64_t shape[5];
};

int net_make(const struct hvd_model *of, int count,
             const struct net_component *components, struct model **model);

/* Returns the rows of a batch. */
int64_t net_capacity(const struct model *model);

/* Return the losses of a batch, the number of a model's outputs and inputs, and
 * the name of an output. */
int64_t net_losses(const struct model *model);
int net_outputs(const struct model *model);
const char *net_output(const struct model *model, int i);

/* Returns the elements of an output for a batch, and whether they are int32. */
int64_t net_output_elements(const struct model *model, int i, bool *is_int);

/* Describes input i: its name, its dtype, the elements of a row, and whether a
 * prediction needs it. Returns false if there are not so many. */
bool net_input(const struct model *model, int i, const char **name,
               bool *is_int, int64_t *row, bool *is_needed);

/* Returns the classes if the result is logits [rows, classes] and the second
 * input int32 [rows], so that there is an accuracy; else 0. */
int64_t net_classes(const struct model *model);

/* Returns how many variables are trained. */
int net_trained(const struct model *model);

/* Variable number i: its name and number of elements; NULL if there is none.
 * statistics come behind the trained ones. */
const char *net_variable(const struct model *model, int i, int32_t *ndim,
                         const int64_t **shape, int64_t *count);

#endif
