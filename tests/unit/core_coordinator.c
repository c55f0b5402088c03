/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coordinator decides what it must when it is told anything in any order,
 * for up to five ranks. No rank runs.
 */
#include <stdio.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/status.h"
#include "core/agree/coordinator.h"
#include "core/request/request.h"
#include "suite.h"

enum { MOST_RANKS = 5, MOST_RECORDS = 64 };

/* A decision, read back with the reader that ranks use. */
struct decision {
    enum hvd__record_type type;
    int n; /* of a batch */
    uint64_t keys[16];
    int indices[16];
    int64_t numbers[MOST_RANKS]; /* of the first item */
    int status;
    char text[HVD__MESSAGE_MAX];
    int ranks[MOST_RANKS]; /* who fails; who takes part */
    int last;              /* to join */
};

static struct decision decisions[MOST_RECORDS];

static uint64_t key(const char *name)
{
    return hvd__fingerprint(0, name, strlen(name));
}

static void read_batch(struct hvd__reader *in, struct decision *d, int nranks)
{
    ck_assert_int_eq(hvd__read_long(in), 0);
    hvd__read_ranks(in, nranks, d->ranks);
    d->n = hvd__read_int(in);
    for (int i = 0; i < d->n; i++) {
        int n;

        d->keys[i] = (uint64_t)hvd__read_long(in);
        d->indices[i] = hvd__read_int(in);
        n = hvd__read_int(in);
        for (int k = 0; k < n; k++) {
            int64_t number = hvd__read_long(in);
            if (i == 0)
                d->numbers[k] = number;
        }
    }
}

static int read_all(struct hvd__writer *writer, int nranks)
{
    struct hvd__reader in = {.data = writer->data, .bytes = writer->bytes};
    int n = 0;

    ck_assert(!writer->failed);
    while (hvd__reader_more(&in)) {
        struct decision *d = &decisions[n++];

        memset(d, 0, sizeof *d);
        d->type = hvd__read_type(&in);
        if (d->type == HVD__BATCH)
            read_batch(&in, d, nranks);
        if (d->type == HVD__END) {
            d->keys[0] = (uint64_t)hvd__read_long(&in);
            d->status = hvd__read_int(&in);
            hvd__read_text(&in, d->text, sizeof d->text);
            d->last = hvd__read_int(&in);
            hvd__read_ranks(&in, nranks, d->ranks);
        }
    }
    ck_assert(!in.failed);
    hvd__writer_fini(writer);
    return n;
}

static const int world[MOST_RANKS] = {0, 1, 2, 3, 4};

/* The sizes of batches of the coordinator made last. */
static struct hvd__knobs knobs;

static struct hvd__coordinator *new_one(int nranks, size_t threshold)
{
    struct hvd__coordinator *c;

    knobs.fusion_threshold = threshold;
    ck_assert_int_eq(hvd__coordinator_new(world, nranks, &c), HVD_OK);
    return c;
}

static int decide(struct hvd__coordinator *c, int nranks, int room)
{
    struct hvd__writer out = hvd__coordinator_decide(c, room, &knobs);

    return read_all(&out, nranks);
}

static struct hvd__signature sum_of(int64_t count)
{
    return (struct hvd__signature){.kind = HVD_ALLREDUCE,
                                   .dtype = HVD_FLOAT32,
                                   .op = HVD_SUM,
                                   .ndim = 1,
                                   .prescale = 1,
                                   .postscale = 1,
                                   .shape = {count}};
}

/* A statement with room for a few signatures, or for a text. */
union statement {
    struct hvd__statement head;
    unsigned char bytes[1024];
};

static const struct hvd__statement *state(union statement *statement,
                                          const struct hvd__signature *s, int n)
{
    struct hvd__statement *what = &statement->head;

    *what = (struct hvd__statement){
        .bytes = (int32_t)(sizeof *what + (size_t)n * sizeof *s),
        .nsignatures = n};
    ck_assert_int_le(what->bytes, (int)sizeof *statement);
    memcpy(what->signatures, s, (size_t)n * sizeof *s);
    for (int i = 0; i < n; i++) {
        what->fingerprint =
            hvd__signature_fingerprint(what->fingerprint, &s[i]);
        what->nnumbers += hvd__signature_carries(&s[i]);
    }
    return what;
}

