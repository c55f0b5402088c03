/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.c - gives messages that no rank would send (wire_messages.h) to the two
 * readers of messages:
 *
 *     the format   an accepted message, written again, gives the same bytes:
 *                  no two messages mean the same, and nothing is overlooked
 *     a rank       coordinates five ranks of two hosts, or speaks for one of
 *                  the hosts; it refuses with HVD_ERR_INTERNAL, or goes on,
 *                  and its answers are well made
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

/* --------------------------------------------------------------- the format */

static void copy_text(struct hvd__reader *in, struct hvd__writer *out)
{
    char text[HVD__MESSAGE_MAX];

    hvd__read_text(in, text, sizeof text);
    if (!memchr(text, '\0', sizeof text))
        ck_abort_msg("a text without an end");
    hvd__write_text(out, text);
}

/* Copies a set of ranks out of n and returns their number. */
static int copy_ranks(struct hvd__reader *in, struct hvd__writer *out, int n)
{
    int ranks[FUZZ_RANKS], count = 0;

    hvd__read_ranks(in, n, ranks);
    hvd__write_ranks(out, ranks, n);
    for (int i = 0; i < n; i++)
        count += ranks[i];
    return count;
}

static void copy_key(struct hvd__reader *in, struct hvd__writer *out)
{
    hvd__write_long(out, (int64_t)(uint64_t)hvd__read_long(in));
}

static void copy_long(struct hvd__reader *in, struct hvd__writer *out)
{
    hvd__write_long(out, hvd__read_long(in));
}

static int32_t copy_int(struct hvd__reader *in, struct hvd__writer *out)
{
    int32_t value = hvd__read_int(in);

    hvd__write_long(out, value);
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
    hvd__write_long(out, n);
    return n;
}

static void copy_batch(struct hvd__reader *in, struct hvd__writer *out)
{
    int32_t n;

    copy_long(in, out);
    copy_ranks(in, out, FUZZ_RANKS);
    n = copy_count(in, out, 24);
    while (n-- > 0 && !in->failed) {
        copy_key(in, out);
        copy_int(in, out);
        for (int32_t m = copy_count(in, out, 8); m > 0; m--)
            copy_long(in, out);
    }
}

/* An accepted signature has valid fields. */
static void check_signature(const struct hvd__signature *s)
{
    if (!hvd_kind_name(s->kind) || !hvd_dtype_name(s->dtype) ||
        !hvd_op_name(s->op) || s->ndim < 0 || s->ndim > HVD_MAX_DIMS ||
        hvd__signature_count(s) < 0)
        ck_abort_msg("a signature that cannot be was accepted");
}

/* Copies what members among nplaces announce. */
static void copy_announcement(struct hvd__reader *in, struct hvd__writer *out,
                              int nplaces)
{
    int32_t nwho = copy_ranks(in, out, nplaces);
    struct hvd__statement *what;

    copy_key(in, out);
    copy_int(in, out);
    ck_assert_int_eq(hvd__read_statement(in, &what), HVD_OK);
    if (!what)
        return;
    hvd__write_bytes(out, what, (size_t)what->bytes);
    for (int i = 0; i < what->nsignatures; i++)
        check_signature(&what->signatures[i]);
    if (what->status < 0 &&
        strlen(hvd__statement_text(what)) + 1 + sizeof *what !=
            (size_t)what->bytes)
        ck_abort_msg("a text without an end");
    for (int32_t n = nwho * what->nnumbers; n > 0 && !in->failed; n--)
        copy_long(in, out);
    free(what);
}

/* Copies a record of a rank that speaks for nplaces places, by the description
 * in docs/PROTOCOL.md. */
static void copy_record(struct hvd__reader *in, struct hvd__writer *out,
                        int nplaces)
{
    enum hvd__record_type type = hvd__read_type(in);

    hvd__write_type(out, type);
    if (in->failed)
        return;
    switch (type) {
    case HVD__ANNOUNCE: copy_announcement(in, out, nplaces); break;
    case HVD__BREAK:
        copy_int(in, out);
        copy_text(in, out);
        break;
    case HVD__BATCH: copy_batch(in, out); break;
    case HVD__END:
        copy_key(in, out);
        copy_int(in, out);
        copy_text(in, out);
        copy_int(in, out);
        copy_ranks(in, out, FUZZ_RANKS);
        break;
    case HVD__OPEN:
        copy_int(in, out);
        copy_long(in, out);
        break;
    case HVD__GONE:
        copy_int(in, out);
        copy_int(in, out);
        break;
    case HVD__CLOSE: break;
    }
}

/* Returns whether a message of a rank that speaks for nplaces places is well
 * made. If so, writing it again gives the same bytes. */
