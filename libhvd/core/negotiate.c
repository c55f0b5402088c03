/* SPDX-License-Identifier: Apache-2.0 */
/*
 * negotiate.c - requests become decisions.
 *
 *     rank r:  ledger ──ANNOUNCE──► rank 0: coordinator
 *                                      │ decides when all ranks have said so
 *     every rank:  executor ◄──BATCH───┤
 *                  ledger   ◄──FAIL────┘
 *
 * All ranks follow rank 0's decisions in the order in which it sent them, so
 * all run the same batches in the same order although they submitted in
 * different ones. Rank 0 follows its own decisions the same way, from the
 * same bytes.
 *
 * Leaving is a record too (LEAVE); when all have left, CLOSE ends the world.
 */
#include "core/negotiate.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/complete.h"
#include "core/world.h"

/* ----------------------------------------------------------- what we submit */

static int announce(struct hvd__world *world, const struct hvd__entry *entry,
                    struct hvd__writer *out)
{
    if (world->coordinator && entry->status < 0)
        return hvd__coordinator_refuse(world->coordinator, 0, entry->key,
                                       entry->status, entry->message);
    if (world->coordinator)
        return hvd__coordinator_announce(world->coordinator, 0, entry->key,
                                         &entry->signature);
    hvd__write_type(out, entry->status < 0 ? HVD__REFUSE : HVD__ANNOUNCE);
    hvd__write_text(out, entry->key);
    if (entry->status < 0) {
        hvd__write_int(out, entry->status);
        hvd__write_text(out, entry->message);
    } else {
        hvd__write_signature(out, &entry->signature);
    }
    return HVD_OK;
}

static int leave(struct hvd__world *world, struct hvd__writer *out)
{
    if (world->said_leave || !atomic_load(&world->leaving))
        return HVD_OK;
    world->said_leave = true;
    if (world->coordinator)
        return hvd__coordinator_leave(world->coordinator, 0);
    hvd__write_type(out, HVD__LEAVE);
    return HVD_OK;
}

/* Send what was written, if anything; out is empty afterwards. */
static int post(struct hvd__world *world, int peer, struct hvd__writer *out)
{
    struct hvd__transport *t = world->transport;
    struct hvd__writer message = *out;

    *out = (struct hvd__writer){0};
    if (message.failed) {
        hvd__writer_fini(&message);
        return hvd__fail(HVD_ERR_MEMORY, "out of memory for the negotiation");
    }
    if (message.bytes == 0) {
        hvd__writer_fini(&message);
        return HVD_OK;
    }
    return t->post(t, peer, message.data, message.bytes);
}

static int announce_all(struct hvd__world *world, bool *moved)
{
    /* Leave is looked at first: what is submitted before hvd_shutdown is in
     * the queue by then, and so is announced before the leave. */
    bool leaving = atomic_load(&world->leaving);
    struct hvd__entry *entry = hvd__ledger_take(&world->ledger);
    struct hvd__writer out = {0};
    int status = HVD_OK;

    *moved |= entry != NULL;
    while (entry) {
        struct hvd__entry *next = entry->next;

        entry->next = NULL;
        if (status == HVD_OK)
            status = announce(world, entry, &out);
        if (entry->status < 0)
            hvd__entry_free(entry);
        entry = next;
    }
    if (status == HVD_OK && leaving)
        status = leave(world, &out);
    if (status < 0) {
        hvd__writer_fini(&out);
        return status;
    }
    return post(world, 0, &out);
}

/* -------------------------------------------------------- what workers say */

static int garbled(int peer)
{
    return hvd__fail(HVD_ERR_INTERNAL,
                     "rank %d sent a message that makes no sense", peer);
}

static int hear_record(struct hvd__world *world, int peer,
                       struct hvd__reader *in)
{
    struct hvd__coordinator *c = world->coordinator;
    enum hvd__record_type type = hvd__read_type(in);
    char key[HVD__KEY_SIZE], text[HVD__MESSAGE_MAX];
    struct hvd__signature signature;
    int32_t status;

    switch (type) {
    case HVD__ANNOUNCE:
        hvd__read_text(in, key, sizeof key);
        hvd__read_signature(in, &signature);
        if (in->failed)
            return garbled(peer);
        return hvd__coordinator_announce(c, peer, key, &signature);
    case HVD__REFUSE:
        hvd__read_text(in, key, sizeof key);
        status = hvd__read_int(in);
        hvd__read_text(in, text, sizeof text);
        if (in->failed || status >= 0)
            return garbled(peer);
        return hvd__coordinator_refuse(c, peer, key, status, text);
    case HVD__LEAVE: return hvd__coordinator_leave(c, peer);
    case HVD__BREAK:
        status = hvd__read_int(in);
        hvd__read_text(in, text, sizeof text);
        if (in->failed || status >= 0)
            return garbled(peer);
        hvd__coordinator_break(c, peer, status, text);
        return HVD_OK;
    default: return garbled(peer);
    }
}

/* ------------------------------------------------------- what rank 0 decides
 */

