/* SPDX-License-Identifier: Apache-2.0 */
#include "core/quick.h"

#include "base/clock.h"
#include "base/status.h"
#include "core/complete.h"

/* Whether there is a chance, by what the request is. */
static bool may_be_quick(const hvd_request *request)
{
    return request->kind == HVD_BARRIER || request->kind == HVD_BROADCAST ||
           (request->kind == HVD_ALLREDUCE && request->op != HVD_ADASUM &&
            request->compression == HVD_COMPRESSION_NONE);
}

/* The unit is given to the books; its request goes the usual way from here.
 * Without memory for that nothing can go on. */
static void adopt(struct hvd__world *world, struct hvd__unit *unit, bool posted,
                  hvd_handle *handle)
{
    int status = hvd__ledger_adopt(&world->ledger, unit, handle);

    world->spare = NULL;
    if (status < 0) {
        hvd__world_break(world, status, hvd_last_error());
        *handle = -1; /* of nothing: to wait for it is an error */
        return;
    }
    hvd__count(&world->metrics.kinds[unit->entries[0].signature.kind].submitted,
               1);
    if (!posted)
        hvd__express_submit(&unit->set->express, unit);
}

/* With the role of the driver. */
static bool run(struct hvd__world *world, struct hvd__set *set,
                const hvd_request *request, hvd_handle *handle)
{
    struct hvd__unit *unit = world->spare;
    struct hvd__entry *entry;
    enum hvd__quick done;

    if (!hvd__express_is_free(&set->express))
        return false;
    if (!unit)
        unit = world->spare = hvd__unit_new(1);
    if (!unit)
        return false;
    hvd__unit_reset(unit);
    unit->set = set;
    unit->priority = request->priority;
    entry = &unit->entries[0];
    /* What is wrong will be said on the usual way. */
    if (hvd__request_check(request, set, "request", entry) < 0)
        return false;
    unit->submitted_ns = hvd__now_ns();
    unit->fingerprint =
        hvd__signature_fingerprint(unit->fingerprint, &entry->signature);
    if (!hvd__ledger_name(&world->ledger, unit))
        return false;
    hvd__watch_doing(world->watch, hvd_kind_name(request->kind), unit->name,
                     unit->submitted_ns);
    done = hvd__express_quick(world, set, unit);
    if (done == HVD__QUICK_DONE)
        hvd__complete_quick(world, entry);
    else
        adopt(world, unit, done == HVD__QUICK_POSTED, handle);
    return true;
}

bool hvd__quick_run(struct hvd__world *world, const hvd_request *request,
                    hvd_handle *handle)
{
    struct hvd__set *set;
    bool ran;

    *handle = 0;
    /* A timeline wants to know more than there is time for. */
    if (!may_be_quick(request) || atomic_load(&world->broken) ||
        atomic_load(&world->doom) < 0 || hvd__scribe_listens(&world->scribe))
        return false;
    set = hvd__world_set(world, request->process_set);
    if (!set || !hvd__set_has_us(set) || !hvd__progress_take(world))
        return false;
    ran = run(world, set, request, handle);
    hvd__progress_give(world);
    return ran;
}
