/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round.c - moves the messages of rounds (round.h). speaker.c calls it.
 *
 * The exchanges of a round are worked out once, when the set is made. Each has
 * its own buffers: one to receive into, posted when the round starts, and one
 * to send from, which is free again when the message of the round before has
 * left.
 */
#include "core/agree/round.h"

#include <stdlib.h>

#include "base/status.h"
#include "trace/metrics.h"

/* A message to a host, a message from it, or both. */
struct exchange {
    int host;
    int peer; /* rank of the host's speaker in the team */
    bool sends, receives;
    bool is_result;     /* what is received is the result of all hosts */
    int first, end;     /* the hosts that the received message covers */
    int modulus;        /* of the hosts that both messages have blocks for */
    unsigned char *out; /* owned; NULL if nothing is sent */
    unsigned char *in;  /* owned; NULL if nothing is received */
    struct hvd__transfer sending, receiving;
    bool has_sent;
};

/* log2 of the most hosts, and the two exchanges of the fold */
enum { EXCHANGES = 32 };

struct hvd__round {
    const struct hvd__team *team;
    const struct hvd__hosts *hosts;
    struct hvd__metrics *metrics;
    int tag;
    uint64_t number; /* of the round under way, or of the last */
    bool is_under_way;
    int at; /* the exchange that the round has come to */
    int n;
    struct exchange exchanges[EXCHANGES];
    struct hvd__offer offer;
};

/* ---------------------------------------------------------------- exchanges */

static struct exchange *add_exchange(struct hvd__round *round, int host,
                                     bool sends, bool receives)
{
    struct exchange *exchange = &round->exchanges[round->n++];

    *exchange = (struct exchange){
        .host = host,
        .peer = hvd__hosts_carrier(round->hosts, host, 0),
        .sends = sends,
        .receives = receives,
        .modulus = 1,
        .first = host,
        .end = host + 1,
    };
    return exchange;
}

/* The hosts that take part in the doubling are numbered from 0: the odd ones
 * below 2r, each together with the host before it, and then the rest. Returns
 * the first host of a number. */
static int first_of(int number, int r)
{
    return number < r ? 2 * number : number + r;
}

static void plan_exchanges(struct hvd__round *round)
{
    const int p = round->hosts->n, own = round->hosts->own;
    int power = 1, r, number;

    while (2 * power <= p)
        power *= 2;
    r = p - power;
    if (own < 2 * r && own % 2 == 0) {
        struct exchange *result;

        add_exchange(round, own + 1, true, false);
        result = add_exchange(round, own + 1, false, true);
        result->is_result = true;
        return;
    }
    if (own < 2 * r)
        add_exchange(round, own - 1, false, true);
    number = own < 2 * r ? own / 2 : own - r;
    for (int distance = 1; distance < power; distance *= 2) {
        int partner = number ^ distance;
        int start = partner / distance * distance;
        struct exchange *exchange = add_exchange(
            round, first_of(partner, r) + (partner < r), true, true);

        exchange->first = first_of(start, r);
        exchange->end = first_of(start + distance, r);
        exchange->modulus = 2 * distance;
    }
    if (own < 2 * r)
        add_exchange(round, own - 1, true, false)->modulus = 0;
}

struct hvd__round *hvd__round_new(const struct hvd__team *team,
                                  const struct hvd__hosts *hosts, int tag,
                                  struct hvd__metrics *metrics)
{
    struct hvd__round *round = calloc(1, sizeof *round);

    if (!round)
        return NULL;
    round->team = team;
    round->hosts = hosts;
    round->tag = tag;
    round->metrics = metrics;
    plan_exchanges(round);
    for (int i = 0; i < round->n; i++) {
        struct exchange *exchange = &round->exchanges[i];

        if (exchange->sends)
            exchange->out = malloc(HVD__OFFER_BYTES);
        if (exchange->receives)
            exchange->in = malloc(HVD__OFFER_BYTES);
        if ((exchange->sends && !exchange->out) ||
            (exchange->receives && !exchange->in)) {
            hvd__round_free(round);
            return NULL;
        }
    }
    return round;
}

