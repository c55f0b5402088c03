/* SPDX-License-Identifier: Apache-2.0 */
#include "core/spares.h"

#include <stdlib.h>

static bool enter(struct hvd__spares *spares)
{
    return !atomic_flag_test_and_set_explicit(&spares->taken,
                                              memory_order_acquire);
}

static void leave(struct hvd__spares *spares)
{
    atomic_flag_clear_explicit(&spares->taken, memory_order_release);
}

void hvd__spares_fini(struct hvd__spares *spares)
{
    struct hvd__unit *unit;

    while ((unit = spares->list)) {
        spares->list = unit->next;
        free(unit);
    }
    spares->n = 0;
}

struct hvd__unit *hvd__spares_take(struct hvd__spares *spares)
{
    struct hvd__unit *unit = NULL;

    if (enter(spares)) {
        unit = spares->list;
        if (unit) {
            spares->list = unit->next;
            spares->n--;
        }
        leave(spares);
    }
    if (!unit)
        return hvd__unit_new(1);
    hvd__unit_reset(unit);
    return unit;
}

void hvd__spares_give(struct hvd__spares *spares, struct hvd__entry *entry)
{
    struct hvd__unit *unit = hvd__entry_fini(entry);

    if (unit && unit->nentries == 1 && enter(spares)) {
        if (spares->n < HVD__SPARES_MOST) {
            unit->next = spares->list;
            spares->list = unit;
            spares->n++;
            unit = NULL;
        }
        leave(spares);
    }
    free(unit);
}
