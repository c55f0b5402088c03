/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.c - gives messages that no rank would send (wire_messages.h) to the two
 * readers of messages:
 *
 *     the format   an accepted message, written again, gives the same bytes:
 *                  no two messages mean the same, and nothing is overlooked
 *     a rank       coordinates three ranks; it refuses with HVD_ERR_INTERNAL,
 *                  or goes on, and its answers are well made
 *
 * The sequence is the same in every run, so that a failure occurs again. A
 * sanitized build (make sanitize) sees bytes read too far.
 */
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "core/agree/agree.h"
#include "core/agree/agreement.h"
#include "core/world/world.h"
#include "suite.h"
#include "wire_messages.h"

/* Returns the rounds of a test: `thousands` thousand, or many more with
 * HVD_TEST_FULL. */
static int rounds(int thousands)
{
    return thousands * (getenv("HVD_TEST_FULL") ? 20000 : 1000);
}

/* ---------------------------------------------------------------- the format
 */

static void copy_signature(struct hvd__reader *in, struct hvd__writer *out)
{
    struct hvd__signature s;

    hvd__read_signature(in, &s);
    /* An accepted signature has valid fields. */
    if (!hvd_kind_name(s.kind) || !hvd_dtype_name(s.dtype) ||
        !hvd_op_name(s.op) || s.ndim < 0 || s.ndim > HVD_MAX_DIMS ||
        hvd__signature_count(&s) < 0)
        ck_abort_msg("a signature that cannot be was accepted");
    hvd__write_signature(out, &s);
}

static void copy_text(struct hvd__reader *in, struct hvd__writer *out)
{
    char text[HVD__MESSAGE_MAX];

    hvd__read_text(in, text, sizeof text);
    if (!memchr(text, '\0', sizeof text))
        ck_abort_msg("a text without an end");
    hvd__write_text(out, text);
}

static void copy_ranks(struct hvd__reader *in, struct hvd__writer *out)
{
    int ranks[FUZZ_RANKS];

    hvd__read_ranks(in, FUZZ_RANKS, ranks);
    hvd__write_ranks(out, ranks, FUZZ_RANKS);
}

static void copy_key(struct hvd__reader *in, struct hvd__writer *out)
{
    hvd__write_key(out, hvd__read_key(in));
}

static void copy_long(struct hvd__reader *in, struct hvd__writer *out)
{
    hvd__write_long(out, hvd__read_long(in));
}

static int32_t copy_int(struct hvd__reader *in, struct hvd__writer *out)
{
    int32_t value = hvd__read_int(in);

    hvd__write_int(out, value);
    return value;
}

/* Copies a count of items, each of at least `each` bytes, and returns it. */
static int32_t copy_count(struct hvd__reader *in, struct hvd__writer *out,
                          size_t each)
{
    int32_t n = hvd__read_count(in, each);

    if (n < 0 || (size_t)n > (in->bytes - in->at) / each)
        ck_abort_msg("%d things of %zu bytes in %zu", (int)n, each,
                     in->bytes - in->at);
    hvd__write_int(out, n);
    return n;
}

static void copy_batch(struct hvd__reader *in, struct hvd__writer *out)
{
    int32_t n;

    if (copy_int(in, out))
        copy_ranks(in, out);
    n = copy_count(in, out, 16);
    while (n-- > 0 && !in->failed) {
        copy_key(in, out);
        copy_int(in, out);
        for (int32_t m = copy_count(in, out, 8); m > 0; m--)
            copy_long(in, out);
    }
}