static void announce_all(struct hvd__coordinator *c, int rank, const char *name,
                         const struct hvd__signature *s, int n,
                         int32_t priority, int64_t number)
{
    union statement what;
    const struct hvd__announcement a = {.key = key(name),
                                        .priority = priority,
                                        .what = state(&what, s, n),
                                        .who = &rank,
                                        .nwho = 1,
                                        .numbers = &number};

    ck_assert_int_le(a.what->nnumbers, 1);
    ck_assert_int_eq(hvd__proposals_add(&c->proposals, &a), HVD_OK);
}

static void announce(struct hvd__coordinator *c, int rank, const char *name,
                     int64_t count)
{
    struct hvd__signature s = sum_of(count);

    announce_all(c, rank, name, &s, 1, 0, 0);
}

static int refuse(struct hvd__coordinator *c, int rank, const char *name,
                  int status, char *text)
{
    union statement what = {
        .head = {.status = status,
                 .bytes = (int32_t)(sizeof what.head + strlen(text) + 1)}};
    const struct hvd__announcement a = {
        .key = key(name), .what = &what.head, .who = &rank, .nwho = 1};

    strcpy((char *)what.head.signatures, text);
    return hvd__proposals_add(&c->proposals, &a);
}

TEST(ready_when_all_have_announced)
{
    for (int n = 1; n <= MOST_RANKS; n++) {
        struct hvd__coordinator *c = new_one(n, 1 << 20);

        for (int rank = n - 1; rank > 0; rank--)
            announce(c, rank, "a", 10);
        if (n > 1)
            ck_assert_int_eq(decide(c, n, 2), 0);
        announce(c, 0, "a", 10);
        ck_assert_int_eq(decide(c, n, 0), 0); /* no room */
        ck_assert_int_eq(decide(c, n, 2), 1);
        ck_assert_int_eq(decisions[0].type, HVD__BATCH);
        ck_assert_int_eq(decisions[0].n, 1);
        ck_assert(decisions[0].keys[0] == key("a"));
        ck_assert_int_eq(decide(c, n, 2), 0);
        hvd__coordinator_free(c);
    }
}

/* Three ranks announce three names in every order. */
TEST(every_order_of_announcing)
{
    static const char *const names[] = {"x", "y", "z"};
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    for (int o = 0; o < 6 * 6 * 6; o++) {
        const int *of[3] = {orders[o % 6], orders[o / 6 % 6], orders[o / 36]};
        struct hvd__coordinator *c = new_one(3, 0);
        int seen[3] = {0};

        for (int i = 0; i < 3; i++)
            for (int rank = 0; rank < 3; rank++)
                announce(c, rank, names[of[rank][i]], 5);
        ck_assert_int_eq(decide(c, 3, 99), 3); /* nothing is fused */
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 3; k++)
                seen[k] += decisions[i].keys[0] == key(names[k]);
        ck_assert(seen[0] == 1 && seen[1] == 1 && seen[2] == 1);
        hvd__coordinator_free(c);
    }
}

TEST(neighbours_are_fused_up_to_the_threshold)
{
    struct hvd__coordinator *c = new_one(1, 100 * 4);

    announce(c, 0, "a", 60);
    announce(c, 0, "b", 50); /* does not fit with a */
    announce(c, 0, "c", 40);
    announce(c, 0, "d", 500); /* alone */
    ck_assert_int_eq(decide(c, 1, 1), 1);
    ck_assert_int_eq(decisions[0].n, 2);
    ck_assert(decisions[0].keys[0] == key("a"));
    ck_assert(decisions[0].keys[1] == key("c"));
    ck_assert_int_eq(decide(c, 1, 2), 2);
    ck_assert(decisions[0].keys[0] == key("b"));
    ck_assert(decisions[1].keys[0] == key("d"));
    hvd__coordinator_free(c);
}

