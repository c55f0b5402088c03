/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide.c - sends the coordinator's decisions to the members. Its own rank
 * follows them from the same bytes.
 */
#include "base/status.h"
#include "base/text.h"
#include "core/agree/agree.h"
#include "core/agree/by_name.h"

/* Takes the decisions that are due as one message, or none. The writer already
 * holds the set's id in front of them. */
static struct hvd__writer take_decisions(struct hvd__set *set, int room)
{
    struct hvd__agreement *a = set->agreement;
    struct hvd__writer *out =
        hvd__coordinator_decide(a->coordinator, room, a->fusion_threshold);
    struct hvd__writer message = {0};

    if (out->bytes > sizeof set->id || out->failed) {
        message = *out;
        *out = (struct hvd__writer){0};
        hvd__write_int(out, set->id);
    }
    return message;
}

/* Opens ordered mode, if nothing is left to be agreed on by name. */
static int open_ordered(struct hvd__engine *engine, struct hvd__set *set)
{
    struct hvd__ordered *x = &set->agreement->ordered;

    if (!engine->settings.ordered || !hvd__ordered_may_open(x) ||
        !hvd__coordinator_is_idle(set->agreement->coordinator))
        return HVD_OK;
    HVD_TRY(hvd__relay_open(set, x->epoch + 1, false));
    hvd__ordered_open(set, x->epoch + 1, false);
    return HVD_OK;
}

int hvd__decide(struct hvd__engine *engine, struct hvd__set *set)
{
    struct hvd__writer decisions;
    int status = HVD_OK;

    hvd__tuning_step(set, engine->settings.autotune_file);
    decisions = take_decisions(set, hvd__executor_room(set));
    if (decisions.failed)
        status = hvd__fail(HVD_ERR_MEMORY, "out of memory for decisions");
    else if (decisions.bytes > 0)
        status = hvd__follow(engine, set, decisions.data, decisions.bytes);
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