/* Copies a record, by the description in docs/PROTOCOL.md. */
static void copy_record(struct hvd__reader *in, struct hvd__writer *out)
{
    enum hvd__record_type type = hvd__read_type(in);
    int32_t n;

    hvd__write_type(out, type);
    if (in->failed)
        return;
    switch (type) {
    case HVD__ANNOUNCE:
        copy_key(in, out);
        copy_key(in, out);
        copy_int(in, out);
        for (n = copy_count(in, out, 8); n > 0; n--)
            copy_long(in, out);
        break;
    case HVD__REFUSE: copy_key(in, out); /* fall through */
    case HVD__BREAK:
        copy_int(in, out);
        copy_text(in, out);
        break;
    case HVD__DETAIL:
        copy_key(in, out);
        for (n = copy_count(in, out, 1); n > 0 && !in->failed; n--)
            copy_signature(in, out);
        break;
    case HVD__BATCH: copy_batch(in, out); break;
    case HVD__FAIL:
        copy_int(in, out);
        copy_text(in, out);
        copy_key(in, out);
        copy_ranks(in, out);
        break;
    case HVD__JOINED: copy_int(in, out); break;
    case HVD__QUERY: copy_key(in, out); break;
    case HVD__TUNE: copy_long(in, out); break;
    case HVD__OPEN:
        copy_int(in, out);
        for (int i = 0; i < FUZZ_RANKS; i++)
            copy_long(in, out);
        break;
    case HVD__JOIN: copy_int(in, out); break;
    case HVD__LEAVE:
    case HVD__CLOSE: break;
    }
}

/* Returns whether a message is well made. If so, writing it again gives the
 * same bytes. */
static bool well_made(const unsigned char *data, size_t bytes)
{
    static struct hvd__writer resubmission;
    struct hvd__reader in = {.data = data, .bytes = bytes};

    resubmission.bytes = 0;
    copy_int(&in, &resubmission);
    while (hvd__reader_more(&in))
        copy_record(&in, &resubmission);
    if (in.at > bytes)
        ck_abort_msg("read to %zu of %zu bytes", in.at, bytes);
    if (in.failed)
        return false;
    if (resubmission.bytes != bytes ||
        memcmp(resubmission.data, data, bytes) != 0)
        ck_abort_msg("accepted, but not what was written");
    return true;
}

TEST(what_is_accepted_is_what_was_written)
{
    struct hvd__writer message = {0}, other = {0};
    unsigned char *room = malloc(FUZZ_MOST_BYTES);
    int n = rounds(1000), accepted = 0;

    fuzz_seed(20220617);
    fuzz_write_message(&other, HVD__OPEN);
    for (int round = 0; round < n; round++) {
        unsigned char data[FUZZ_MOST_BYTES];
        size_t bytes;

        fuzz_write_message(&message, HVD__OPEN);
        if (!well_made(message.data, message.bytes))
            ck_abort_msg("round %d: a good message was refused", round);
        bytes = fuzz_spoil(&message, &other, data);
        /* The message ends where the buffer ends: a sanitizer sees a byte read
         * too far. */
        memcpy(room + FUZZ_MOST_BYTES - bytes, data, bytes);
        accepted += well_made(room + FUZZ_MOST_BYTES - bytes, bytes);
        if (round % 16 == 0) {
            struct hvd__writer swap = message;
            message = other;
            other = swap;
        }
    }
    /* Some spoiling must leave a good message, most of it must not. */
    ck_assert_int_gt(accepted, n / 20);
    ck_assert_int_lt(accepted, n / 10 * 9);
    free(room);
    hvd__writer_fini(&message);
    hvd__writer_fini(&other);
}

/* -------------------------------------------------------------------- a rank
 */

/* Next message for the rank, and its sender; NULL: none. */
static unsigned char *pending;
static size_t pending_bytes;
static int pending_from;
static int nposted;

static int poll_pending(struct hvd__transport *self, int *peer, void **message,
                        size_t *bytes)
{
    (void)self;
    if (!pending)
        return 0;
    *message = pending;
    *bytes = pending_bytes;
    *peer = pending_from;
    pending = NULL;
    return 1;
}

static int check_posted(struct hvd__transport *self, int peer, void *message,
                        size_t bytes)
{
    (void)self;
    if (peer <= 0 || peer >= FUZZ_RANKS || !well_made(message, bytes))
        ck_abort_msg("a message to rank %d that is not well made", peer);
    nposted++;
    free(message);
    return HVD_OK;
}

static int none_pending(struct hvd__transport *self)
{
    (void)self;
    return 0;
}

static struct hvd__transport transport = {.name = "fuzz",
                                          .size = FUZZ_RANKS,
                                          .ntags = 1 << 20,
                                          .post = check_posted,
                                          .poll = poll_pending,
                                          .pending = none_pending};
static struct hvd__world *world;
static struct hvd__set *set;
static int host_of[FUZZ_RANKS] = {0, 1, 2};

