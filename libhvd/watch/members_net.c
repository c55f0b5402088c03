/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members_net.c - carries the letters of survivors.c.
 *
 * Each member has a socket from the first world to its end. So the kernel of
 * its host refuses letters only to a member that has ended, or that has closed
 * its socket for good; two refusals with nothing heard in between make it
 * suspected, before it was silent for long. That is no proof of its end,
 * because a firewall can answer the same.
 *
 * A letter goes to all addresses of a host until the member was heard from, and
 * from then on to the address that its letters come from.
 */
#include "watch/members_net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own_time.h"
#include "base/status.h"
#include "watch/mac.h"
#include "watch/socket.h"

enum { MOST_AT_ONCE = 256, REFUSALS_OF_THE_DEAD = 2 };
/* Time counts up to so much between two looks. */
#define GAP_NS INT64_C(500000000)

struct place {
    struct hvd__ip addresses[HVD__HEARTBEAT_ADDRESSES];
    struct hvd__ip last; /* "any": never heard from */
    int32_t naddresses, port;
    int refusals; /* since it was heard */
};

struct hvd__members_net {
    int fd; /* owned */
    int n;
    uint32_t world;
    uint64_t key[2];
    struct place *places; /* owned, [n] */
    struct hvd__own_time time;
    struct hvd__survivors state;
};

int hvd__members_net_open(struct hvd__members_net **made, struct hvd__ip own,
                          int n, int self,
                          const struct hvd__survivors_times *times,
                          struct hvd__heartbeat_card *card)
{
    struct hvd__members_net *net;

    *made = NULL;
    *card = (struct hvd__heartbeat_card){0};
    if (n > HVD__SURVIVORS_MOST)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "survivors on several hosts are found among at most "
                         "%d ranks",
                         HVD__SURVIVORS_MOST);
    net = calloc(1, sizeof *net);
    if (!net)
        return hvd__fail_memory(sizeof *net);
    net->n = n;
    net->places = calloc((size_t)n, sizeof *net->places);
    net->fd = hvd__socket_open(own, card->addresses, HVD__HEARTBEAT_ADDRESSES,
                               &card->naddresses, &card->port);
    if (!net->places || net->fd < 0 ||
        getrandom(card->key, sizeof card->key, 0) != sizeof card->key) {
        int status = net->fd < 0 ? net->fd
                     : !net->places
                         ? hvd__fail_memory(sizeof *net->places)
                         : hvd__fail(HVD_ERR_UNSUPPORTED, "getrandom: %s",
                                     strerror(errno));

        hvd__members_net_close(net);
        return status;
    }
    hvd__survivors_init(&net->state, n, self, times);
    *made = net;
    return HVD_OK;
}

void hvd__members_net_introduce(struct hvd__members_net *net, int member,
                                const struct hvd__heartbeat_card *card)
{
    struct place *place = &net->places[member];

    memcpy(place->addresses, card->addresses, sizeof place->addresses);
    place->naddresses = card->naddresses;
    place->port = card->port;
    if (member == 0)
        memcpy(net->key, card->key, sizeof net->key);
}

void hvd__members_net_start(struct hvd__members_net *net)
{
    /* The number travels in the open; it does not reveal the key. */
    net->world = (uint32_t)hvd__mac(net->key, "members", 7);
    hvd__socket_filter(net->fd, HVD__LETTER_MAGIC, net->world);
}

void hvd__members_net_close(struct hvd__members_net *net)
{
    if (!net)
        return;
    if (net->fd >= 0)
        close(net->fd);
    free(net->places);
    free(net);
}

struct hvd__survivors *hvd__members_net_state(struct hvd__members_net *net)
{
    return &net->state;
}

int hvd__members_net_fd(const struct hvd__members_net *net)
{
    return net->fd;
}

static bool is_at(const struct place *place, struct hvd__ip address)
{
    for (int32_t i = 0; i < place->naddresses; i++)
        if (hvd__ip_equal(place->addresses[i], address))
            return true;
    return false;
}

static void hear_refusals(struct hvd__members_net *net)
{
    struct hvd__ip address;
    int port;

    while (hvd__socket_next_refusal(net->fd, &address, &port))
        for (int i = 0; i < net->n; i++)
            if (net->places[i].port == port && i != net->state.self &&
                is_at(&net->places[i], address) &&
                ++net->places[i].refusals >= REFUSALS_OF_THE_DEAD)
                hvd__survivors_suspect(&net->state, i);
}

void hvd__members_net_receive(struct hvd__members_net *net)
{
    unsigned char bytes[HVD__LETTER_BYTES];
    struct hvd__letter letter;

    hear_refusals(net);
    for (int i = 0; i < MOST_AT_ONCE; i++) {
        struct hvd__ip address;
        int size = hvd__socket_receive(net->fd, bytes, sizeof bytes, &address);

        if (size < 0)
            break;
        if ((size_t)size > sizeof bytes ||
            !hvd__letter_read(&letter, net->n, net->world, net->key, bytes,
                              (size_t)size))
            continue;
        net->places[letter.from].last = address;
        net->places[letter.from].refusals = 0;
        hvd__survivors_hear(&net->state, &letter);
    }
    hvd__survivors_pass(&net->state,
                        hvd__own_time_pass(&net->time, hvd__now_ns(), GAP_NS));
}

static void deliver(struct hvd__members_net *net, int to,
                    const unsigned char *bytes, size_t size)
{
    const struct place *place = &net->places[to];

    if (!hvd__ip_is_any(place->last)) {
        hvd__socket_send(net->fd, place->last, place->port, bytes, size);
        return;
    }
    for (int32_t i = 0; i < place->naddresses; i++)
        hvd__socket_send(net->fd, place->addresses[i], place->port, bytes,
                         size);
}

void hvd__members_net_send(struct hvd__members_net *net)
{
    unsigned char bytes[HVD__LETTER_BYTES];
    struct hvd__letter letter;
    int to;

    while ((to = hvd__survivors_next(&net->state, &letter)) >= 0) {
        size_t size =
            hvd__letter_write(&letter, net->n, net->world, net->key, bytes);

        deliver(net, to, bytes, size);
    }
}
