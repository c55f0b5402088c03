/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beacon.c - whom to write to, what letters change, who is lost.
 *
 *     host A                          host B
 *     rank 0 ──letters──────────────► rank 2 ──┐ writes lines 0 and 1 of
 *     rank 1    news of 0 and 1       rank 3   │ B's board, where 3 finds
 *                                      board ◄─┘ them too
 *
 * Why datagrams: a host that is frozen, or whose network is gone, must not
 * hold up who writes to it, and a lost letter is made up for by the next.
 * Among several hosts each speaker writes to each: with H hosts, H - 1
 * letters twice a second.
 *
 * Where to. A host's card has all of its addresses. Until it was heard from,
 * a letter goes to all of them; from then on to where it was last heard from,
 * and there to the rank that spoke last, or the lowest that is still there.
 *
 * Who is lost. A host that was heard from, and then is silent for a whole
 * heartbeat. How the ranks of a host are that still speaks is for that host
 * to judge. But the last rank of a host that dies has nobody there to say so:
 * its host's kernel does, which refuses letters to its port (post.h). To
 * be refused twice, and to hear nothing in between, is to be lost.
 *
 * What to believe. A letter counts if its seal is right for the key of this
 * world, which rank 0 has drawn and MPI has carried, if its number is new,
 * and if its items are of the writer's own host. A filter in the kernel drops
 * what is obviously foreign before it fills the queue.
 *
 * IPv4 only: hosts that have no such address are not watched by others.
 */
#include "watch/beacon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "watch/letter.h"
#include "watch/post.h"
#include "watch/seal.h"

/* Letters taken in before the watchdog looks at something else. */
enum { MOST_AT_ONCE = 256 };
/* Requests of a rank that are told in full: a stall names one that is
 * similar, no more. */
enum { MOST_REQUESTS = 8 };
enum { REFUSALS_OF_THE_DEAD = 2 };
#define DEAF_NS INT64_C(5000000000)

struct host {
    char name[64];
    int first;        /* its lowest rank */
    bool is_linked;   /* all of its ranks have a socket and a watchdog */
    bool was_heard;   /* at least once */
    int refusals;     /* in a row, of different words, nothing heard between */
    uint64_t refused; /* which of our words last */
    int speaker;      /* the rank that was last heard */
    int64_t silent_ns;
    int32_t naddresses;
    uint32_t addresses[HVD__BEACON_ADDRESSES];
};

struct member {
    int port;
    uint64_t beats; /* when time was last counted */
};

struct hvd__beacon {
    int fd; /* owned */
    int rank, nranks;
    int nhosts;
    struct host *hosts;       /* owned, [nhosts] */
    int *host_of;             /* owned, [nranks] */
    struct member *members;   /* owned, [nranks] */
    struct hvd__board *board; /* borrowed; NULL: not started */
    uint64_t key[2];
    uint32_t world;
    uint64_t number; /* of the last letter */
    uint64_t nwords; /* how often this rank has spoken for its host */
    int64_t age_ns;
    bool has_said_deaf;
    struct hvd__letter letter;    /* being written, or read */
    struct hvd__in_flight flight; /* scratch */
};

/* ------------------------------------------------------------------ opening */

static int host_index(const struct hvd__beacon *b,
                      const char *(*host)(const void *, int),
                      const void *context, int rank)
{
    for (int h = 0; h < b->nhosts; h++)
        if (strcmp(host(context, b->hosts[h].first), host(context, rank)) == 0)
            return h;
    return -1;
}

/* Ranks, by host. */
static int place(struct hvd__beacon *b, const char *(*host)(const void *, int),
                 const void *context)
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
            b->hosts[h] = (struct host){
                .first = rank, .speaker = rank, .is_linked = true};
            snprintf(b->hosts[h].name, sizeof b->hosts[h].name, "%.*s",
                     (int)strcspn(name, " "), name);
        }
        b->host_of[rank] = h;
    }
    return HVD_OK;
}

static int open_socket(struct hvd__beacon *b, struct hvd__beacon_card *card)
{
    b->fd = hvd__post_open(card->addresses, HVD__BEACON_ADDRESSES,
                           &card->naddresses, &card->port);
    if (b->fd < 0)
        return b->fd;
    if (getrandom(card->key, sizeof card->key, 0) != sizeof card->key)
        return hvd__fail(HVD_ERR_UNSUPPORTED, "getrandom: %s", strerror(errno));
    return HVD_OK;
}

