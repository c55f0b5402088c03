/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models.h - the gradients of models that people train: how many, and how
 * large, in the order in which a backward pass produces them.
 */
#ifndef BENCH_MODELS_H
#define BENCH_MODELS_H

#include <stdint.h>

struct tensor_list {
    int64_t *counts; /* owned; elements of each, backward */
    int n;
    int capacity;
};

/* The names; ends with NULL. */
extern const char *const model_names[];

/* Lists the gradients of the model with this index in the names. Returns 0, or
 * -1 without memory. */
int model_list(int i, struct tensor_list *list);
void tensor_list_fini(struct tensor_list *list);

/* Returns the elements of all tensors together. */
int64_t tensor_list_total(const struct tensor_list *list);

#endif