static bool well_made(const unsigned char *data, size_t bytes, int nplaces)
{
    static struct hvd__writer resubmission;
    struct hvd__reader in = {.data = data, .bytes = bytes};

    resubmission.bytes = 0;
    copy_int(&in, &resubmission);
    while (hvd__reader_more(&in))
        copy_record(&in, &resubmission, nplaces);
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
    fuzz_write_message(&other, HVD__ANNOUNCE, HVD__OPEN, 1, 3);
    for (int round = 0; round < n; round++) {
        unsigned char data[FUZZ_MOST_BYTES];
        size_t bytes;

        fuzz_write_message(&message, HVD__ANNOUNCE, HVD__OPEN, 1, 3);
        if (!well_made(message.data, message.bytes, 3))
            ck_abort_msg("round %d: a good message was refused", round);
        bytes = fuzz_spoil(&message, &other, data);
        /* The message ends where the buffer ends: a sanitizer sees a byte read
         * too far. */
        memcpy(room + FUZZ_MOST_BYTES - bytes, data, bytes);
        accepted += well_made(room + FUZZ_MOST_BYTES - bytes, bytes, 3);
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

/* ------------------------------------------------------------------- a rank */

enum { OTHERS = 3 }; /* ranks on the second host */

/* Next message for the rank, and its sender; NULL: none. A speaker may pass it
 * on as it came. */
static unsigned char *pending;
static unsigned char given[FUZZ_MOST_BYTES];
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
    bool passed_on = self->rank > 0 && peer > self->rank &&
                     bytes == pending_bytes &&
                     memcmp(message, given, bytes) == 0;

    if (peer < 0 || peer == self->rank || peer >= FUZZ_RANKS ||
        (!passed_on && !well_made(message, bytes, OTHERS)))
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

/* Rank 1 speaks for the ranks on the second host, whose places follow those of
 * the first. */
static int host_of[FUZZ_RANKS] = {0, 1, 1, 1, 0};

/* A rank that sends messages: it speaks for the places first to first+n-1. */
struct sender {
    int rank, first, n;
};

static const struct sender to_coordinator[] = {{1, 2, OTHERS}, {4, 1, 1}};
static const struct sender to_speaker[] = {{0, 0, 0}, {2, 3, 1}, {3, 4, 1}};

/* The rank gets messages only about requests that are agreed on by name. */
static void begin_world(int rank)
{
    int *ranks = malloc(FUZZ_RANKS * sizeof *ranks);

    transport.rank = rank;
    for (int i = 0; i < FUZZ_RANKS; i++)
        ranks[i] = i;
    world = calloc(1, sizeof *world);
    world->engine.transport = &transport;
    world->engine.settings.shm_size = 1; /* hosts matter */
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

/* Enters a submission and queues it, or frees it. */
static void enter(struct hvd__submission *submission)
{
    struct hvd__table *table = &world->engine.table;

    if (hvd__table_enter(table, submission, NULL) == HVD_OK)
        hvd__table_queue(table, submission);
    else
        hvd__submission_free(submission);
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
    enter(submission);
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
    enter(submission);
}

/* Gives messages of some senders to a rank. */
static void check_rank(int rank, const struct sender *senders, int nsenders)
{
    struct hvd__writer message = {0}, other = {0};
    int n = rounds(25), refused = 0;

    nposted = 0;
    begin_world(rank);
    fuzz_write_message(&other, HVD__ANNOUNCE, HVD__GONE, 1, 1);
    for (int round = 0; round < n; round++) {
        const struct sender *from = &senders[fuzz_any((uint32_t)nsenders)];
        unsigned char data[FUZZ_MOST_BYTES];
        bool moved = false;
        int status;

        pending_from = from->rank;
        if (from->n > 0)
            fuzz_write_message(&message, HVD__ANNOUNCE, HVD__GONE, from->first,
                               from->n);
        else
            fuzz_write_message(&message, HVD__BATCH, HVD__OPEN, 0, 1);
        memcpy(data, message.data, message.bytes);
        pending_bytes = message.bytes;
        if (fuzz_any(3))
            pending_bytes = fuzz_spoil(&message, &other, data);
        pending = malloc(pending_bytes + !pending_bytes);
        memcpy(pending, data, pending_bytes);
        memcpy(given, data, pending_bytes);
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
            begin_world(rank);
        }
    }
    end_world();
    ck_assert_int_gt(refused, n / 10);
    ck_assert_int_lt(refused, n / 10 * 9);
    ck_assert_int_gt(nposted, n / 100);
    hvd__writer_fini(&message);
    hvd__writer_fini(&other);
}

TEST(a_coordinator_refuses_or_goes_on)
{
    fuzz_seed(19691029);
    check_rank(0, to_coordinator, 2);
}

TEST(a_speaker_refuses_or_goes_on)
{
    fuzz_seed(19830101);
    check_rank(1, to_speaker, 3);
}

TEST_MAIN("fuzz_wire", .seconds = 600)