int hvd__beacon_open(struct hvd__beacon **beacon, int rank, int nranks,
                     const char *(*host)(const void *context, int rank),
                     const void *context, struct hvd__beacon_card *card)
{
    struct hvd__beacon *b = calloc(1, sizeof *b);
    int status;

    *beacon = NULL;
    *card = (struct hvd__beacon_card){0};
    if (!b)
        return hvd__fail_memory(sizeof *b);
    b->fd = -1;
    b->rank = rank;
    b->nranks = nranks;
    status = place(b, host, context);
    if (status == HVD_OK && b->nhosts > 1) {
        if (open_socket(b, card) == HVD_OK) {
            *beacon = b;
            return HVD_OK;
        }
        *card = (struct hvd__beacon_card){0};
        hvd__log(HVD__LOG_WARNING,
                 "this host and the others do not watch each other: %s",
                 hvd_last_error());
    }
    hvd__beacon_close(b);
    return status;
}

void hvd__beacon_introduce(struct hvd__beacon *b, int rank,
                           const struct hvd__beacon_card *card,
                           bool is_watching)
{
    struct host *host = &b->hosts[b->host_of[rank]];

    if (card->port != 0 && b->key[0] == 0 && b->key[1] == 0)
        memcpy(b->key, card->key, sizeof b->key);
    if (rank == host->first) {
        memcpy(host->addresses, card->addresses, sizeof host->addresses);
        host->naddresses = card->naddresses;
    }
    b->members[rank].port = card->port;
    host->is_linked &= is_watching && card->port != 0;
}

void hvd__beacon_start(struct hvd__beacon *b, struct hvd__board *board)
{
    b->board = board;
    /* It travels in the open: made from the key, it does not give it away. */
    b->world = (uint32_t)hvd__seal(b->key, "world", 5);
    hvd__post_filter(b->fd, HVD__LETTER_MAGIC, b->world);
}

void hvd__beacon_close(struct hvd__beacon *b)
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

int hvd__beacon_fd(const struct hvd__beacon *b)
{
    return b->fd;
}

const char *hvd__beacon_host(const struct hvd__beacon *b, int rank)
{
    return b->hosts[b->host_of[rank]].name;
}

/* --------------------------------------------------------------------- who */

static struct hvd__line *line_of(const struct hvd__beacon *b, int rank)
{
    return &b->board->lines[rank];
}

static bool has_left(const struct hvd__beacon *b, int rank)
{
    return atomic_load(&line_of(b, rank)->state) == HVD__LINE_LEFT;
}

static bool is_ours(const struct hvd__beacon *b, int rank)
{
    return b->host_of[rank] == b->host_of[b->rank];
}

/* Whom to write to on a host; -1: all of its ranks have left. */
static int listener(const struct hvd__beacon *b, const struct host *host)
{
    if (!has_left(b, host->speaker))
        return host->speaker;
    for (int rank = host->first; rank < b->nranks; rank++)
        if (&b->hosts[b->host_of[rank]] == host && !has_left(b, rank))
            return rank;
    return -1;
}

/* Where a host was last heard; 0: never. */
static uint32_t address_of(const struct hvd__beacon *b, const struct host *host)
{
    return atomic_load(&line_of(b, host->speaker)->address);
}

/* ----------------------------------------------------------------- speaking */

static void deliver(const struct hvd__beacon *b, int rank)
{
    const struct host *host = &b->hosts[b->host_of[rank]];
    uint32_t known = address_of(b, host);
    const uint32_t *addresses = known ? &known : host->addresses;
    int32_t n = known ? 1 : host->naddresses;

    for (int32_t i = 0; i < n; i++)
        hvd__post_send(b->fd, addresses[i], b->members[rank].port,
                       b->letter.bytes, b->letter.size);
}

static void begin_letter(struct hvd__beacon *b)
{
    hvd__letter_begin(&b->letter, b->world, b->rank, ++b->number);
}

/* One to each host, if there is anything in it. */
static void send_letter(struct hvd__beacon *b)
{
    if (b->letter.size == HVD__LETTER_HEAD)
        return;
    hvd__letter_close(&b->letter, b->key);
    for (int h = 0; h < b->nhosts; h++) {
        const struct host *host = &b->hosts[h];
        int rank;

        if (h == b->host_of[b->rank] || !host->is_linked)
            continue;
        rank = listener(b, host);
        if (rank >= 0)
            deliver(b, rank);
    }
}

static void write_item(struct hvd__beacon *b, const struct hvd__item *item,
                       int64_t now)
{
    if (hvd__letter_add(&b->letter, item, now))
        return;
    send_letter(b);
    begin_letter(b);
    hvd__letter_add(&b->letter, item, now);
}

static void write_news(struct hvd__beacon *b, int rank, int64_t now)
{
    struct hvd__line *line = line_of(b, rank);
    struct hvd__item item = {.kind = HVD__ITEM_NEWS, .rank = rank};

    item.news.has_left = has_left(b, rank);
    item.news.pid = atomic_load(&line->pid);
    item.news.in_flight = atomic_load(&line->in_flight);
    item.news.silent_ns = atomic_load(&line->silent_ns);
    hvd__board_read_doing(line, &item.news.doing);
    write_item(b, &item, now);
}