TEST(differences_name_both_sides)
{
    struct hvd__coordinator *c = new_one(4, 1 << 20);

    announce(c, 0, "w", 10);
    announce(c, 1, "w", 10);
    announce(c, 3, "w", 10);
    announce(c, 2, "w", 11);
    ck_assert_int_eq(decide(c, 4, 2), 1);
    ck_assert_int_eq(decisions[0].type, HVD__END);
    ck_assert_int_eq(decisions[0].status, HVD_ERR_MISMATCH);
    ck_assert(strstr(decisions[0].text,
                     " differs: ranks 0,1,3: allreduce sum float32 [10]; "
                     "rank 2: allreduce sum float32 [11]"));
    for (int rank = 0; rank < 4; rank++)
        ck_assert(decisions[0].ranks[rank]);
    /* The failed name is forgotten: it works again. */
    for (int rank = 0; rank < 4; rank++)
        announce(c, rank, "w", 12);
    ck_assert_int_eq(decide(c, 4, 2), 1);
    ck_assert_int_eq(decisions[0].type, HVD__BATCH);
    hvd__coordinator_free(c);
}

TEST(a_refusal_fails_those_who_wait)
{
    struct hvd__coordinator *c = new_one(3, 1 << 20);

    announce(c, 0, "w", 10);
    ck_assert_int_eq(refuse(c, 1, "w", HVD_ERR_ARGUMENT, "no buffer"), 0);
    ck_assert_int_eq(decide(c, 3, 2), 0);
    announce(c, 2, "w", 10);
    ck_assert_int_eq(decide(c, 3, 2), 1);
    ck_assert_int_eq(decisions[0].status, HVD_ERR_PEER);
    ck_assert(strstr(decisions[0].text, "rank 1: no buffer"));
    ck_assert(decisions[0].ranks[0] && !decisions[0].ranks[1] &&
              decisions[0].ranks[2]);
    /* Refused everywhere: nobody waits. */
    for (int rank = 0; rank < 3; rank++)
        refuse(c, rank, "w", HVD_ERR_ARGUMENT, "no buffer");
    ck_assert_int_eq(decide(c, 3, 2), 0);
    hvd__coordinator_free(c);
}

/* The k-th unnamed submission of a rank meets the k-th of the others, in any
 * timing. */
TEST(submissions_pair_by_their_number)
{
    struct hvd__coordinator *c = new_one(2, 1 << 20);

    for (int i = 0; i < 3; i++)
        refuse(c, 0, "w", HVD_ERR_DUPLICATE, "again");
    announce(c, 0, "w", 10);
    for (int i = 0; i < 3; i++)
        refuse(c, 1, "w", HVD_ERR_DUPLICATE, "again");
    ck_assert_int_eq(decide(c, 2, 2), 0);
    announce(c, 1, "w", 10);
    ck_assert_int_eq(decide(c, 2, 2), 1);
    ck_assert_int_eq(decisions[0].type, HVD__BATCH);
    hvd__coordinator_free(c);
}

/* A message tells of several ranks, of which some have announced the name
 * before: each rank's k-th meets the k-th of the others. */
