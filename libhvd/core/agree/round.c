/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round.c - moves the messages of rounds (round.h). speaker.c calls it.
 *
 * A round whose offer comes back (offer.h) takes its exchanges once more, the
 * last one first, with the same partners and buffers.
 *
 * The exchanges of a round are worked out once, when the set is made. Each has
 * its own buffers: one to receive into, posted when the round starts, and one
 * to send from, which is free again when the message of the round before has
 * left.
 */
#include "core/agree/round.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/left.h"
#include "base/status.h"
#include "trace/metrics.h"
#include "transport/pattern.h"

static struct hvd__offer_peer *add_exchange(struct hvd__round *round, int host,
                                            bool sends, bool receives)
{
    struct hvd__round_exchange *exchange = &round->exchanges[round->n++];

    *exchange = (struct hvd__round_exchange){
        .with = {.host = host, .first = host, .end = host + 1, .modulus = 1},
        .peer = hvd__hosts_carrier(round->hosts, host, 0),
        .sends = sends,
        .receives = receives};
    return &exchange->with;
}

/* Returns the first of the hosts that hosts from a number on in the doubling
 * stand for. */
static int first_of(int number, int extra)
{
    return number < extra ? 2 * number : number + extra;
}

static void plan_exchanges(struct hvd__round *round)
{
    const struct hvd__pairing p =
        hvd__pairing_of(round->hosts->own, round->hosts->n);

    if (p.folded >= 0)
        add_exchange(round, p.folded, p.number < 0, p.number >= 0);
    for (int i = 0; i < p.steps && p.number >= 0; i++) {
        int start = (p.number ^ 1 << i) >> i << i;
        struct hvd__offer_peer *with =
            add_exchange(round, hvd__pairing_partner(&p, i), true, true);

        with->first = first_of(start, p.extra);
        with->end = first_of(start + (1 << i), p.extra);
        with->modulus = 2 << i;
    }
    if (p.folded >= 0)
        *add_exchange(round, p.folded, p.number >= 0, p.number < 0) =
            (struct hvd__offer_peer){.host = p.folded, .end = round->hosts->n};
}

struct hvd__round *hvd__round_new(const struct hvd__team *team,
                                  const struct hvd__hosts *hosts, int tag,
                                  struct hvd__metrics *metrics)
{
    struct hvd__round *round = malloc(sizeof *round);

    if (!round)
        return NULL;
    /* Data of an offer is never read before it is written. */
    memset(round, 0, offsetof(struct hvd__round, offer.data));
    round->team = team;
    round->hosts = hosts;
    round->tag = tag;
    round->metrics = metrics;
    plan_exchanges(round);
    round->buffers = malloc(2 * (size_t)round->n * HVD__OFFER_BYTES);
    if (!round->buffers ||
        hvd__straight_init(&round->straight, team, hosts, tag + 1) < 0) {
        free(round->buffers);
        free(round);
        return NULL;
    }
    for (int i = 0; i < round->n; i++) {
        round->exchanges[i].out =
            round->buffers + 2 * (size_t)i * HVD__OFFER_BYTES;
        round->exchanges[i].in = round->exchanges[i].out + HVD__OFFER_BYTES;
    }
    return round;
}

static bool is_busy(const struct hvd__round *round)
{
    for (int i = 0; i < round->n; i++)
        if (round->exchanges[i].sending.request ||
            round->exchanges[i].receiving.request)
            return true;
    return hvd__straight_is_busy(&round->straight);
}

void hvd__round_free(struct hvd__round *round)
{
    if (!round)
        return;
    if (is_busy(round)) {
        hvd__leave_behind(round);
        return;
    }
    hvd__straight_fini(&round->straight);
    free(round->buffers);
    free(round);
}

/* ----------------------------------------------------------------- a round */

void hvd__round_begin(struct hvd__round *round, uint32_t epoch)
{
    hvd__offer_begin(&round->offer, round->hosts, round->number + 1, epoch);
}

/* Posts all receives of a round, or of its way back. */
static int begin_exchanges(struct hvd__round *round)
{
    round->at = 0;
    for (int i = 0; i < round->n; i++) {
        struct hvd__round_exchange *exchange = &round->exchanges[i];

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
static int send_offer(struct hvd__round *round,
                      struct hvd__round_exchange *exchange)
{
    struct hvd__transport *t = round->team->transport;
    int free_again = test(round, &exchange->sending);
    size_t bytes;

    if (free_again <= 0)
        return free_again;
    bytes = hvd__offer_write(&round->offer, &exchange->with, exchange->out);
    HVD_TRY(t->send(t, round->team->world[exchange->peer], round->tag,
                    exchange->out, bytes, &exchange->sending));
    exchange->has_sent = true;
    hvd__count_alone(&round->metrics->messages, 1);
    hvd__count_alone(&round->metrics->message_bytes, (int64_t)bytes);
    return 1;
}

/* The first message leaves before the blocks, behind which it would wait for a
 * link. */
int hvd__round_start(struct hvd__round *round)
{
    round->number++;
    round->is_under_way = true;
    HVD_TRY(begin_exchanges(round));
    hvd__straight_begin(&round->straight, &round->offer);
    if (round->offer.straight && round->exchanges[0].sends)
        HVD_TRY(send_offer(round, &round->exchanges[0]));
    return HVD_OK;
}

/* Returns 1 if the exchange is done. */
static int step_exchange(struct hvd__round *round,
                         struct hvd__round_exchange *exchange, bool *moved)
{
    int done = 1;

    if (!exchange->has_sent)
        done = send_offer(round, exchange);
    if (done > 0 && exchange->receives)
        done = test(round, &exchange->receiving);
    if (done <= 0)
        return done;
    *moved = true;
    if (exchange->receives &&
        !hvd__offer_take(&round->offer, exchange->in, &exchange->with))
        return hvd__fail(HVD_ERR_INTERNAL,
                         "rank %d sent an offer that makes no sense",
                         round->team->world[exchange->peer]);
    return 1;
}

int hvd__round_step(struct hvd__round *round, bool *moved)
{
    int done;

    HVD_TRY(hvd__straight_step(&round->straight, &round->offer, false));
    for (; round->at < round->n; round->at++) {
        int i = round->offer.is_back ? round->n - 1 - round->at : round->at;

        done = step_exchange(round, &round->exchanges[i], moved);
        if (done <= 0)
            return done;
    }
    if (hvd__offer_comes_back(&round->offer)) {
        round->offer.is_back = true;
        HVD_TRY(begin_exchanges(round));
        return hvd__round_step(round, moved);
    }
    done = hvd__straight_step(&round->straight, &round->offer, true);
    if (done <= 0)
        return done;
    *moved = true;
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
