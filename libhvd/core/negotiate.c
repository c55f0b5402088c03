/* SPDX-License-Identifier: Apache-2.0 */
/*
 * negotiate.c - requests become decisions, on each process set by itself.
 *
 *     member r:      ledger ──ANNOUNCE──► first member: coordinator
 *                                            │ decides when all have said so
 *     every member:  executor ◄──BATCH───────┤
 *                    ledger   ◄──FAIL────────┘
 *
 * All members follow the coordinator's decisions in the order in which it
 * sent them, so all run the same batches in the same order although they
 * submitted in different ones. The coordinator's own rank follows its
 * decisions the same way, from the same bytes.
 *
 * Leaving is a record too (LEAVE); when all have left, CLOSE ends the set.
 */
#include "core/negotiate.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "core/complete.h"
#include "core/world.h"

/* ----------------------------------------------------------- what we submit */

static int announce_own(struct hvd__set *set, const struct hvd__unit *unit,
                        const int64_t *numbers, int nnumbers)
{
    const struct hvd__signature **signatures =
        malloc((size_t)unit->nentries * sizeof *signatures);
    struct hvd__announcement announcement = {
        .key = unit->key,
        .fingerprint = unit->fingerprint,
        .priority = unit->priority,
        .numbers = numbers,
        .nnumbers = nnumbers,
        .signatures = signatures,
        .nsignatures = unit->nentries,
    };
    int status;

    if (!signatures)
        return hvd__fail_memory((size_t)unit->nentries * sizeof *signatures);
    for (int i = 0; i < unit->nentries; i++)
        signatures[i] = &unit->entries[i].signature;
    status = hvd__coordinator_announce(set->coordinator, 0, &announcement);
    free(signatures);
    return status;
}

static void announce_other(struct hvd__set *set, const struct hvd__unit *unit,
                           const int64_t *numbers, int nnumbers)
{
    hvd__write_type(&set->out, HVD__ANNOUNCE);
    hvd__write_key(&set->out, unit->key);
    hvd__write_key(&set->out, unit->fingerprint);
    hvd__write_int(&set->out, unit->priority);
    hvd__write_int(&set->out, nnumbers);
    for (int i = 0; i < nnumbers; i++)
        hvd__write_long(&set->out, numbers[i]);
}

/* What a unit's requests carry, in their order; *n of them. */
static int collect(const struct hvd__unit *unit, int64_t **numbers, int *n)
{
    *n = 0;
    *numbers = NULL;
    for (int i = 0; i < unit->nentries; i++)
        *n += hvd__signature_carries(&unit->entries[i].signature);
    if (*n == 0)
        return HVD_OK;
    *numbers = malloc((size_t)*n * sizeof **numbers);
    if (!*numbers)
        return hvd__fail_memory((size_t)*n * sizeof **numbers);
    for (int i = 0, k = 0; i < unit->nentries; i++)
        if (hvd__signature_carries(&unit->entries[i].signature))
            (*numbers)[k++] = unit->entries[i].rows;
    return HVD_OK;
}

/* Everything that a message begins with. */
static void begin(struct hvd__set *set, struct hvd__writer *out)
{
    if (out->bytes == 0)
        hvd__write_int(out, set->id);
}

static int refuse(struct hvd__set *set, const struct hvd__unit *unit)
{
    if (set->coordinator)
        return hvd__coordinator_refuse(set->coordinator, 0, unit->key,
                                       unit->status, unit->message);
    hvd__write_type(&set->out, HVD__REFUSE);
    hvd__write_key(&set->out, unit->key);
    hvd__write_int(&set->out, unit->status);
    hvd__write_text(&set->out, unit->message);
    return HVD_OK;
}

static int join(struct hvd__set *set)
{
    if (set->coordinator)
        return hvd__coordinator_join(set->coordinator, 0);
    hvd__write_type(&set->out, HVD__JOIN);
    return HVD_OK;
}

