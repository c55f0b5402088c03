/* SPDX-License-Identifier: Apache-2.0 */
#include "base/left.h"

#include <stdatomic.h>
#include <stdlib.h>

struct left {
    struct left *next;
    void *block;
};

/* The list is volatile, since a compiler could leave out a variable that nobody
 * but memory checkers reads. */
static struct left *_Atomic volatile all;

void hvd__leave_behind(void *block)
{
    struct left *left = malloc(sizeof *left);

    /* Without memory a checker reports the block; nothing else is lost. */
    if (!left)
        return;
    left->block = block;
    left->next = atomic_load(&all);
    while (!atomic_compare_exchange_weak(&all, &left->next, left))
        continue;
}
