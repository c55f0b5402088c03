/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - sends on and carries out what the coordinator has decided, on its
 * own rank too, from the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/agree/agree.h"
#include "core/agree/agreement.h"
#include "core/run/complete.h"

static struct hvd__request *find_decided(struct hvd__set *set, uint64_t key,
                                         int32_t index)
{
    struct hvd__submission *submission =
        hvd__table_look(&set->engine->table, set, key);

    if (!submission || index < 0 || index >= submission->state.nrequests) {
        hvd__fail(HVD_ERR_INTERNAL,
                  "a decision on %016llx, which is not in flight here",
                  (unsigned long long)key);
        return NULL;
    }
    if (submission->state.decided_ns == 0) {
        submission->state.decided_ns = hvd__now_ns();
        atomic_store(&submission->state.decided, true);
    }
    return &submission->requests[index];
}

/* Reads a request of a batch; NULL if this rank takes no part. */
static int read_item(struct hvd__set *set, struct hvd__reader *in, bool ours,
                     struct hvd__request **request)
{
    uint64_t key = (uint64_t)hvd__read_long(in);
    int32_t index = hvd__read_int(in), ncarried = hvd__read_int(in);
    int64_t *carried;

    *request = NULL;
    if (in->failed || (ncarried != 0 && ncarried != set->team.size))
        return hvd__reader_fail(in);
    if (ours && !(*request = find_decided(set, key, index)))
        return HVD_ERR_INTERNAL;
    HVD_TRY(hvd__read_numbers(in, (size_t)ncarried, &carried));
    if (ours)
        (*request)->state.carried = carried;
    else
        free(carried);
    return HVD_OK;
}

static int follow_batch(struct hvd__set *set, struct hvd__reader *in)
{
    const int *part = set->agreement->scratch;
    int64_t direct_max = hvd__read_long(in);
    bool all = hvd__read_ranks(in, set->team.size, set->agreement->scratch) ==
               set->team.size;
    bool ours = part[set->team.rank] != 0;
    struct hvd__request_list requests = {0};
    int32_t n = hvd__read_count(in, 24);

    for (int32_t i = 0; i < n; i++) {
        struct hvd__request *request;

        HVD_TRY(read_item(set, in, ours, &request));
        if (request)
            hvd__request_list_add(&requests, request);
    }
    if (in->failed || n == 0 || direct_max < 0)
        return hvd__reader_fail(in);
    if (ours && requests.first->signature.kind != HVD_BARRIER)
        return hvd__execute(set, requests.first, all ? NULL : part,
                            (size_t)direct_max);
    if (ours) /* all ranks have called the barrier */
        hvd__complete(set->engine, requests.first, HVD_OK, NULL);
    else
        hvd__execute_skip(set);
    return HVD_OK;
}

/* Only a join ends well in this way. */
static int follow_end(struct hvd__set *set, struct hvd__reader *in)
{
    char text[HVD__MESSAGE_MAX];
    uint64_t key = (uint64_t)hvd__read_long(in);
    int32_t status = hvd__read_int(in), last;
    bool is_join = key == hvd__join_key();
    struct hvd__request *request;

    hvd__read_text(in, text, sizeof text);
    last = hvd__read_int(in);
    hvd__read_ranks(in, set->team.size, set->agreement->scratch);
    if (in->failed || status > 0 || (status == HVD_OK && !is_join))
        return hvd__reader_fail(in);
    if (is_join)
        hvd__proposals_rejoin(&set->agreement->relay.held);
    if (!set->agreement->scratch[set->team.rank])
        return HVD_OK;
    request = find_decided(set, key, 0);
    if (!request)
        return HVD_ERR_INTERNAL;
    if (status < 0) {
        hvd__complete_submission(set->engine, request->submission, status,
                                 text);
        return HVD_OK;
    }
    if (request->output)
        memcpy(request->output, &last, sizeof last);
    hvd__complete(set->engine, request, HVD_OK, NULL);
    return HVD_OK;
}

/* A rank that refuses the epoch makes its children refuse it too: what they
 * have said may have come no further than here. */
static int follow_open(struct hvd__set *set, struct hvd__reader *in)
{
    int32_t epoch = hvd__read_int(in);
    bool refused =
        !hvd__relay_is_heard(&set->agreement->relay, hvd__read_long(in));

    if (in->failed || epoch <= 0 ||
        set->agreement->ordered.state == HVD__ORDERED_OFF)
        return hvd__reader_fail(in);
    return hvd__ordered_open(set, (uint32_t)epoch, refused);
}

int hvd__follow(struct hvd__set *set, struct hvd__reader *in)
{
    /* Each child gets an opening of its own. */
    if (!hvd__reader_more(in) || in->data[in->at] != HVD__OPEN)
        HVD_TRY(hvd__relay_tell(set, in->data + in->at, in->bytes - in->at));
    while (hvd__reader_more(in))
        switch (hvd__read_type(in)) {
        case HVD__BATCH: HVD_TRY(follow_batch(set, in)); break;
        case HVD__END: HVD_TRY(follow_end(set, in)); break;
        case HVD__OPEN: HVD_TRY(follow_open(set, in)); break;
        case HVD__CLOSE: set->agreement->heard_close = true; break;
        case HVD__BREAK: return hvd__hear_break(set->engine, in);
        default: return hvd__reader_fail(in);
        }
    return HVD_OK;
}

/* ---------------------------------------------------------- the coordinator */

int hvd__decide(struct hvd__set *set)
{
    struct hvd__agreement *a = set->agreement;
    struct hvd__writer out;
    int status = HVD_OK;

    hvd__tuning_step(set);
    out = hvd__coordinator_decide(a->coordinator, hvd__executor_room(set),
                                  &a->tune.now);
    if (out.failed)
        status = hvd__fail(HVD_ERR_MEMORY, "out of memory for decisions");
    else if (out.bytes > 0)
        status = hvd__follow(
            set, &(struct hvd__reader){.data = out.data, .bytes = out.bytes});
    hvd__writer_fini(&out);
    /* Ordered mode opens if nothing is left to be agreed on by name. */
    if (status == HVD_OK && set->engine->settings.ordered &&
        hvd__ordered_may_open(&a->ordered) &&
        hvd__coordinator_is_idle(a->coordinator))
        status = hvd__ordered_open(set, a->ordered.epoch + 1, false);
    return status;
}

/* Each rank tells those next to it, so that all hear of it, whichever ranks
 * fail in between. It names itself, unless another is at fault. */
void hvd__agree_break(struct hvd__engine *engine, int status, const char *text)
{
    char message[HVD__MESSAGE_MAX];
    struct hvd__text out = hvd__text_at(message, sizeof message);

    if (!engine->is_told && status != HVD_ERR_LOST && status != HVD_ERR_STALLED)
        hvd__text_add(&out, "rank %d failed: ", engine->transport->rank);
    hvd__text_add(&out, "%s", text);
    for (struct hvd__set *set = engine->live; set; set = set->next)
        hvd__relay_break(set, status, message);
}