static int announce(struct hvd__set *set, const struct hvd__unit *unit)
{
    int64_t *numbers;
    int nnumbers, status = HVD_OK;

    if (!set->coordinator)
        begin(set, &set->out);
    if (unit->status < 0)
        return refuse(set, unit);
    if (unit->entries[0].signature.kind == HVD_JOIN)
        return join(set);
    HVD_TRY(collect(unit, &numbers, &nnumbers));
    if (set->coordinator)
        status = announce_own(set, unit, numbers, nnumbers);
    else
        announce_other(set, unit, numbers, nnumbers);
    free(numbers);
    return status;
}

int hvd__announce(struct hvd__set *set, struct hvd__unit *unit)
{
    int status;

    unit->next = NULL;
    if (!unit->timed)
        unit->since_ns = hvd__now_ns();
    set->express.nannounced++;
    status = announce(set, unit);
    if (unit->status < 0)
        hvd__unit_free(unit);
    return status;
}

static int leave(struct hvd__set *set)
{
    if (set->said_leave)
        return HVD_OK;
    set->said_leave = true;
    set->express.nannounced++;
    if (set->coordinator)
        return hvd__coordinator_leave(set->coordinator, 0);
    begin(set, &set->out);
    hvd__write_type(&set->out, HVD__LEAVE);
    return HVD_OK;
}

/* Send what was written, if anything; out is empty afterwards. */
static int post(struct hvd__set *set, int peer, struct hvd__writer *out)
{
    struct hvd__transport *t = set->team.transport;
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
    hvd__count_alone(&set->metrics->messages, 1);
    hvd__count_alone(&set->metrics->message_bytes, (int64_t)message.bytes);
    return t->post(t, set->team.world[peer], message.data, message.bytes);
}

/* What was submitted, to where it is agreed on. */
static int sort(struct hvd__unit *unit)
{
    int status = HVD_OK;

    while (unit) {
        struct hvd__unit *next = unit->next;

        if (unit->set->express.state != HVD__EXPRESS_OFF)
            hvd__express_submit(&unit->set->express, unit);
        else if (status == HVD_OK)
            status = hvd__announce(unit->set, unit);
        else if (unit->status < 0)
            hvd__unit_free(unit);
        unit = next;
    }
    return status;
}

int hvd__negotiate_post(struct hvd__world *world, struct hvd__unit *unit)
{
    HVD_TRY(sort(unit ? unit : hvd__ledger_take(&world->ledger)));
    for (struct hvd__set *set = world->live; set; set = set->next)
        if (set->express.state == HVD__EXPRESS_OPEN)
            hvd__express_post(world, set);
    return HVD_OK;
}

static int announce_all(struct hvd__world *world, bool *moved)
{
    struct hvd__unit *unit;

    /* Leave is looked at first: what was submitted before is in the queue by
     * then, and so is announced before the leave. */
    for (struct hvd__set *set = world->live; set; set = set->next)
        set->heard_leaving = atomic_load(&set->leaving);
    unit = hvd__ledger_take(&world->ledger);
    *moved |= unit != NULL;
    HVD_TRY(sort(unit));
    for (struct hvd__set *set = world->live; set; set = set->next) {
        if (set->express.state != HVD__EXPRESS_OFF)
            HVD_TRY(hvd__express_step(world, set, set->heard_leaving, moved));
        if (set->heard_leaving && set->express.state <= HVD__EXPRESS_CLOSED)
            HVD_TRY(leave(set));
        if (set->out.bytes > 0)
            HVD_TRY(post(set, 0, &set->out));
    }
    return HVD_OK;
}

/* -------------------------------------------------------- what members say */

static int garbled(const struct hvd__set *set, int peer)
{
    return hvd__fail(HVD_ERR_INTERNAL,
                     "rank %d sent a message that makes no sense",
                     set->team.world[peer]);
}