TEST(several_ranks_announce_together)
{
    struct hvd__coordinator *c = new_one(4, 1 << 20);
    struct hvd__signature s = {.kind = HVD_ALLGATHER,
                               .dtype = HVD_INT8,
                               .ndim = 1,
                               .shape = {HVD__VARIES}};
    union statement what;
    const struct hvd__announcement together = {
        .key = key("g"),
        .what = state(&what, &s, 1),
        .who = (const int[]){3, 1, 2},
        .nwho = 3,
        .numbers = (const int64_t[]){13, 11, 12}};

    announce_all(c, 1, "g", &s, 1, 0, 1);
    ck_assert_int_eq(hvd__proposals_add(&c->proposals, &together), HVD_OK);
    ck_assert_int_eq(decide(c, 4, 2), 0);
    announce_all(c, 0, "g", &s, 1, 0, 10);
    ck_assert_int_eq(decide(c, 4, 2), 1);
    ck_assert_int_eq(decisions[0].type, HVD__BATCH);
    for (int rank = 0; rank < 4; rank++)
        ck_assert_int_eq(decisions[0].numbers[rank], rank == 1 ? 1 : 10 + rank);
    announce_all(c, 0, "g", &s, 1, 0, 20);
    announce_all(c, 2, "g", &s, 1, 0, 22);
    announce_all(c, 3, "g", &s, 1, 0, 23);
    ck_assert_int_eq(decide(c, 4, 2), 1);
    ck_assert_int_eq(decisions[0].numbers[1], 11);
    ck_assert_int_eq(decisions[0].numbers[3], 23);
    ck_assert(hvd__coordinator_is_idle(c));
    hvd__coordinator_free(c);
    hvd__coordinator_free(NULL);
}

TEST(a_rank_that_left_fails_what_it_lacks)
{
    struct hvd__coordinator *c = new_one(3, 1 << 20);
    char words[HVD__MESSAGE_MAX];

    announce(c, 0, "w", 10);
    ck_assert_int_eq(hvd__coordinator_gone(c, 2, HVD__GONE_LEFT), HVD_OK);
    ck_assert_int_eq(decide(c, 3, 2), 1);
    ck_assert_int_eq(decisions[0].status, HVD_ERR_SHUTDOWN);
    ck_assert(strstr(decisions[0].text, "rank 2"));
    ck_assert(decisions[0].ranks[0] && !decisions[0].ranks[1]);
    strcpy(words, decisions[0].text);
    /* The other comes later, and hears the same. */
    announce(c, 1, "w", 10);
    ck_assert_int_eq(decide(c, 3, 2), 1);
    ck_assert_str_eq(decisions[0].text, words);
    ck_assert(!decisions[0].ranks[0] && decisions[0].ranks[1]);
    ck_assert_int_eq(hvd__coordinator_gone(c, 2, HVD__GONE_LEFT),
                     HVD_ERR_INTERNAL);
    hvd__coordinator_gone(c, 0, HVD__GONE_LEFT);
    ck_assert_int_eq(decide(c, 3, 2), 0);
    hvd__coordinator_gone(c, 1, HVD__GONE_LEFT);
    ck_assert_int_eq(decide(c, 3, 2), 1);
    ck_assert_int_eq(decisions[0].type, HVD__CLOSE);
    ck_assert_int_eq(decide(c, 3, 2), 0);
    hvd__coordinator_free(c);
}

TEST(ready_ones_go_before_the_close)
{
    struct hvd__coordinator *c = new_one(1, 0);

    announce(c, 0, "a", 1);
    announce(c, 0, "b", 1);
    hvd__coordinator_gone(c, 0, HVD__GONE_LEFT);
    ck_assert_int_eq(decide(c, 1, 1), 1);
    ck_assert_int_eq(decisions[0].type, HVD__BATCH);
    ck_assert_int_eq(decide(c, 1, 1), 2);
    ck_assert_int_eq(decisions[0].type, HVD__BATCH);
    ck_assert_int_eq(decisions[1].type, HVD__CLOSE);
    hvd__coordinator_free(c);
}

/* A barrier needs no room. */
TEST(barriers_need_no_room)
{
    struct hvd__coordinator *c = new_one(1, 0);
    struct hvd__signature barrier = {.kind = HVD_BARRIER};

    announce_all(c, 0, "b", &barrier, 1, 0, 0);
    ck_assert_int_eq(decide(c, 1, 0), 1);
    ck_assert(decisions[0].keys[0] == key("b"));
    hvd__coordinator_free(c);
}

