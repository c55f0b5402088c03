/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - sends on and carries out what the coordinator has decided, on its
 * own rank too. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/agree/by_name.h"
#include "core/run/complete.h"
#include "trace/metrics.h"

/* Returns the rank that has sent the decisions. */
static int sender_of(const struct hvd__set *set)
{
    int parent = set->agreement->relay.parent;

    return set->team.world[parent < 0 ? 0 : parent];
}

static int garbled(const struct hvd__set *set)
{
    return hvd__message_garbled(sender_of(set));
}

static struct hvd__request *find_decided(struct hvd__engine *engine,
                                         struct hvd__set *set, uint64_t key,
                                         int32_t index)
{
    struct hvd__submission *submission =
        hvd__table_look(&engine->table, set, key);

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

/* Reads the n numbers that the ranks carry into request, or skips them if
 * request is NULL. */
static int read_carried(struct hvd__reader *in, int n,
                        struct hvd__request *request)
{
    int64_t *carried = NULL;

    if (request && n > 0) {
        carried = malloc((size_t)n * sizeof *carried);
        if (!carried)
            return hvd__fail_memory((size_t)n * sizeof *carried);
        request->state.carried = carried;
    }
    for (int i = 0; i < n; i++) {
        int64_t number = hvd__read_long(in);

        in->failed |= number < 0;
        if (carried)
            carried[i] = number;
    }
    return HVD_OK;
}

static int follow_items(struct hvd__engine *engine, struct hvd__set *set,
                        struct hvd__reader *in, const int *absent)
{
    struct hvd__request *requests = NULL, **tail = &requests;
    int32_t n = hvd__read_count(in, 16);
    bool ours = !absent || !absent[set->team.rank];

    for (int32_t i = 0; i < n; i++) {
        uint64_t key = hvd__read_key(in);
        int32_t index = hvd__read_int(in);
        int32_t ncarried = hvd__read_int(in);
        struct hvd__request *request = NULL;

        if (in->failed || (ncarried != 0 && ncarried != set->team.size))
            return garbled(set);
        if (ours && !(request = find_decided(engine, set, key, index)))
            return HVD_ERR_INTERNAL;
        HVD_TRY(read_carried(in, ncarried, request));
        if (!request)
            continue;
        request->state.next = NULL;
        *tail = request;
        tail = &request->state.next;
    }
    if (in->failed || n == 0)
        return garbled(set);
    if (!requests) { /* this rank takes no part */
        hvd__execute_skip(set);
        return HVD_OK;
    }
    if (requests->signature.kind != HVD_BARRIER)
        return hvd__execute(set, requests, absent, set->agreement->direct_max);
    /* A barrier is complete when all ranks have called it. */
    hvd__complete(engine, requests, HVD_OK, NULL);
    return HVD_OK;
}

static int follow_batch(struct hvd__engine *engine, struct hvd__set *set,
                        struct hvd__reader *in)
{
    bool has_absent = hvd__read_int(in) != 0;

    if (has_absent)
        hvd__read_ranks(in, set->team.size, set->agreement->scratch);
    return follow_items(engine, set, in,
                        has_absent ? set->agreement->scratch : NULL);
}

static int follow_failure(struct hvd__engine *engine, struct hvd__set *set,
                          struct hvd__reader *in)
{
    char text[HVD__MESSAGE_MAX];
    int32_t status = hvd__read_int(in);
    struct hvd__request *request;
    uint64_t key;

    hvd__read_text(in, text, sizeof text);
    key = hvd__read_key(in);
    hvd__read_ranks(in, set->team.size, set->agreement->scratch);
    if (in->failed || status >= 0)
        return garbled(set);
    if (key == hvd__join_key())
        hvd__relay_rejoin(&set->agreement->relay);
    if (!set->agreement->scratch[set->team.rank])
        return HVD_OK;
    request = find_decided(engine, set, key, 0);
    if (!request)
        return HVD_ERR_INTERNAL;
    hvd__complete_submission(engine, request->submission, status, text);
    return HVD_OK;
}

static int follow_joined(struct hvd__engine *engine, struct hvd__set *set,
                         struct hvd__reader *in)
{
    int32_t last = hvd__read_int(in);
    struct hvd__request *request =
        find_decided(engine, set, hvd__join_key(), 0);

    if (in->failed)
        return garbled(set);
    if (!request)
        return HVD_ERR_INTERNAL;
    hvd__relay_rejoin(&set->agreement->relay);
    if (request->output)
        memcpy(request->output, &last, sizeof last);
    hvd__complete(engine, request, HVD_OK, NULL);
    return HVD_OK;
}

/* Answers the coordinator, which does not know what a fingerprint of one member
 * stands for. */
static int follow_question(struct hvd__engine *engine, struct hvd__set *set,
                           struct hvd__reader *in)
{
    uint64_t key = hvd__read_key(in);
    int32_t member = hvd__read_int(in);
    const struct hvd__submission *submission;
    struct hvd__writer *out;

    if (set->agreement->coordinator)
        hvd__count_alone(&set->metrics->questions, 1);
    if (in->failed || member != set->team.rank)
        return in->failed ? garbled(set) : HVD_OK;
    submission = hvd__table_look(&engine->table, set, key);
    if (!submission || set->agreement->coordinator)
        return garbled(set);
    out = hvd__relay_detail(set, 0, key, submission->state.nrequests);
    for (int i = 0; i < submission->state.nrequests; i++)
        hvd__write_signature(out, &submission->requests[i].signature);
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
        return garbled(set);
    HVD_TRY(hvd__relay_open(set, (uint32_t)epoch, refused));
    hvd__ordered_open(set, (uint32_t)epoch, refused);
    return HVD_OK;
}

static int follow_record(struct hvd__engine *engine, struct hvd__set *set,
                         struct hvd__reader *in)
{
    switch (hvd__read_type(in)) {
    case HVD__BATCH: return follow_batch(engine, set, in);
    case HVD__FAIL: return follow_failure(engine, set, in);
    case HVD__JOINED: return follow_joined(engine, set, in);
    case HVD__QUERY: return follow_question(engine, set, in);
    case HVD__TUNE:
        set->agreement->direct_max = (size_t)hvd__read_long(in);
        return in->failed ? garbled(set) : HVD_OK;
    case HVD__OPEN: return follow_open(set, in);
    case HVD__CLOSE: set->agreement->heard_close = true; return HVD_OK;
    case HVD__BREAK: return hvd__hear_break(engine, sender_of(set), in);
    default: return garbled(set);
    }
}

int hvd__follow(struct hvd__engine *engine, struct hvd__set *set,
                const void *data, size_t bytes)
{
    struct hvd__reader in = {.data = data, .bytes = bytes};

    hvd__read_int(&in);
    /* Each child gets an opening of its own. */
    if (bytes <= in.at || in.data[in.at] != HVD__OPEN)
        HVD_TRY(hvd__relay_tell(set, data, bytes));
    while (hvd__reader_more(&in))
        HVD_TRY(follow_record(engine, set, &in));
    return in.failed ? garbled(set) : HVD_OK;
}