static int hear_announce(struct hvd__set *set, int peer, struct hvd__reader *in)
{
    struct hvd__announcement a = {0};
    int64_t *numbers = NULL;
    int status;

    a.key = hvd__read_key(in);
    a.fingerprint = hvd__read_key(in);
    a.priority = hvd__read_int(in);
    a.nnumbers = hvd__read_count(in, sizeof *numbers);
    if (a.nnumbers > 0) {
        numbers = malloc((size_t)a.nnumbers * sizeof *numbers);
        if (!numbers)
            return hvd__fail_memory((size_t)a.nnumbers * sizeof *numbers);
    }
    for (int i = 0; i < a.nnumbers; i++) {
        numbers[i] = hvd__read_long(in);
        in->failed |= numbers[i] < 0;
    }
    a.numbers = numbers;
    status = in->failed ? garbled(set, peer)
                        : hvd__coordinator_announce(set->coordinator, peer, &a);
    free(numbers);
    return status;
}

static int hear_detail(struct hvd__set *set, int peer, struct hvd__reader *in)
{
    uint64_t key = hvd__read_key(in);
    int n = hvd__read_count(in, 1), status;
    struct hvd__signature *signatures =
        malloc(((size_t)n + 1) * sizeof *signatures);

    if (!signatures)
        return hvd__fail_memory(((size_t)n + 1) * sizeof *signatures);
    for (int i = 0; i < n; i++)
        hvd__read_signature(in, &signatures[i]);
    status = in->failed ? garbled(set, peer)
                        : hvd__coordinator_detail(set->coordinator, peer, key,
                                                  signatures, n);
    free(signatures);
    return status;
}

static int hear_record(struct hvd__set *set, int peer, struct hvd__reader *in)
{
    struct hvd__coordinator *c = set->coordinator;
    enum hvd__record_type type = hvd__read_type(in);
    char text[HVD__MESSAGE_MAX];
    uint64_t key = 0;
    int32_t status;

    if (set->express.nheard && type <= HVD__LEAVE && type != HVD__DETAIL)
        set->express.nheard[peer]++;
    switch (type) {
    case HVD__ANNOUNCE: return hear_announce(set, peer, in);
    case HVD__DETAIL: return hear_detail(set, peer, in);
    case HVD__JOIN: return hvd__coordinator_join(c, peer);
    case HVD__LEAVE: return hvd__coordinator_leave(c, peer);
    case HVD__REFUSE: key = hvd__read_key(in); /* fall through */
    case HVD__BREAK:
        status = hvd__read_int(in);
        hvd__read_text(in, text, sizeof text);
        if (in->failed || status >= 0)
            return garbled(set, peer);
        if (type == HVD__REFUSE)
            return hvd__coordinator_refuse(c, peer, key, status, text);
        hvd__coordinator_break(c, peer, status, text);
        return HVD_OK;
    default: return garbled(set, peer);
    }
}

/* ------------------------------------------ what the coordinator decides */

static struct hvd__entry *find(struct hvd__world *world, struct hvd__set *set,
                               uint64_t key, int32_t index)
{
    struct hvd__unit *unit = hvd__ledger_look(&world->ledger, set, key);

    if (!unit || index < 0 || index >= unit->nentries) {
        hvd__fail(HVD_ERR_INTERNAL,
                  "a decision on %016llx, which is not in flight here",
                  (unsigned long long)key);
        return NULL;
    }
    if (unit->decided_ns == 0) {
        unit->decided_ns = hvd__now_ns();
        atomic_store(&unit->decided, true);
    }
    return &unit->entries[index];
}

/* What the ranks carry, n numbers, to entry; NULL: nobody wants to know. */
static int read_carried(struct hvd__reader *in, int n, struct hvd__entry *entry)
{
    int64_t *carried = NULL;

    if (entry && n > 0) {
        carried = malloc((size_t)n * sizeof *carried);
        if (!carried)
            return hvd__fail_memory((size_t)n * sizeof *carried);
        entry->carried = carried;
    }
    for (int i = 0; i < n; i++) {
        int64_t number = hvd__read_long(in);

        in->failed |= number < 0;
        if (carried)
            carried[i] = number;
    }
    return HVD_OK;
}

static int follow_items(struct hvd__world *world, struct hvd__set *set,
                        struct hvd__reader *in, const int *absent)
{
    struct hvd__entry *entries = NULL, **tail = &entries;
    int32_t n = hvd__read_count(in, 16);
    bool ours = !absent || !absent[set->team.rank];