TEST(the_urgent_go_first)
{
    struct hvd__coordinator *c = new_one(2, 0);
    const struct hvd__signature s = sum_of(1);

    for (int rank = 0; rank < 2; rank++) {
        announce_all(c, rank, "low", &s, 1, -3, 0);
        announce_all(c, rank, "one", &s, 1, 0, 0);
        announce_all(c, rank, "two", &s, 1, 0, 0);
        /* The largest of the ranks' priorities counts. */
        announce_all(c, rank, "high", &s, 1, rank ? 7 : -9, 0);
    }
    ck_assert_int_eq(decide(c, 2, 9), 4);
    ck_assert(decisions[0].keys[0] == key("high"));
    ck_assert(decisions[1].keys[0] == key("one"));
    ck_assert(decisions[2].keys[0] == key("two"));
    ck_assert(decisions[3].keys[0] == key("low"));
    hvd__coordinator_free(c);
}

TEST(numbers_reach_everyone)
{
    struct hvd__coordinator *c = new_one(3, 1 << 20);
    const struct hvd__signature s = {.kind = HVD_ALLGATHER,
                                     .dtype = HVD_INT8,
                                     .ndim = 1,
                                     .shape = {HVD__VARIES}};

    for (int rank = 2; rank >= 0; rank--)
        announce_all(c, rank, "g", &s, 1, 0, 100 + rank);
    ck_assert_int_eq(decide(c, 3, 2), 1);
    for (int rank = 0; rank < 3; rank++)
        ck_assert_int_eq(decisions[0].numbers[rank], 100 + rank);
    /* Together they are more than there is memory in the world. */
    for (int rank = 0; rank < 3; rank++)
        announce_all(c, rank, "g", &s, 1, 0, INT64_MAX / 2);
    ck_assert_int_eq(decide(c, 3, 2), 1);
    ck_assert_int_eq(decisions[0].status, HVD_ERR_ARGUMENT);
    hvd__coordinator_free(c);
}

