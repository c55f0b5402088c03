/* SPDX-License-Identifier: Apache-2.0 */
#include "core/complete.h"

#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/world.h"

static _Thread_local bool in_callback;

bool hvd__in_callback(void)
{
    return in_callback;
}

void hvd__complete(struct hvd__world *world, struct hvd__entry *entry,
                   int status, const char *text)
{
    entry->status = status;
    /* If memory is short the waiter gets the short text instead. */
    entry->message = text ? strdup(text) : NULL;
    hvd__log(HVD__LOG_TRACE, "completed '%s': %s", entry->key,
             text ? text : hvd_strerror(status));
    hvd__ledger_remove(&world->ledger, entry);
    if (entry->callback) {
        if (status < 0)
            hvd__fail_text(status, text ? text : hvd_strerror(status));
        in_callback = true;
        entry->callback(entry->callback_context, status);
        in_callback = false;
    }
    hvd__ledger_finish(&world->ledger, entry);
}
