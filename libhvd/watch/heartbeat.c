/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heartbeat.c - the neighbours of a host, and which of them is lost. The
 * watchdog calls it; heartbeat_send.c and heartbeat_receive.c have the
 * datagrams that go between hosts.
 *
 * Each host watches its neighbours (places.h), at most eight, so the number of
 * datagrams that it sends and gets does not grow with the world. A neighbour is
 * lost if it was heard from and then is silent for a whole heartbeat period. A
 * host that still speaks judges its own ranks. When the last rank of a host
 * dies, nobody there can say so, but the kernel of that host does: it refuses
 * datagrams to the rank's port (socket.h). A neighbour that refuses twice, with
 * nothing heard in between, is lost.
 *
 * A socket is of IPv4 or of IPv6: of the version of the one address on which
 * its rank may listen, or else of IPv4 if the host has that. Hosts of different
 * versions do not watch each other.
 */
#include "watch/heartbeat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "watch/mac.h"
#include "watch/neighbours.h"
#include "watch/socket.h"

enum { REFUSALS_OF_THE_DEAD = 2 };
#define CONTACT_NS INT64_C(5000000000)
/* A hop to a neighbour takes well under a millisecond, or some milliseconds
 * where all cores are busy; a world of more hosts has up to 7 hops (512 hosts)
 * or 14 (4,096). */
#define SETTLE_NEAR_NS INT64_C(50000000)
#define SETTLE_NS INT64_C(250000000)

/* ------------------------------------------------------------------ opening */

static int name_hosts(struct hvd__heartbeat *b,
                      const char *(*host)(const void *, int),
                      const void *context)
{
    const struct hvd__places *p = b->places;

    b->hosts = calloc((size_t)p->nhosts, sizeof *b->hosts);
    b->ports = calloc((size_t)p->nranks, sizeof *b->ports);
    b->beats = calloc((size_t)hvd__places_most_lines(p), sizeof *b->beats);
    if (!b->hosts || !b->ports || !b->beats)
        return hvd__fail_memory((size_t)p->nhosts * sizeof *b->hosts);
    for (int h = 0; h < p->nhosts; h++) {
        const char *name = host(context, p->first[h]);

        b->hosts[h].is_linked = true;
        snprintf(b->hosts[h].name, sizeof b->hosts[h].name, "%.*s",
                 (int)strcspn(name, " "), name);
    }
    return HVD_OK;
}

static int open_socket(struct hvd__heartbeat *b, struct hvd__ip own,
                       struct hvd__heartbeat_card *card)
{
    b->fd = hvd__socket_open(own, card->addresses, HVD__HEARTBEAT_ADDRESSES,
                             &card->naddresses, &card->port);
    if (b->fd < 0)
        return b->fd;
    if (getrandom(card->key, sizeof card->key, 0) != sizeof card->key)
        return hvd__fail(HVD_ERR_UNSUPPORTED, "getrandom: %s", strerror(errno));
    return HVD_OK;
}

int hvd__heartbeat_open(struct hvd__heartbeat **heartbeat, struct hvd__ip own,
                        struct hvd__places *places,
                        const char *(*host)(const void *context, int rank),
                        const void *context, struct hvd__heartbeat_card *card)
{
    struct hvd__heartbeat *b;
    int status;

    *heartbeat = NULL;
    *card = (struct hvd__heartbeat_card){0};
    if (places->nhosts == 1)
        return HVD_OK;
    b = calloc(1, sizeof *b);
    if (!b)
        return hvd__fail_memory(sizeof *b);
    b->fd = -1;
    b->places = places;
    status = name_hosts(b, host, context);
    if (status == HVD_OK)
        status = hvd__heartbeat_ask_open(b);
    if (status == HVD_OK) {
        if (open_socket(b, own, card) == HVD_OK) {
            *heartbeat = b;
            return HVD_OK;
        }
        *card = (struct hvd__heartbeat_card){0};
        hvd__log(HVD__LOG_WARNING,
                 "this host and the others do not watch each other: %s",
                 hvd_last_error());
    }
    hvd__heartbeat_close(b);
    return status;
}

void hvd__heartbeat_introduce(struct hvd__heartbeat *b, int rank,
                              const struct hvd__heartbeat_card *card,
                              bool is_watching)
{
    int h = b->places->host_of[rank];
    struct hvd__heartbeat_host *host = &b->hosts[h];

    if (card->port != 0 && b->key[0] == 0 && b->key[1] == 0)
        memcpy(b->key, card->key, sizeof b->key);
    if (rank == b->places->first[h]) {
        memcpy(host->addresses, card->addresses, sizeof host->addresses);
        host->naddresses = card->naddresses;
    }
    b->ports[rank] = card->port;
    host->is_linked &= is_watching && card->port != 0;
}

/* Chooses the neighbours: all hosts number the hosts that take part alike. */
static void choose_neighbours(struct hvd__heartbeat *b)
{
    struct hvd__places *p = b->places;
    int near[HVD__NEAR], n = 0, own = 0, which = 0;

    for (int h = 0; h < p->nhosts; h++) {
        if (h == p->host)
            own = n;
        n += b->hosts[h].is_linked;
    }
    if (!b->hosts[p->host].is_linked)
        return;
    b->nnear = hvd__places_near(n, own, near);
    for (int h = 0; h < p->nhosts; h++) {
        if (!b->hosts[h].is_linked)
            continue;
        for (int i = 0; i < b->nnear; i++)
            if (near[i] == which)
                b->near[i] =
                    (struct hvd__neighbour){.host = h, .speaker = p->first[h]};
        which++;
    }
    for (int i = 0; i < b->nnear; i++)
        hvd__places_add_lines(p, b->near[i].host);
}

