/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide.c - sends the coordinator's questions and decisions to the members.
 * The coordinator's own rank follows decisions from the same bytes.
 */
#include "base/status.h"
#include "core/agree/agree.h"
#include "core/agree/by_name.h"
#include "trace/metrics.h"

static int ask_members(struct hvd__set *set)
{
    struct hvd__writer out = {0};
    uint64_t key;
    int peer;

    while (
        hvd__coordinator_question(set->agreement->coordinator, &peer, &key)) {
        hvd__message_begin(set, &out);
        hvd__count_alone(&set->metrics->questions, 1);
        hvd__write_type(&out, HVD__QUERY);
        hvd__write_key(&out, key);
        HVD_TRY(hvd__message_post(set, peer, &out));
    }
    return HVD_OK;
}

/* Takes the decisions that are due as one message, or none. The writer already
 * holds the set's id in front of them. */
static struct hvd__writer take_decisions(struct hvd__set *set, int room)
{
    struct hvd__writer *out =
        hvd__coordinator_decide(set->agreement->coordinator, room);
    struct hvd__writer message = {0};

    if (out->bytes > sizeof set->id || out->failed) {
        message = *out;
        *out = (struct hvd__writer){0};
        hvd__message_begin(set, out);
    }
    return message;
}

/* Opens ordered mode, if nothing is left to be agreed on by name. */
static void open_ordered(struct hvd__engine *engine, struct hvd__set *set)
{
    struct hvd__ordered *x = &set->agreement->ordered;
    struct hvd__writer *out;

    if (!engine->settings.ordered || !hvd__ordered_may_open(x) ||
        !hvd__coordinator_is_idle(set->agreement->coordinator))
        return;
    out = hvd__coordinator_decide(set->agreement->coordinator, 0);
    x->nheard[0] = x->nannounced;
    hvd__write_type(out, HVD__OPEN);
    hvd__write_int(out, (int32_t)(x->epoch + 1));
    for (int rank = 0; rank < set->team.size; rank++)
        hvd__write_long(out, x->nheard[rank]);
}

int hvd__decide(struct hvd__engine *engine, struct hvd__set *set)
{
    int room = hvd__executor_room(set);
    struct hvd__writer decisions;
    int status;

    HVD_TRY(ask_members(set));
    hvd__tuning_step(set, engine->settings.autotune_file);
    open_ordered(engine, set);
    decisions = take_decisions(set, room);
    if (decisions.bytes == 0 && !decisions.failed)
        return HVD_OK;
    status = decisions.failed
                 ? hvd__fail(HVD_ERR_MEMORY, "out of memory for decisions")
                 : hvd__message_tell(set, &decisions);
    if (status == HVD_OK)
        status = hvd__follow(engine, set, decisions.data, decisions.bytes);
    hvd__writer_fini(&decisions);
    return status;
}

void hvd__agree_break(struct hvd__engine *engine, int status, const char *text)
{
    for (struct hvd__set *set = engine->live; set; set = set->next) {
        struct hvd__writer out = {0};

        if (set->agreement->coordinator) {
            hvd__coordinator_break(set->agreement->coordinator, 0, status,
                                   text);
            out = take_decisions(set, 0);
            if (!out.failed && out.bytes > 0)
                hvd__message_tell(set, &out);
            hvd__writer_fini(&out);
            continue;
        }
        hvd__message_begin(set, &out);
        hvd__write_type(&out, HVD__BREAK);
        hvd__write_int(&out, status);
        hvd__write_text(&out, text);
        hvd__message_post(set, 0, &out);
    }
}
