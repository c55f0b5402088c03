/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide.c - sends the coordinator's decisions to the members. Its own rank
 * follows them from the same bytes.
 */
#include "base/status.h"
#include "base/text.h"
#include "core/agree/agree.h"
#include "core/agree/by_name.h"

/* Opens ordered mode, if nothing is left to be agreed on by name. */
static int open_ordered(struct hvd__engine *engine, struct hvd__set *set)
{
    struct hvd__ordered *x = &set->agreement->ordered;

    if (!engine->settings.ordered || !hvd__ordered_may_open(x) ||
        !hvd__coordinator_is_idle(set->agreement->coordinator))
        return HVD_OK;
    return hvd__ordered_open(set, x->epoch + 1, false);
}

int hvd__decide(struct hvd__engine *engine, struct hvd__set *set)
{
    struct hvd__agreement *a = set->agreement;
    struct hvd__writer *out, decisions;
    int status = HVD_OK;

    hvd__tuning_step(set, engine->settings.autotune_file);
    out = hvd__coordinator_decide(a->coordinator, hvd__executor_room(set),
                                  &a->tune.now);
    decisions = *out;
    *out = (struct hvd__writer){0};
    if (decisions.failed)
        status = hvd__fail(HVD_ERR_MEMORY, "out of memory for decisions");
    else if (decisions.bytes > 0)
        status = hvd__follow(engine, set,
                             &(struct hvd__reader){.data = decisions.data,
                                                   .bytes = decisions.bytes});
    hvd__writer_fini(&decisions);
    return status == HVD_OK ? open_ordered(engine, set) : status;
}

/* The rank that reports a loss is not the one at fault. */
static bool names_itself(const struct hvd__engine *engine, int status)
{
    return !engine->is_told && status != HVD_ERR_LOST &&
           status != HVD_ERR_STALLED;
}

/* Each rank tells those next to it, so that all hear of it, whichever ranks
 * fail in between. */
void hvd__agree_break(struct hvd__engine *engine, int status, const char *text)
{
    char message[HVD__MESSAGE_MAX];
    struct hvd__text out = hvd__text_at(message, sizeof message);

    if (names_itself(engine, status))
        hvd__text_add(&out, "rank %d failed: ", engine->transport->rank);
    hvd__text_add(&out, "%s", text);
    for (struct hvd__set *set = engine->live; set; set = set->next)
        hvd__relay_break(set, status, message);
}