/* Keeps a pointer to memory that is left to transfers, so that memory checkers
 * find it. */
static struct hvd__round *volatile abandoned;

void hvd__round_free(struct hvd__round *round)
{
    if (!round)
        return;
    for (int i = 0; i < round->n; i++)
        if (round->exchanges[i].sending.request ||
            round->exchanges[i].receiving.request) {
            abandoned = round;
            return;
        }
    for (int i = 0; i < round->n; i++) {
        free(round->exchanges[i].out);
        free(round->exchanges[i].in);
    }
    free(round);
}

/* ----------------------------------------------------------------- a round */

struct hvd__offer *hvd__round_offer(struct hvd__round *round)
{
    return &round->offer;
}

bool hvd__round_is_under_way(const struct hvd__round *round)
{
    return round->is_under_way;
}

void hvd__round_begin(struct hvd__round *round, uint32_t epoch)
{
    hvd__offer_begin(&round->offer, round->hosts, round->number + 1, epoch);
}

int hvd__round_start(struct hvd__round *round)
{
    round->number++;
    round->is_under_way = true;
    round->at = 0;
    for (int i = 0; i < round->n; i++) {
        struct exchange *exchange = &round->exchanges[i];

        exchange->has_sent = !exchange->sends;
        if (exchange->receives)
            HVD_TRY(hvd__team_receive(round->team, exchange->peer, round->tag,
                                      exchange->in, HVD__OFFER_BYTES,
                                      &exchange->receiving));
    }
    return HVD_OK;
}

static int test(const struct hvd__round *round, struct hvd__transfer *transfer)
{
    struct hvd__transport *t = round->team->transport;

    return transfer->request ? t->test(t, transfer) : 1;
}

/* Sends the offer, unless the message of the round before has not yet left.
 * Returns 1 if it is sent. */
static int send_offer(struct hvd__round *round, struct exchange *exchange)
{
    struct hvd__transport *t = round->team->transport;
    int free_again = test(round, &exchange->sending);
    size_t bytes;

    if (free_again <= 0)
        return free_again;
    bytes = hvd__offer_write(
        &round->offer,
        (struct hvd__offer_aim){exchange->host, exchange->modulus},
        exchange->out);
    HVD_TRY(t->send(t, round->team->world[exchange->peer], round->tag,
                    exchange->out, bytes, &exchange->sending));
    exchange->has_sent = true;
    hvd__count_alone(&round->metrics->messages, 1);
    hvd__count_alone(&round->metrics->message_bytes, (int64_t)bytes);
    return 1;
}

static int take_in(struct hvd__round *round, const struct exchange *exchange)
{
    bool good =
        exchange->is_result
            ? hvd__offer_replace(&round->offer, exchange->in)
            : hvd__offer_combine(&round->offer, exchange->in, exchange->first,
                                 exchange->end, exchange->modulus);

    return good ? HVD_OK
                : hvd__fail(HVD_ERR_INTERNAL,
                            "rank %d sent an offer that makes no sense",
                            round->team->world[exchange->peer]);
}

int hvd__round_step(struct hvd__round *round, bool *moved)
{
    for (; round->at < round->n; round->at++) {
        struct exchange *exchange = &round->exchanges[round->at];
        int done = 1;

        if (!exchange->has_sent)
            done = send_offer(round, exchange);
        if (done > 0 && exchange->receives)
            done = test(round, &exchange->receiving);
        if (done <= 0)
            return done;
        *moved = true;
        if (exchange->receives)
            HVD_TRY(take_in(round, exchange));
    }
    round->is_under_way = false;
    return 1;
}

int hvd__round_pending(struct hvd__round *round)
{
    int npending = 0;

    for (int i = 0; round && i < round->n; i++) {
        int done = test(round, &round->exchanges[i].sending);

        if (done < 0)
            return done;
        npending += !done;
    }
    return npending;
}
