/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heartbeat.c - the hosts of a world, and which of them is lost. The watchdog
 * calls it; heartbeat_send.c and heartbeat_receive.c have the datagrams that go
 * between hosts.
 *
 * A host is lost if it was heard from and then is silent for a whole heartbeat
 * period. A host that still speaks judges its own ranks. When the last rank of
 * a host dies, nobody there can say so, but the kernel of that host does: it
 * refuses datagrams to the rank's port (socket.h). A host that refuses twice,
 * with nothing heard in between, is lost.
 *
 * Only IPv4 is used. A host without an IPv4 address is not watched by others.
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

/* ------------------------------------------------------------------ opening */

static int host_index(const struct hvd__heartbeat *b,
                      const char *(*host)(const void *, int),
                      const void *context, int rank)
{
    for (int h = 0; h < b->nhosts; h++)
        if (strcmp(host(context, b->hosts[h].first), host(context, rank)) == 0)
            return h;
    return -1;
}

/* Sorts the ranks by host. */
static int place(struct hvd__heartbeat *b,
                 const char *(*host)(const void *, int), const void *context)
{
    b->members = calloc((size_t)b->nranks, sizeof *b->members);
    b->hosts = calloc((size_t)b->nranks, sizeof *b->hosts);
    b->host_of = calloc((size_t)b->nranks, sizeof *b->host_of);
    if (!b->members || !b->hosts || !b->host_of)
        return hvd__fail_memory((size_t)b->nranks * sizeof *b->hosts);
    for (int rank = 0; rank < b->nranks; rank++) {
        int h = host_index(b, host, context, rank);

        if (h < 0) {
            const char *name = host(context, rank);

            h = b->nhosts++;
            b->hosts[h] = (struct hvd__neighbour){
                .first = rank, .speaker = rank, .is_linked = true};
            snprintf(b->hosts[h].name, sizeof b->hosts[h].name, "%.*s",
                     (int)strcspn(name, " "), name);
        }
        b->host_of[rank] = h;
    }
    return HVD_OK;
}

static int open_socket(struct hvd__heartbeat *b,
                       struct hvd__heartbeat_card *card)
{
    b->fd = hvd__socket_open(card->addresses, HVD__HEARTBEAT_ADDRESSES,
                             &card->naddresses, &card->port);
    if (b->fd < 0)
        return b->fd;
    if (getrandom(card->key, sizeof card->key, 0) != sizeof card->key)
        return hvd__fail(HVD_ERR_UNSUPPORTED, "getrandom: %s", strerror(errno));
    return HVD_OK;
}