TEST(groups_are_all_or_nothing)
{
    struct hvd__coordinator *c = new_one(2, 1 << 20);
    const struct hvd__signature s[3] = {sum_of(1), sum_of(2), sum_of(3)};
    const struct hvd__signature other[3] = {sum_of(1), sum_of(9), sum_of(3)};

    announce_all(c, 0, "g", s, 3, 0, 0);
    ck_assert_int_eq(decide(c, 2, 2), 0);
    announce_all(c, 1, "g", s, 3, 0, 0);
    ck_assert_int_eq(decide(c, 2, 2), 1);
    ck_assert_int_eq(decisions[0].n, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(decisions[0].indices[i], i);
    announce_all(c, 0, "g", s, 3, 0, 0);
    announce_all(c, 1, "g", other, 3, 0, 0);
    ck_assert_int_eq(decide(c, 2, 2), 1);
    ck_assert_int_eq(decisions[0].status, HVD_ERR_MISMATCH);
    ck_assert(strstr(decisions[0].text, "number 1 is allreduce sum float32 "
                                        "[2]"));
    ck_assert(strstr(decisions[0].text, "[9]"));
    ck_assert(decisions[0].ranks[0] && decisions[0].ranks[1]);
    hvd__coordinator_free(c);
}

TEST(reductions_do_without_the_joined)
{
    struct hvd__coordinator *c = new_one(3, 1 << 20);

    announce(c, 0, "a", 10);
    announce(c, 2, "a", 10);
    ck_assert_int_eq(hvd__coordinator_gone(c, 1, HVD__GONE_JOINED), HVD_OK);
    ck_assert_int_eq(decide(c, 3, 2), 1);
    ck_assert(decisions[0].ranks[0] && !decisions[0].ranks[1] &&
              decisions[0].ranks[2]);
    /* Rank 0 joins too. What it submitted before still counts it in. */
    announce(c, 0, "b", 10);
    ck_assert_int_eq(hvd__coordinator_gone(c, 0, HVD__GONE_JOINED), HVD_OK);
    announce(c, 2, "b", 10);
    ck_assert_int_eq(decide(c, 3, 9), 1);
    ck_assert(decisions[0].ranks[0] && !decisions[0].ranks[1]);
    announce(c, 2, "c", 11);
    ck_assert_int_eq(decide(c, 3, 9), 1);
    ck_assert(!decisions[0].ranks[0] && !decisions[0].ranks[1]);
    ck_assert_int_eq(hvd__coordinator_gone(c, 2, HVD__GONE_JOINED), HVD_OK);
    ck_assert_int_eq(decide(c, 3, 2), 1);
    ck_assert_int_eq(decisions[0].type, HVD__END);
    ck_assert_int_eq(decisions[0].status, HVD_OK);
    ck_assert(decisions[0].keys[0] == hvd__join_key());
    ck_assert_int_eq(decisions[0].last, 2);
    /* The same name begins again. */
    announce(c, 0, "a", 10);
    ck_assert_int_eq(decide(c, 3, 2), 0);
    hvd__coordinator_free(c);
}

TEST(nothing_else_does)
{
    const struct hvd__signature kinds[] = {
        {.kind = HVD_BARRIER},
        {.kind = HVD_BROADCAST, .ndim = 1, .shape = {3}},
        {.kind = HVD_ALLGATHER, .ndim = 1, .shape = {3}},
        {.kind = HVD_REDUCE, .ndim = 1, .root = 1, .shape = {3}},
    };

    for (int i = 0; i < 4; i++) {
        struct hvd__coordinator *c = new_one(3, 1 << 20);

        hvd__coordinator_gone(c, 1, HVD__GONE_JOINED);
        announce_all(c, 0, "x", &kinds[i], 1, 0, 0);
        announce_all(c, 2, "x", &kinds[i], 1, 0, 0);
        ck_assert_int_eq(decide(c, 3, 2), 1);
        ck_assert_int_eq(decisions[0].status, HVD_ERR_JOINED);
        ck_assert(strstr(decisions[0].text, "rank 1 joined"));
        ck_assert(decisions[0].ranks[0] && !decisions[0].ranks[1] &&
                  decisions[0].ranks[2]);
        hvd__coordinator_free(c);
    }
}

/* A reduction of gradients goes on without a rank that takes the last one's
 * variables. */
TEST(steps_do_without_those_who_catch_up)
{
    const struct hvd__signature gradient = {.kind = HVD_ALLREDUCE,
                                            .dtype = HVD_FLOAT32,
                                            .flags = HVD__OF_STRATEGY,
                                            .prescale = 1,
                                            .postscale = 1};

    for (int restores = 0; restores < 2; restores++) {
        struct hvd__coordinator *c = new_one(3, 1 << 20);

        hvd__coordinator_gone(c, 1,
                              restores ? HVD__GONE_RESTORES : HVD__GONE_JOINED);
        announce_all(c, 0, "x", &gradient, 1, 0, 0);
        announce_all(c, 2, "x", &gradient, 1, 0, 0);
        ck_assert_int_eq(decide(c, 3, 2), 1);
        ck_assert_int_eq(decisions[0].type, restores ? HVD__BATCH : HVD__END);
        if (!restores) {
            ck_assert_int_eq(decisions[0].status, HVD_ERR_JOINED);
            ck_assert(strstr(decisions[0].text, "rank 1 joined by hvd_join"));
        }
        hvd__coordinator_free(c);
    }
}

TEST(joining_ends_when_a_rank_leaves)
{
    struct hvd__coordinator *c = new_one(2, 1 << 20);

    hvd__coordinator_gone(c, 0, HVD__GONE_JOINED);
    ck_assert_int_eq(decide(c, 2, 2), 0);
    hvd__coordinator_gone(c, 1, HVD__GONE_LEFT);
    ck_assert_int_eq(decide(c, 2, 2), 1);
    ck_assert_int_eq(decisions[0].status, HVD_ERR_SHUTDOWN);
    ck_assert(decisions[0].ranks[0] && !decisions[0].ranks[1]);
    ck_assert(decisions[0].keys[0] == hvd__join_key());
    hvd__coordinator_free(c);
}

TEST_MAIN("core_coordinator")