/* The rank gets messages only about requests that are agreed on by name. */
static void begin_world(void)
{
    int *ranks = malloc(FUZZ_RANKS * sizeof *ranks);

    for (int i = 0; i < FUZZ_RANKS; i++)
        ranks[i] = i;
    world = calloc(1, sizeof *world);
    world->engine.transport = &transport;
    world->host_of = host_of;
    atomic_store(&world->engine.completion_fd, -1);
    hvd__table_init(&world->engine.table);
    world->engine.table.metrics = &world->engine.metrics;
    set = hvd__set_new(&transport, 0, ranks, FUZZ_RANKS, 0);
    ck_assert(set != NULL);
    ck_assert_int_eq(hvd__set_prepare(world, set), HVD_OK);
    hvd__ordered_drop(&set->agreement->ordered);
    ck_assert_int_eq(hvd__table_add_set(&world->engine.table, set), HVD_OK);
    world->engine.live = set;
}

static void end_world(void)
{
    while (hvd__table_take(&world->engine.table))
        ;
    hvd__set_retire(set);
    hvd__table_fini(&world->engine.table);
    free(world);
}

/* The rank submits something of its own, which moves nothing. */
static void submit_barrier(void)
{
    struct hvd__submission *submission = hvd__submission_new(1);
    struct hvd__signature *s = &submission->requests[0].signature;

    submission->set = set;
    submission->name[0] = (char)('a' + fuzz_any(FUZZ_KEYS));
    s->kind = HVD_BARRIER;
    submission->fingerprint = hvd__signature_fingerprint(0, s);
    if (hvd__table_submit(&world->engine.table, submission, NULL, NULL) < 0)
        hvd__submission_free(submission);
}

/* Submits a sum, with its data. */
static void submit_sum(void)
{
    static float data[64], sum[64];
    struct hvd__submission *submission = hvd__submission_new(1);
    struct hvd__request *request = &submission->requests[0];
    struct hvd__signature *s = &request->signature;

    submission->set = set;
    submission->name[0] = (char)('a' + fuzz_any(FUZZ_KEYS));
    *s = (struct hvd__signature){.kind = HVD_ALLREDUCE,
                                 .dtype = HVD_FLOAT32,
                                 .op = HVD_SUM,
                                 .ndim = 1,
                                 .prescale = 1,
                                 .postscale = 1};
    s->shape[0] = request->count = 1 + fuzz_any(64);
    request->bytes = (size_t)request->count * sizeof *data;
    request->input = data;
    request->output = sum;
    submission->fingerprint = hvd__signature_fingerprint(0, s);
    if (hvd__table_submit(&world->engine.table, submission, NULL, NULL) < 0)
        hvd__submission_free(submission);
}

TEST(a_rank_refuses_or_goes_on)
{
    struct hvd__writer message = {0}, other = {0};
    int n = rounds(50), refused = 0;

    fuzz_seed(19691029);
    begin_world();
    fuzz_write_message(&other, HVD__LEAVE);
    for (int round = 0; round < n; round++) {
        unsigned char data[FUZZ_MOST_BYTES];
        bool moved = false;
        int status;

        pending_from = 1 + (int)fuzz_any(FUZZ_RANKS - 1);
        fuzz_write_message(&message, HVD__LEAVE);
        memcpy(data, message.data, message.bytes);
        pending_bytes = message.bytes;
        if (fuzz_any(3))
            pending_bytes = fuzz_spoil(&message, &other, data);
        pending = malloc(pending_bytes + !pending_bytes);
        memcpy(pending, data, pending_bytes);
        if (fuzz_any(4) == 0)
            submit_barrier();
        if (fuzz_any(4) == 0)
            submit_sum();
        status = hvd__agree_step(&world->engine, &moved);
        free(pending);
        pending = NULL;
        if (status < 0 && !hvd_last_error()[0])
            ck_abort_msg("round %d: refused without a word", round);
        if (status < 0 || set->agreement->heard_close || fuzz_any(500) == 0) {
            refused += status == HVD_ERR_INTERNAL;
            end_world();
            begin_world();
        }
    }
    end_world();
    ck_assert_int_gt(refused, n / 10);
    ck_assert_int_lt(refused, n / 10 * 9);
    ck_assert_int_gt(nposted, n / 100);
    hvd__writer_fini(&message);
    hvd__writer_fini(&other);
}

TEST_MAIN("fuzz_wire", .seconds = 600)