int hvd__heartbeat_open(struct hvd__heartbeat **heartbeat, int rank, int nranks,
                        const char *(*host)(const void *context, int rank),
                        const void *context, struct hvd__heartbeat_card *card)
{
    struct hvd__heartbeat *b = calloc(1, sizeof *b);
    int status;

    *heartbeat = NULL;
    *card = (struct hvd__heartbeat_card){0};
    if (!b)
        return hvd__fail_memory(sizeof *b);
    b->fd = -1;
    b->rank = rank;
    b->nranks = nranks;
    status = place(b, host, context);
    if (status == HVD_OK && b->nhosts > 1) {
        if (open_socket(b, card) == HVD_OK) {
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
    struct hvd__neighbour *host = &b->hosts[b->host_of[rank]];

    if (card->port != 0 && b->key[0] == 0 && b->key[1] == 0)
        memcpy(b->key, card->key, sizeof b->key);
    if (rank == host->first) {
        memcpy(host->addresses, card->addresses, sizeof host->addresses);
        host->naddresses = card->naddresses;
    }
    b->members[rank].port = card->port;
    host->is_linked &= is_watching && card->port != 0;
}

void hvd__heartbeat_start(struct hvd__heartbeat *b, struct hvd__page *page)
{
    b->page = page;
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
    free(b->hosts);
    free(b->host_of);
    free(b->members);
    free(b);
}

int hvd__heartbeat_fd(const struct hvd__heartbeat *b)
{
    return b->fd;
}

const char *hvd__heartbeat_host(const struct hvd__heartbeat *b, int rank)
{
    return b->hosts[b->host_of[rank]].name;
}

/* ------------------------------------------------------------------ judging */

void hvd__heartbeat_advance(struct hvd__heartbeat *b, int64_t passed_ns)
{
    b->age_ns += passed_ns;
    for (int h = 0; h < b->nhosts; h++)
        b->hosts[h].silent_ns += passed_ns;
    for (int rank = 0; rank < b->nranks; rank++) {
        struct hvd__neighbour *host = &b->hosts[b->host_of[rank]];
        uint64_t beats = atomic_load(&hvd__heartbeat_line_of(b, rank)->beats);

        if (hvd__heartbeat_is_ours(b, rank) || beats == b->members[rank].beats)
            continue;
        b->members[rank].beats = beats;
        host->was_heard = true;
        host->speaker = rank;
        host->silent_ns = 0;
        host->refusals = 0;
    }
}

bool hvd__heartbeat_has_refusals(const struct hvd__heartbeat *b)
{
    for (int h = 0; h < b->nhosts; h++)
        if (b->hosts[h].refusals > 0)
            return true;
    return false;
}

static void describe(const struct hvd__heartbeat *b,
                     const struct hvd__neighbour *host, char *how, size_t size)
{
    struct hvd__text out = hvd__text_at(how, size);

    hvd__text_add(&out, "is silent, as is all of its host (");
    hvd__text_add_ranks(&out, NULL, b->host_of, b->nranks,
                        (int)(host - b->hosts));
    hvd__text_add(&out,
                  "), which is frozen, or cut off from here: no heartbeat for "
                  "%.1f s",
                  (double)host->silent_ns * 1e-9);
}

bool hvd__heartbeat_has_lost(const struct hvd__heartbeat *b, int64_t limit_ns,
                             int *rank, char *how, size_t size)
{
    for (int h = 0; h < b->nhosts; h++) {
        const struct hvd__neighbour *host = &b->hosts[h];

        if (h == b->host_of[b->rank] || !host->was_heard)
            continue;
        *rank = hvd__heartbeat_listener(b, host);
        if (*rank < 0)
            continue;
        if (*rank == host->speaker && host->refusals >= REFUSALS_OF_THE_DEAD) {
            snprintf(how, size, "is gone: its host refuses letters to it");
            return true;
        }
        if (limit_ns > 0 && host->silent_ns >= limit_ns) {
            describe(b, host, how, size);
            return true;
        }
    }
    return false;
}

bool hvd__heartbeat_lacks_contact(struct hvd__heartbeat *b, char *text,
                                  size_t size)
{
    const struct hvd__neighbour *one = NULL;
    int n = 0;

    if (b->has_warned || b->age_ns < CONTACT_NS)
        return false;
    b->has_warned = true;
    for (int h = 0; h < b->nhosts; h++) {
        const struct hvd__neighbour *host = &b->hosts[h];

        if (h == b->host_of[b->rank] || !host->is_linked || host->was_heard ||
            hvd__heartbeat_listener(b, host) < 0)
            continue;
        one = host;
        n++;
    }
    if (one)
        snprintf(text, size,
                 "%d of %d other hosts (%s%s) cannot be watched from here: "
                 "nothing was heard from there; let UDP through between hosts",
                 n, b->nhosts - 1, one->name, n > 1 ? ", ..." : "");
    return one != NULL;
}

void hvd__heartbeat_view(const struct hvd__heartbeat *b,
                         int64_t silent_limit_ns, struct hvd__view *views)
{
    for (int rank = 0; rank < b->nranks; rank++) {
        const struct hvd__line *line = hvd__heartbeat_line_of(b, rank);
        struct hvd__view *v = &views[rank];
        int32_t state = atomic_load(&line->state);

        if (hvd__heartbeat_is_ours(b, rank) || state == HVD__LINE_EMPTY)
            continue;
        v->silent_ns = atomic_load(&line->silent_ns) +
                       b->hosts[b->host_of[rank]].silent_ns;
        v->state = state == HVD__LINE_LEFT          ? HVD__VIEW_LEFT
                   : v->silent_ns > silent_limit_ns ? HVD__VIEW_SILENT
                                                    : HVD__VIEW_ALIVE;
    }
}
