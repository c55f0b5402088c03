/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers and exchanges between simulated ranks: every algorithm gives the
 * right blocks, and sends what it should.
 */
#include "simulated_run.h"
#include "suite.h"

static const struct hvd__algorithm *const exchanges[] = {
    &hvd__exchange_pairwise, &hvd__gather_hosts, &hvd__exchange_hosts, NULL};
enum { EXCHANGES = sizeof exchanges / sizeof *exchanges };

/* The kinds of exchanges. */
enum { ALLGATHER, GATHER, ALLTOALL, EQUAL, KINDS };

struct blocks {
    int kind, size, layout;
    int64_t bytes; /* of the first block; the others have other sizes */
};

static size_t block_bytes(const struct blocks *b, int from, int to)
{
    if (b->kind == GATHER && to != b->size / 2)
        return 0;
    if (b->kind == EQUAL)
        return (size_t)b->bytes;
    if (b->kind != ALLTOALL)
        to = 0;
    return (size_t)(b->bytes * (1 + (from * 3 + to * 5) % 4) / 2);
}

static unsigned char block_byte(const struct blocks *b, int from, int to,
                                size_t i)
{
    return (unsigned char)given(from * 3 + (b->kind >= ALLTOALL ? to : 0),
                                (int64_t)i);
}

static void describe_blocks(const struct blocks *b, struct member *m, int rank)
{
    size_t in = 0, out = 0;
    unsigned char *to, *from;
    bool same = b->kind < ALLTOALL;

    for (int i = 0; i < b->size; i++) {
        in += block_bytes(b, rank, i);
        out += block_bytes(b, i, rank);
    }
    give(m, in, out, false);
    to = m->input;
    from = m->output;
    for (int i = 0; i < b->size; i++) {
        size_t bytes = block_bytes(b, rank, i);

        m->collective.to[i] =
            (struct hvd__block){bytes ? same ? m->input : to : NULL, bytes};
        m->collective.from[i] =
            (struct hvd__block){from, block_bytes(b, i, rank)};
        to += bytes;
        from += block_bytes(b, i, rank);
    }
}

/* Writes what a rank sends: of a gather, one block to all. */
static void fill_blocks(const struct blocks *b, struct member *m, int rank)
{
    const unsigned char *filled = NULL;

    for (int i = 0; i < b->size; i++) {
        struct hvd__block *to = &m->collective.to[i];

        for (size_t k = 0; to->data != filled && k < to->bytes; k++)
            to->data[k] = block_byte(b, rank, i, k);
        if (to->data)
            filled = to->data;
    }
}

static void exchange(const struct blocks *b,
                     const struct hvd__algorithm *algorithm)
{
    struct run run = b->layout < 0
                         ? run_begin(b->size, NULL, 0, b->size)
                         : run_begin(b->size, layouts[b->layout].widths,
                                     layouts[b->layout].n, b->size);
    bool applies = true;

    for (int i = 0; i < b->size; i++) {
        run.members[i].collective.motion =
            b->kind == ALLGATHER ? HVD__GATHER_TO_ALL : HVD__EXCHANGE;
        run.members[i].collective.root = b->size / 2;
        run.members[i].collective.count = b->kind == EQUAL ? b->bytes : 0;
        describe_blocks(b, &run.members[i], i);
        applies = !algorithm || algorithm->applies(&run.members[i].collective);
    }
    for (int i = 0; applies && i < b->size; i++)
        fill_blocks(b, &run.members[i], i);
    if (applies)
        run_all(&run, algorithm);
    for (int i = 0; applies && i < b->size; i++)
        for (int from = 0; from < b->size; from++)
            for (size_t k = 0; k < block_bytes(b, from, i); k++)
                SIMULATED_ASSERT(run.members[i].collective.from[from].data[k] ==
                                 block_byte(b, from, i, k));
    run_end(&run);
}

LOOP_TEST(exchanges_are_right, 0, EXCHANGES *(LAYOUTS + 1))
{
    static const int64_t bytes[] = {1, 3, 1000, 50003};

    for (int n = 2; n <= 17; n = after(n))
        for (int kind = 0; kind < KINDS; kind++)
            for (int k = 0; k < (n < 9 ? 4 : 3); k++)
                exchange(
                    &(struct blocks){kind, n, _i / EXCHANGES - 1, bytes[k]},
                    exchanges[_i % EXCHANGES]);
}

/* Each host sends its own block, or another's, once for each other host,
 * however many ranks it has. */
TEST(gathers_cross_a_link_once)
{
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int n = 2; n <= 13; n++) {
            const struct blocks b = {ALLGATHER, n, layout, 30011};
            struct run run =
                run_begin(n, layouts[layout].widths, layouts[layout].n, n);
            int64_t all = 0, sent = 0;
            const struct hvd__hosts *hosts =
                simulated_team(run.simulated, 0)->hosts;

            for (int i = 0; i < n; i++) {
                run.members[i].collective.motion = HVD__GATHER_TO_ALL;
                describe_blocks(&b, &run.members[i], i);
                fill_blocks(&b, &run.members[i], i);
                all += (int64_t)block_bytes(&b, i, 0);
            }
            if (hosts)
                run_all(&run, &hvd__gather_hosts);
            for (int i = 0; i < n; i++)
                sent += simulated_sent(run.simulated, i, true).bytes;
            ck_assert_int_eq(sent, hosts ? all * (hosts->n - 1) : 0);
            run_end(&run);
        }
}

TEST(exchanges_with_little_memory_are_right)
{
    has_little = true;
    for (int n = 2; n <= MOST_RANKS; n += 5)
        for (int kind = 0; kind < KINDS; kind++)
            exchange(&(struct blocks){kind, n, -1, 1000}, NULL);
}

LOOP_TEST(large_exchanges_are_right, 0, EXCHANGES *(LAYOUTS + 1))
{
    for (int kind = 0; kind < KINDS; kind++)
        exchange(&(struct blocks){kind, 4, _i / EXCHANGES - 1, 2500001},
                 exchanges[_i % EXCHANGES]);
}

/* Returns how many bytes a rank sends before any other rank does anything. */
static int64_t sent_at_once(int size, int64_t bytes)
{
    const struct blocks b = {EQUAL, size, -1, bytes};
    struct run run = run_begin(size, NULL, 0, size);
    int64_t sent;
    bool moved = false;

    for (int i = 0; i < size; i++) {
        run.members[i].collective.motion = HVD__EXCHANGE;
        run.members[i].collective.count = bytes;
        describe_blocks(&b, &run.members[i], i);
    }
    start_all(&run, &hvd__exchange_pairwise);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(
            hvd__collective_step(&run.members[0].collective, &moved), 0);
    sent = simulated_sent(run.simulated, 0, false).bytes;
    finish_all(&run);
    run_end(&run);
    return sent;
}

TEST(large_blocks_go_to_a_few_ranks_at_a_time)
{
    ck_assert_int_eq(sent_at_once(16, 16 << 10), 15 * (16 << 10));
    ck_assert_int_eq(sent_at_once(16, 64 << 10), 4 * (64 << 10));
    /* Of larger ones, three chunks of 32 KiB. */
    ck_assert_int_eq(sent_at_once(16, 1 << 20), 2 * 3 * (32 << 10));
    ck_assert_int_eq(sent_at_once(2, 1 << 20), 3 * (32 << 10));
}

TEST_MAIN("transport_exchange", .set_up = keep_memory, .set_up_once = make_data,
          .seconds = 200)