static void write_flight(struct hvd__beacon *b, int rank, int64_t now)
{
    struct hvd__in_flight *f = &b->flight;
    struct hvd__item item = {.rank = rank};
    int32_t nrequests;

    hvd__board_read_flight(line_of(b, rank), f);
    item.kind = HVD__ITEM_KEYS;
    for (int32_t first = 0; first < f->nkeys; first += HVD__LETTER_KEYS) {
        int32_t left = f->nkeys - first;

        item.keys.total = f->nkeys;
        item.keys.first = first;
        item.keys.count = left < HVD__LETTER_KEYS ? left : HVD__LETTER_KEYS;
        memcpy(item.keys.keys, &f->keys[first],
               (size_t)item.keys.count * sizeof *f->keys);
        write_item(b, &item, now);
    }
    item.kind = HVD__ITEM_REQUEST;
    nrequests = f->nrequests < MOST_REQUESTS ? f->nrequests : MOST_REQUESTS;
    for (int32_t i = 0; i < nrequests; i++) {
        item.request.total = nrequests;
        item.request.index = i;
        item.request.is = f->requests[i];
        write_item(b, &item, now);
    }
}

void hvd__beacon_speak(struct hvd__beacon *b, bool detail)
{
    int64_t now = hvd__now_ns();

    b->nwords++;
    begin_letter(b);
    for (int rank = 0; rank < b->nranks; rank++) {
        const struct hvd__line *line = line_of(b, rank);

        if (!is_ours(b, rank) || atomic_load(&line->state) == HVD__LINE_EMPTY)
            continue;
        write_news(b, rank, now);
        if (detail && atomic_load(&line->in_flight) > 0)
            write_flight(b, rank, now);
    }
    send_letter(b);
}

void hvd__beacon_say_goodbye(struct hvd__beacon *b)
{
    /* Nobody would repeat it later: twice. */
    for (int i = 0; i < 2; i++) {
        begin_letter(b);
        write_news(b, b->rank, hvd__now_ns());
        send_letter(b);
    }
}

void hvd__beacon_say_end(struct hvd__beacon *b, int status, const char *text)
{
    struct hvd__item item = {.kind = HVD__ITEM_END, .rank = b->rank};

    item.end.status = status;
    snprintf(item.end.text, sizeof item.end.text, "%s", text);
    begin_letter(b);
    hvd__letter_add(&b->letter, &item, hvd__now_ns());
    hvd__letter_close(&b->letter, b->key);
    for (int rank = 0; rank < b->nranks; rank++)
        if (!is_ours(b, rank) && b->hosts[b->host_of[rank]].is_linked &&
            !has_left(b, rank))
            deliver(b, rank);
}

/* ------------------------------------------------------------------ hearing */

/* A refused letter to a host's speaker, at the address that is known to be
 * his, counts. */
static void refuse(struct hvd__beacon *b, uint32_t address, int port)
{
    for (int h = 0; h < b->nhosts; h++) {
        struct host *host = &b->hosts[h];

        if (h != b->host_of[b->rank] && host->is_linked && host->was_heard &&
            b->members[host->speaker].port == port &&
            address_of(b, host) == address && host->refused != b->nwords) {
            host->refused = b->nwords;
            host->refusals++;
        }
    }
}

static void hear_refusals(struct hvd__beacon *b)
{
    uint32_t address;
    int port;

    for (int i = 0; i < MOST_AT_ONCE; i++)
        if (hvd__post_next_refusal(b->fd, &address, &port))
            refuse(b, address, port);
        else
            return;
}

/* Numbers of a writer grow: an old letter has nothing to say. Several ranks
 * of a host may get letters of the same writer. */
static bool is_new(struct hvd__line *line, uint64_t number)
{
    uint64_t last = atomic_load(&line->letter);

    while (number > last)
        if (atomic_compare_exchange_weak(&line->letter, &last, number))
            return true;
    return false;
}

static void note_news(struct hvd__line *line, const struct hvd__item *item)
{
    atomic_store(&line->pid, item->news.pid);
    atomic_store(&line->silent_ns, item->news.silent_ns);
    atomic_store(&line->in_flight, item->news.in_flight);
    hvd__board_write_doing(line, &item->news.doing);
    /* Who has left does not come back. */
    if (atomic_load(&line->state) != HVD__LINE_LEFT)
        atomic_store(&line->state,
                     item->news.has_left ? HVD__LINE_LEFT : HVD__LINE_ALIVE);
}

