/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all ops, by the names that files use for them. */
#include <string.h>

#include "ops/op.h"

static const struct ipu__op *const ops[] = {
#define IPU__OP(op) &ipu__##op,
#include "ops/list.inc"
#undef IPU__OP
};

enum { NOPS = sizeof ops / sizeof *ops };

const struct ipu__op *ipu__op_at(int i)
{
    return i >= 0 && i < NOPS ? ops[i] : NULL;
}

const struct ipu__op *ipu__op_find(const char *name)
{
    for (int i = 0; i < NOPS; i++)
        if (strcmp(ops[i]->name, name) == 0)
            return ops[i];
    return NULL;
}