    for (int32_t i = 0; i < n; i++) {
        uint64_t key = hvd__read_key(in);
        int32_t index = hvd__read_int(in);
        int32_t ncarried = hvd__read_int(in);
        struct hvd__entry *entry = NULL;

        if (in->failed || (ncarried != 0 && ncarried != set->team.size))
            return garbled(set, 0);
        if (ours && !(entry = find(world, set, key, index)))
            return HVD_ERR_INTERNAL;
        HVD_TRY(read_carried(in, ncarried, entry));
        if (!entry)
            continue;
        entry->next = NULL;
        *tail = entry;
        tail = &entry->next;
    }
    if (in->failed || n == 0)
        return garbled(set, 0);
    if (!entries) { /* ours is none of it */
        hvd__execute_skip(set);
        return HVD_OK;
    }
    if (entries->signature.kind != HVD_BARRIER)
        return hvd__execute(set, entries, absent);
    /* That all ranks have called it is all that a barrier says. */
    hvd__complete(world, entries, HVD_OK, NULL);
    return HVD_OK;
}

static int follow_batch(struct hvd__world *world, struct hvd__set *set,
                        struct hvd__reader *in)
{
    bool has_absent = hvd__read_int(in) != 0;

    if (has_absent)
        hvd__read_ranks(in, set->team.size, set->scratch);
    return follow_items(world, set, in, has_absent ? set->scratch : NULL);
}

static int follow_failure(struct hvd__world *world, struct hvd__set *set,
                          struct hvd__reader *in)
{
    char text[HVD__MESSAGE_MAX];
    int32_t status = hvd__read_int(in);
    struct hvd__entry *entry;
    uint64_t key;

    hvd__read_text(in, text, sizeof text);
    key = hvd__read_key(in);
    hvd__read_ranks(in, set->team.size, set->scratch);
    if (in->failed || status >= 0)
        return garbled(set, 0);
    if (!set->scratch[set->team.rank])
        return HVD_OK;
    entry = find(world, set, key, 0);
    if (!entry)
        return HVD_ERR_INTERNAL;
    hvd__complete_unit(world, entry->unit, status, text);
    return HVD_OK;
}

static int follow_joined(struct hvd__world *world, struct hvd__set *set,
                         struct hvd__reader *in)
{
    int32_t last = hvd__read_int(in);
    struct hvd__entry *entry = find(world, set, hvd__join_key(), 0);

    if (in->failed)
        return garbled(set, 0);
    if (!entry)
        return HVD_ERR_INTERNAL;
    if (entry->output)
        memcpy(entry->output, &last, sizeof last);
    hvd__complete(world, entry, HVD_OK, NULL);
    return HVD_OK;
}

/* The coordinator does not know what a fingerprint of ours stands for. */
static int answer(struct hvd__world *world, struct hvd__set *set,
                  struct hvd__reader *in)
{
    uint64_t key = hvd__read_key(in);
    const struct hvd__unit *unit = hvd__ledger_look(&world->ledger, set, key);
    struct hvd__writer out = {0};

    if (in->failed || !unit)
        return garbled(set, 0);
    begin(set, &out);
    hvd__write_type(&out, HVD__DETAIL);
    hvd__write_key(&out, key);
    hvd__write_int(&out, unit->nentries);
    for (int i = 0; i < unit->nentries; i++)
        hvd__write_signature(&out, &unit->entries[i].signature);
    return post(set, 0, &out);
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
    if (in->failed || !set->slate || epoch <= 0)
        return garbled(set, 0);
    hvd__express_open(set, (uint32_t)epoch, nheard);
    return HVD_OK;
}

static int follow_record(struct hvd__world *world, struct hvd__set *set,
                         struct hvd__reader *in)
{
    char text[HVD__MESSAGE_MAX];
    int32_t status;