static int follow_batch(struct hvd__world *world, struct hvd__reader *in)
{
    struct hvd__entry *entries = NULL, **tail = &entries;
    int32_t n = hvd__read_int(in);
    char key[HVD__KEY_SIZE];

    for (int32_t i = 0; i < n; i++) {
        struct hvd__entry *entry;

        hvd__read_text(in, key, sizeof key);
        if (in->failed)
            return garbled(0);
        entry = hvd__ledger_decide(&world->ledger, key);
        if (!entry)
            return hvd__fail(HVD_ERR_INTERNAL,
                             "rank 0 decided to run '%s', which is not in "
                             "flight here",
                             key);
        entry->next = NULL;
        *tail = entry;
        tail = &entry->next;
    }
    if (!entries)
        return garbled(0);
    if (entries->signature.kind != HVD_BARRIER)
        return hvd__execute(world, entries);
    /* That all ranks have called it is all that a barrier says. */
    hvd__complete(world, entries, HVD_OK, NULL);
    return HVD_OK;
}

static int follow_failure(struct hvd__world *world, struct hvd__reader *in)
{
    const struct hvd__transport *t = world->transport;
    char key[HVD__KEY_SIZE], text[HVD__MESSAGE_MAX];
    struct hvd__entry *entry;
    int32_t status = hvd__read_int(in);
    bool ours;

    hvd__read_text(in, text, sizeof text);
    hvd__read_text(in, key, sizeof key);
    ours = hvd__read_ranks(in, t->size, t->rank);
    if (in->failed || status >= 0)
        return garbled(0);
    if (!ours)
        return HVD_OK;
    entry = hvd__ledger_decide(&world->ledger, key);
    if (!entry)
        return hvd__fail(HVD_ERR_INTERNAL,
                         "rank 0 decided that '%s' fails, which is not in "
                         "flight here",
                         key);
    hvd__complete(world, entry, status, text);
    return HVD_OK;
}

static int follow_record(struct hvd__world *world, struct hvd__reader *in)
{
    char text[HVD__MESSAGE_MAX];
    int32_t status;

    switch (hvd__read_type(in)) {
    case HVD__BATCH: return follow_batch(world, in);
    case HVD__FAIL: return follow_failure(world, in);
    case HVD__CLOSE: world->heard_close = true; return HVD_OK;
    case HVD__BREAK:
        status = hvd__read_int(in);
        hvd__read_text(in, text, sizeof text);
        return in->failed || status >= 0 ? garbled(0)
                                         : hvd__fail_text(status, text);
    default: return garbled(0);
    }
}

static int follow(struct hvd__world *world, const void *data, size_t bytes)
{
    struct hvd__reader in = {.data = data, .bytes = bytes};

    while (hvd__reader_more(&in))
        HVD_TRY(follow_record(world, &in));
    return HVD_OK;
}

static int hear(struct hvd__world *world, bool *moved)
{
    struct hvd__transport *t = world->transport;
    void *message;
    size_t bytes;
    int peer, status;

    while ((status = t->poll(t, &peer, &message, &bytes)) == 1) {
        struct hvd__reader in = {.data = message, .bytes = bytes};

        *moved = true;
        if (!world->coordinator)
            status = follow(world, message, bytes);
        else
            do
                status = hear_record(world, peer, &in);
            while (status >= 0 && hvd__reader_more(&in));
        free(message);
        if (status < 0)
            break;
    }
    return status;
}

/* Send the bytes to every other rank; each gets a copy of its own. */
static int tell(struct hvd__world *world, const struct hvd__writer *out)
{
    for (int peer = 1; peer < world->transport->size; peer++) {
        struct hvd__writer copy = {.data = malloc(out->bytes),
                                   .bytes = out->bytes};

        if (copy.data)
            memcpy(copy.data, out->data, out->bytes);
        copy.failed = !copy.data;
        HVD_TRY(post(world, peer, &copy));
    }
    return HVD_OK;
}

static int decide(struct hvd__world *world)
{
    int room = HVD__LANES - world->executor.nunfinished;
    struct hvd__writer *out = hvd__coordinator_decide(world->coordinator, room);
    struct hvd__writer decisions = *out;
    int status;

    if (decisions.bytes == 0 && !decisions.failed)
        return HVD_OK;
    *out = (struct hvd__writer){0};
    status = decisions.failed
                 ? hvd__fail(HVD_ERR_MEMORY, "out of memory for decisions")
                 : tell(world, &decisions);
    if (status == HVD_OK)
        status = follow(world, decisions.data, decisions.bytes);
    hvd__writer_fini(&decisions);
    return status;
}

int hvd__negotiate_step(struct hvd__world *world, bool *moved)
{
    HVD_TRY(announce_all(world, moved));
    HVD_TRY(hear(world, moved));
    if (world->coordinator)
        HVD_TRY(decide(world));
    return world->transport->pending(world->transport);
}

void hvd__negotiate_break(struct hvd__world *world, int status,
                          const char *text)
{
    struct hvd__writer out = {0};

    if (world->coordinator) {
        hvd__coordinator_break(world->coordinator, 0, status, text);
        out = *hvd__coordinator_decide(world->coordinator, 0);
        *hvd__coordinator_decide(world->coordinator, 0) =
            (struct hvd__writer){0};
        if (!out.failed)
            tell(world, &out);
        hvd__writer_fini(&out);
        return;
    }
    hvd__write_type(&out, HVD__BREAK);
    hvd__write_int(&out, status);
    hvd__write_text(&out, text);
    post(world, 0, &out);
}
