/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.h - which collectives of a device's network carry bfloat16.
 */
#ifndef IPU_OPS_RECIPE_H
#define IPU_OPS_RECIPE_H

#include <stdbool.h>

#include "ipu.h"

/* Returns true if the recipe lets a collective of that name send a tensor that
 * is bfloat16 already. A recipe of NULL lets none. */
bool ipu__recipe_takes(const ipu_bf16_recipe *recipe, ipu_collective_kind kind,
                       const char *name);

/* Returns true if the recipe has such a collective round a tensor of float32 to
 * bfloat16 before it is sent. A recipe of NULL rounds none. */
bool ipu__recipe_converts(const ipu_bf16_recipe *recipe,
                          ipu_collective_kind kind, const char *name);

#endif