    switch (hvd__read_type(in)) {
    case HVD__BATCH: return follow_batch(world, set, in);
    case HVD__FAIL: return follow_failure(world, set, in);
    case HVD__JOINED: return follow_joined(world, set, in);
    case HVD__QUERY: return answer(world, set, in);
    case HVD__TUNE:
        set->direct_max = (size_t)hvd__read_long(in);
        return in->failed ? garbled(set, 0) : HVD_OK;
    case HVD__OPEN: return follow_open(set, in);
    case HVD__CLOSE: set->heard_close = true; return HVD_OK;
    case HVD__BREAK:
        status = hvd__read_int(in);
        hvd__read_text(in, text, sizeof text);
        return in->failed || status >= 0 ? garbled(set, 0)
                                         : hvd__fail_text(status, text);
    default: return garbled(set, 0);
    }
}

static int follow(struct hvd__world *world, struct hvd__set *set,
                  const void *data, size_t bytes)
{
    struct hvd__reader in = {.data = data, .bytes = bytes};

    if (hvd__read_int(&in) != set->id)
        return garbled(set, 0);
    while (hvd__reader_more(&in))
        HVD_TRY(follow_record(world, set, &in));
    return in.failed ? garbled(set, 0) : HVD_OK;
}

/* --------------------------------------------------------------- messages */

static int hear_message(struct hvd__world *world, int rank, const void *message,
                        size_t bytes)
{
    struct hvd__reader in = {.data = message, .bytes = bytes};
    struct hvd__set *set = hvd__world_set(world, hvd__read_int(&in));
    int peer = set && hvd__set_has_us(set) ? hvd__set_find(set, rank) : -1;

    if (peer < 0 || in.failed || !set->scratch)
        return hvd__fail(HVD_ERR_INTERNAL,
                         "rank %d sent a message about a process set that we "
                         "do not share",
                         rank);
    if (!set->coordinator)
        return follow(world, set, message, bytes);
    while (hvd__reader_more(&in))
        HVD_TRY(hear_record(set, peer, &in));
    return in.failed ? garbled(set, peer) : HVD_OK;
}

static int hear(struct hvd__world *world, bool *moved)
{
    struct hvd__transport *t = world->transport;
    void *message;
    size_t bytes;
    int rank, status;

    while ((status = t->poll(t, &rank, &message, &bytes)) == 1) {
        *moved = true;
        status = hear_message(world, rank, message, bytes);
        free(message);
        if (status < 0)
            break;
    }
    return status;
}

/* Send the bytes to every other member; each gets a copy of its own. */
static int tell(struct hvd__set *set, const struct hvd__writer *out)
{
    for (int peer = 1; peer < set->team.size; peer++) {
        struct hvd__writer copy = {.data = malloc(out->bytes),
                                   .bytes = out->bytes};

        if (copy.data)
            memcpy(copy.data, out->data, out->bytes);
        copy.failed = !copy.data;
        HVD_TRY(post(set, peer, &copy));
    }
    return HVD_OK;
}

static int ask(struct hvd__set *set)
{
    struct hvd__writer out = {0};
    uint64_t key;
    int peer;

    while (hvd__coordinator_question(set->coordinator, &peer, &key)) {
        begin(set, &out);
        hvd__count_alone(&set->metrics->questions, 1);
        hvd__write_type(&out, HVD__QUERY);
        hvd__write_key(&out, key);
        HVD_TRY(post(set, peer, &out));
    }
    return HVD_OK;
}

/* The decisions due as one message, or nothing. They are written behind the
 * set's id from the beginning. */
static struct hvd__writer take_decisions(struct hvd__set *set, int room)
{
    struct hvd__writer *out = hvd__coordinator_decide(set->coordinator, room);
    struct hvd__writer message = {0};

    if (out->bytes > sizeof set->id || out->failed) {
        message = *out;
        *out = (struct hvd__writer){0};
        begin(set, out);
    }
    return message;
}

static void tell_direct_max(struct hvd__set *set, size_t bytes)
{
    struct hvd__writer *out = hvd__coordinator_decide(set->coordinator, 0);

    hvd__write_type(out, HVD__TUNE);
    hvd__write_long(out, (int64_t)bytes);
}

