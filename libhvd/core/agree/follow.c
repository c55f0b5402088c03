/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - carries out what the coordinator has decided, on its own rank too.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/agree/by_name.h"
#include "core/run/complete.h"

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
            return hvd__message_garbled(set, 0);
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
        return hvd__message_garbled(set, 0);
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
        return hvd__message_garbled(set, 0);
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
        return hvd__message_garbled(set, 0);
    if (!request)
        return HVD_ERR_INTERNAL;
    if (request->output)
        memcpy(request->output, &last, sizeof last);
    hvd__complete(engine, request, HVD_OK, NULL);
    return HVD_OK;
}

/* Answers the coordinator, which does not know what one of our fingerprints
 * stands for. */
static int answer_question(struct hvd__engine *engine, struct hvd__set *set,
                           struct hvd__reader *in)
{
    uint64_t key = hvd__read_key(in);
    const struct hvd__submission *submission =
        hvd__table_look(&engine->table, set, key);
    struct hvd__writer out = {0};

    if (in->failed || !submission)
        return hvd__message_garbled(set, 0);
    hvd__message_begin(set, &out);
    hvd__write_type(&out, HVD__DETAIL);
    hvd__write_key(&out, key);
    hvd__write_int(&out, submission->state.nrequests);
    for (int i = 0; i < submission->state.nrequests; i++)
        hvd__write_signature(&out, &submission->requests[i].signature);
    return hvd__message_post(set, 0, &out);
}

static int follow_open(struct hvd__set *set, struct hvd__reader *in)
{
    int32_t epoch = hvd__read_int(in);
    int64_t nheard = 0;

    for (int rank = 0; rank < set->team.size; rank++) {
        int64_t n = hvd__read_long(in);
        if (rank == set->team.rank)
            nheard = n;
    }
    if (in->failed || !set->agreement->ordered.areas || epoch <= 0)
        return hvd__message_garbled(set, 0);
    hvd__ordered_open(set, (uint32_t)epoch, nheard);
    return HVD_OK;
}

static int follow_record(struct hvd__engine *engine, struct hvd__set *set,
                         struct hvd__reader *in)
{
    char text[HVD__MESSAGE_MAX];
    int32_t status;

    switch (hvd__read_type(in)) {
    case HVD__BATCH: return follow_batch(engine, set, in);
    case HVD__FAIL: return follow_failure(engine, set, in);
    case HVD__JOINED: return follow_joined(engine, set, in);
    case HVD__QUERY: return answer_question(engine, set, in);
    case HVD__TUNE:
        set->agreement->direct_max = (size_t)hvd__read_long(in);
        return in->failed ? hvd__message_garbled(set, 0) : HVD_OK;
    case HVD__OPEN: return follow_open(set, in);
    case HVD__CLOSE: set->agreement->heard_close = true; return HVD_OK;
    case HVD__BREAK:
        status = hvd__read_int(in);
        hvd__read_text(in, text, sizeof text);
        return in->failed || status >= 0 ? hvd__message_garbled(set, 0)
                                         : hvd__fail_text(status, text);
    default: return hvd__message_garbled(set, 0);
    }
}

int hvd__follow(struct hvd__engine *engine, struct hvd__set *set,
                const void *data, size_t bytes)
{
    struct hvd__reader in = {.data = data, .bytes = bytes};

    if (hvd__read_int(&in) != set->id)
        return hvd__message_garbled(set, 0);
    while (hvd__reader_more(&in))
        HVD_TRY(follow_record(engine, set, &in));
    return in.failed ? hvd__message_garbled(set, 0) : HVD_OK;
}