void hvd__heartbeat_start(struct hvd__heartbeat *b, struct hvd__page *page,
                          const struct hvd__watch_subject *subject,
                          int64_t silent_limit_ns)
{
    b->page = page;
    b->subject = subject;
    b->silent_limit_ns = silent_limit_ns;
    b->answers_to = -1;
    choose_neighbours(b);
    /* The number travels in the open; it is made from the key, but does not
     * reveal it. */
    b->world = (uint32_t)hvd__mac(b->key, "world", 5);
    hvd__socket_filter(b->fd, HVD__DATAGRAM_MAGIC, b->world);
}

void hvd__heartbeat_close(struct hvd__heartbeat *b)
{
    if (!b)
        return;
    if (b->fd >= 0)
        close(b->fd);
    hvd__heartbeat_ask_close(b);
    free(b->hosts);
    free(b->ports);
    free(b->beats);
    free(b);
}

int hvd__heartbeat_fd(const struct hvd__heartbeat *b)
{
    return b->fd;
}

const char *hvd__heartbeat_host(const struct hvd__heartbeat *b, int rank)
{
    return b->hosts[b->places->host_of[rank]].name;
}

int64_t hvd__heartbeat_settle_ns(const struct hvd__heartbeat *b)
{
    return b->places->nhosts <= HVD__NEAR + 1 ? SETTLE_NEAR_NS : SETTLE_NS;
}

/* ------------------------------------------------------------------ judging */

static void count_silence(struct hvd__heartbeat *b, struct hvd__neighbour *near,
                          int64_t passed_ns)
{
    near->silent_ns += passed_ns;
    for (int rank = b->places->first[near->host]; rank >= 0;
         rank = b->places->next[rank]) {
        uint64_t beats = atomic_load(&hvd__heartbeat_line_of(b, rank)->beats);
        uint64_t *before = &b->beats[b->places->line_of[rank]];

        if (beats == *before)
            continue;
        *before = beats;
        near->was_heard = true;
        near->speaker = rank;
        near->silent_ns = 0;
        near->refusals = 0;
    }
}

void hvd__heartbeat_advance(struct hvd__heartbeat *b, int64_t passed_ns)
{
    b->age_ns += passed_ns;
    for (int i = 0; i < b->nnear; i++)
        count_silence(b, &b->near[i], passed_ns);
}

bool hvd__heartbeat_has_refusals(const struct hvd__heartbeat *b)
{
    for (int i = 0; i < b->nnear; i++)
        if (b->near[i].refusals > 0)
            return true;
    return false;
}

static void describe(const struct hvd__heartbeat *b,
                     const struct hvd__neighbour *near, char *how, size_t size)
{
    struct hvd__text out = hvd__text_at(how, size);

    hvd__text_add(&out, "is silent, as is all of its host (");
    hvd__text_add_ranks(&out, NULL, b->places->host_of, b->places->nranks,
                        near->host);
    hvd__text_add(&out,
                  "), which is frozen, or cut off from here: no heartbeat for "
                  "%.1f s",
                  (double)near->silent_ns * 1e-9);
}

bool hvd__heartbeat_has_lost(const struct hvd__heartbeat *b, int64_t limit_ns,
                             int *rank, char *how, size_t size)
{
    for (int i = 0; i < b->nnear; i++) {
        const struct hvd__neighbour *near = &b->near[i];

        if (!near->was_heard)
            continue;
        *rank = hvd__heartbeat_listener(b, near);
        if (*rank < 0)
            continue;
        if (*rank == near->speaker && near->refusals >= REFUSALS_OF_THE_DEAD) {
            snprintf(how, size, "is gone: its host refuses letters to it");
            return true;
        }
        if (limit_ns > 0 && near->silent_ns >= limit_ns) {
            describe(b, near, how, size);
            return true;
        }
    }
    return false;
}

bool hvd__heartbeat_lacks_contact(struct hvd__heartbeat *b, char *text,
                                  size_t size)
{
    bool are_all = b->places->nhosts <= HVD__NEAR + 1;
    const struct hvd__neighbour *one = NULL;
    int n = 0;

    if (b->has_warned || b->age_ns < CONTACT_NS)
        return false;
    b->has_warned = true;
    for (int i = 0; i < b->nnear; i++) {
        const struct hvd__neighbour *near = &b->near[i];

        if (near->was_heard || hvd__heartbeat_listener(b, near) < 0)
            continue;
        one = near;
        n++;
    }
    if (one)
        snprintf(text, size,
                 "%d of %d %s hosts (%s%s) cannot be watched from here: "
                 "nothing was heard from there; let UDP through between hosts",
                 n, are_all ? b->places->nhosts - 1 : b->nnear,
                 are_all ? "other" : "neighbouring", b->hosts[one->host].name,
                 n > 1 ? ", ..." : "");
    return one != NULL;
}