/* Nothing is left to be agreed on by name: let requests go by order. */
static void open_express(struct hvd__world *world, struct hvd__set *set)
{
    struct hvd__express *x = &set->express;
    struct hvd__writer *out;

    if (!world->settings.express || !hvd__express_may_open(x) ||
        !hvd__coordinator_is_idle(set->coordinator))
        return;
    out = hvd__coordinator_decide(set->coordinator, 0);
    x->nheard[0] = x->nannounced;
    hvd__write_type(out, HVD__OPEN);
    hvd__write_int(out, (int32_t)(x->epoch + 1));
    for (int rank = 0; rank < set->team.size; rank++)
        hvd__write_long(out, x->nheard[rank]);
}

/* Another setting is tried: the threshold is ours alone to know, the rest is
 * a decision like others. */
static void tune(struct hvd__world *world, struct hvd__set *set)
{
    const struct hvd__settings *s = &world->settings;
    int64_t bytes = set->executor.bytes_done;

    set->executor.bytes_done = 0;
    if (!hvd__tune_step(&set->tune, bytes, hvd__now_ns()))
        return;
    hvd__coordinator_set_threshold(set->coordinator,
                                   set->tune.now.fusion_threshold);
    tell_direct_max(set, set->tune.now.direct_max);
    if (set->tune.active)
        return;
    hvd__log(HVD__LOG_INFO,
             "autotuning is over: fusion threshold %zu, direct up to %zu bytes",
             set->tune.best.fusion_threshold, set->tune.best.direct_max);
    if (s->autotune_file[0] &&
        hvd__knobs_write(&set->tune.best, s->autotune_file) < 0)
        hvd__log(HVD__LOG_WARNING, "%s", hvd_last_error());
}

static int decide(struct hvd__world *world, struct hvd__set *set)
{
    int room = HVD__LANES - set->executor.nunfinished;
    struct hvd__writer decisions;
    int status;

    HVD_TRY(ask(set));
    if (set->tune.active && !set->heard_close)
        tune(world, set);
    if (set->first_direct_max > 0) {
        tell_direct_max(set, set->first_direct_max);
        set->first_direct_max = 0;
    }
    open_express(world, set);
    decisions = take_decisions(set, room);
    if (decisions.bytes == 0 && !decisions.failed)
        return HVD_OK;
    status = decisions.failed
                 ? hvd__fail(HVD_ERR_MEMORY, "out of memory for decisions")
                 : tell(set, &decisions);
    if (status == HVD_OK)
        status = follow(world, set, decisions.data, decisions.bytes);
    hvd__writer_fini(&decisions);
    return status;
}

/* While requests go by order messages are rare, and looking for them takes
 * longer than all the rest. */
enum { STEPS_WITHOUT_MESSAGES = 16 };

static bool may_skip_messages(struct hvd__world *world)
{
    bool busy = false;

    for (struct hvd__set *set = world->live; set; set = set->next) {
        if (set->executor.nunfinished > 0 || set->out.bytes > 0)
            return false;
        busy |= hvd__express_is_busy(&set->express);
    }
    return busy && ++world->nskipped < STEPS_WITHOUT_MESSAGES;
}

int hvd__negotiate_step(struct hvd__world *world, bool *moved)
{
    HVD_TRY(announce_all(world, moved));
    if (may_skip_messages(world))
        return 0;
    world->nskipped = 0;
    HVD_TRY(hear(world, moved));
    for (struct hvd__set *set = world->live; set; set = set->next)
        if (set->coordinator)
            HVD_TRY(decide(world, set));
    return world->transport->pending(world->transport);
}

void hvd__negotiate_break(struct hvd__world *world, int status,
                          const char *text)
{
    for (struct hvd__set *set = world->live; set; set = set->next) {
        struct hvd__writer out = {0};

        if (set->coordinator) {
            hvd__coordinator_break(set->coordinator, 0, status, text);
            out = take_decisions(set, 0);
            if (!out.failed && out.bytes > 0)
                tell(set, &out);
            hvd__writer_fini(&out);
            continue;
        }
        begin(set, &out);
        hvd__write_type(&out, HVD__BREAK);
        hvd__write_int(&out, status);
        hvd__write_text(&out, text);
        post(set, 0, &out);
    }
}
