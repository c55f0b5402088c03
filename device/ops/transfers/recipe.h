/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.h - which collectives of a device's network carry bfloat16.
 */
#ifndef IPU_OPS_RECIPE_H
#define IPU_OPS_RECIPE_H

#include <stdbool.h>

#include "ipu.h"

/* Whether a collective of that name takes a tensor of bfloat16 as it is, or
 * makes bfloat16 of one of float32. recipe may be NULL: no. */
bool ipu__recipe_takes(const ipu_bf16_recipe *recipe, ipu_collective_kind kind,
                       const char *name);
bool ipu__recipe_converts(const ipu_bf16_recipe *recipe,
                          ipu_collective_kind kind, const char *name);

#endif