static void note_flight(struct hvd__beacon *b, struct hvd__line *line,
                        const struct hvd__item *item)
{
    struct hvd__in_flight *f = &b->flight;

    hvd__board_read_flight(line, f);
    if (item->kind == HVD__ITEM_KEYS) {
        f->nkeys = item->keys.total;
        memcpy(&f->keys[item->keys.first], item->keys.keys,
               (size_t)item->keys.count * sizeof *f->keys);
    } else {
        f->nrequests = item->request.total;
        f->requests[item->request.index] = item->request.is;
    }
    hvd__board_write_flight(line, f);
}

/* The letter that has just been opened. True: it tells of the end. */
static bool take(struct hvd__beacon *b, uint32_t address, int *status,
                 char *text, size_t size)
{
    int from = b->letter.from;
    int64_t now = hvd__now_ns();
    struct hvd__item item;

    if (from < 0 || from >= b->nranks || is_ours(b, from) ||
        !b->hosts[b->host_of[from]].is_linked ||
        !is_new(line_of(b, from), b->letter.number))
        return false;
    atomic_store(&line_of(b, from)->address, address);
    b->hosts[b->host_of[from]].refusals = 0;
    while (hvd__letter_next(&b->letter, &item, now)) {
        if (item.kind == HVD__ITEM_END) {
            *status = item.end.status;
            snprintf(text, size, "%s", item.end.text);
            return true;
        }
        if (item.rank < 0 || item.rank >= b->nranks ||
            b->host_of[item.rank] != b->host_of[from])
            break;
        if (item.kind == HVD__ITEM_NEWS)
            note_news(line_of(b, item.rank), &item);
        else
            note_flight(b, line_of(b, item.rank), &item);
    }
    atomic_fetch_add(&line_of(b, from)->beats, 1);
    return false;
}

bool hvd__beacon_hear(struct hvd__beacon *b, int *status, char *text,
                      size_t size)
{
    hear_refusals(b);
    for (int i = 0; i < MOST_AT_ONCE; i++) {
        uint32_t address;
        int bytes = hvd__post_receive(b->fd, b->letter.bytes,
                                      sizeof b->letter.bytes, &address);

        if (bytes < 0)
            return false;
        if (hvd__letter_open(&b->letter, (size_t)bytes, b->world, b->key) &&
            take(b, address, status, text, size))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------ judging */

void hvd__beacon_count(struct hvd__beacon *b, int64_t passed_ns)
{
    b->age_ns += passed_ns;
    for (int h = 0; h < b->nhosts; h++)
        b->hosts[h].silent_ns += passed_ns;
    for (int rank = 0; rank < b->nranks; rank++) {
        struct host *host = &b->hosts[b->host_of[rank]];
        uint64_t beats = atomic_load(&line_of(b, rank)->beats);

        if (is_ours(b, rank) || beats == b->members[rank].beats)
            continue;
        b->members[rank].beats = beats;
        host->was_heard = true;
        host->speaker = rank;
        host->silent_ns = 0;
        host->refusals = 0;
    }
}

bool hvd__beacon_doubts(const struct hvd__beacon *b)
{
    for (int h = 0; h < b->nhosts; h++)
        if (b->hosts[h].refusals > 0)
            return true;
    return false;
}

static void describe(const struct hvd__beacon *b, const struct host *host,
                     char *how, size_t size)
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

bool hvd__beacon_has_lost(const struct hvd__beacon *b, int64_t limit_ns,
                          int *rank, char *how, size_t size)
{
    for (int h = 0; h < b->nhosts; h++) {
        const struct host *host = &b->hosts[h];

        if (h == b->host_of[b->rank] || !host->was_heard)
            continue;
        *rank = listener(b, host);
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

bool hvd__beacon_is_deaf(struct hvd__beacon *b, char *text, size_t size)
{
    const struct host *one = NULL;
    int n = 0;

    if (b->has_said_deaf || b->age_ns < DEAF_NS)
        return false;
    b->has_said_deaf = true;
    for (int h = 0; h < b->nhosts; h++) {
        const struct host *host = &b->hosts[h];

        if (h == b->host_of[b->rank] || !host->is_linked || host->was_heard ||
            listener(b, host) < 0)
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

void hvd__beacon_view(const struct hvd__beacon *b, int64_t silent_limit_ns,
                      struct hvd__view *views)
{
    for (int rank = 0; rank < b->nranks; rank++) {
        const struct hvd__line *line = line_of(b, rank);
        struct hvd__view *v = &views[rank];
        int32_t state = atomic_load(&line->state);

        if (is_ours(b, rank) || state == HVD__LINE_EMPTY)
            continue;
        v->silent_ns = atomic_load(&line->silent_ns) +
                       b->hosts[b->host_of[rank]].silent_ns;
        v->state = state == HVD__LINE_LEFT          ? HVD__VIEW_LEFT
                   : v->silent_ns > silent_limit_ns ? HVD__VIEW_SILENT
                                                    : HVD__VIEW_ALIVE;
    }
}
