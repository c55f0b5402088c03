/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_offer.c - combines the offers of up to 17 hosts, with one to four
 * members each, as rounds do. Messages pass between the hosts by a plan of this
 * file's own: hosts beyond a power of two fold into their neighbours, the
 * others exchange at distance 1, 2, 4, ... and every message covers what its
 * sender's offer covers.
 */
#include <stdlib.h>
#include <string.h>

#include "core/agree/offer.h"
#include "core/agree/ordered.h"
#include "suite.h"

enum { MOST_HOSTS = 17, MOST_MEMBERS = 4 * MOST_HOSTS, SLOTS = 24 };

/* Asserting costs a system call even where nothing is wrong. */
#define MUST(condition)                                                        \
    do {                                                                       \
        if (!(condition))                                                      \
            ck_abort_msg("not so: %s", #condition);                            \
    } while (0)

static uint64_t seed;

static int any(int below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((seed >> 33) % (uint64_t)below);
}

/* ---------------------------------------------------------------- the hosts */

static struct hvd__submission submissions[HVD__OFFER_SLOTS + 1];
static struct hvd__request requests[HVD__OFFER_SLOTS + 1];
static enum hvd__way ways[HVD__OFFER_SLOTS + 1];
static int roots[HVD__OFFER_SLOTS + 1];

static int nhosts, nmembers;
static int host_of[MOST_MEMBERS];
static struct hvd__hosts *hosts[MOST_HOSTS];
static struct hvd__offer offers[MOST_HOSTS];
static unsigned char messages[MOST_HOSTS][HVD__OFFER_BYTES];

/* Members of a host need not follow one another. */
static void make_hosts(int n)
{
    nhosts = n;
    nmembers = 0;
    for (int host = 0; host < n; host++)
        host_of[nmembers++] = host;
    for (int host = 0; host < n; host++)
        for (int more = any(4); more > 0; more--)
            host_of[nmembers++] = host;
    for (int host = 0; host < n; host++) {
        hosts[host] = hvd__hosts_new(nmembers, host, host_of);
        MUST(hosts[host]);
        MUST(hosts[host]->own == host);
    }
}

static void free_hosts(void)
{
    for (int host = 0; host < nhosts; host++)
        hvd__hosts_free(hosts[host]);
}

static void make_request(int i, enum hvd__way way, hvd_dtype dtype,
                         int64_t count, size_t bytes)
{
    submissions[i] = (struct hvd__submission){
        .key = 1000 + (uint64_t)i,
        .fingerprint = 7 * (uint64_t)i,
    };
    requests[i] = (struct hvd__request){
        .submission = &submissions[i],
        .count = count,
        .rows = count,
        .bytes = bytes,
        .signature = {.kind = HVD_ALLREDUCE,
                      .dtype = dtype,
                      .op = HVD_SUM,
                      .prescale = 1,
                      .postscale = 1},
    };
    ways[i] = way;
    roots[i] = way == HVD__WAY_ROOT ? any(nhosts) : -1;
}

/* What a member has for a slot: no two have the same. */
static unsigned char byte_of(int member, int slot, size_t k)
{
    return (unsigned char)(member * 31 + slot * 7 + (int)k * 3 + 1);
}

static int64_t number_of(int member, int slot)
{
    return (int64_t)member * 1000003 + slot;
}

static bool is_exchange(enum hvd__way way)
{
    return way == HVD__WAY_EACH || way == HVD__WAY_SPLITS;
}

static bool is_sum(enum hvd__way way)
{
    return way == HVD__WAY_SUM || way == HVD__WAY_SHARES;
}

/* Sums have an element or more for each member, which it alone makes 1: so the
 * result shows who was counted how often. */
static void write_data(int host, int i)
{
    struct hvd__offer *offer = &offers[host];
    const struct hvd__offer_slot *slot = &offer->slots[i];
    unsigned char *data = offer->data + slot->at;
    const struct hvd__hosts *h = hosts[host];

    if (is_sum(slot->way))
        memset(data, 0, slot->bytes);
    for (int place = h->first[host]; place < h->first[host + 1]; place++) {
        int member = h->members[place];
        unsigned char *own = offer->data + hvd__offer_member(slot, h, place);
        int64_t number = number_of(member, i);

        if (is_exchange(slot->way))
            for (size_t k = 0; k < slot->bytes / (size_t)nmembers; k++)
                own[k] = byte_of(member, i, k);
        for (int64_t k = member; is_sum(slot->way) && k < requests[i].count;
             k += nmembers)
            memcpy(data + sizeof number * (size_t)k, &(int64_t){1},
                   sizeof number);
        if (slot->way == HVD__WAY_ROWS)
            memcpy(own, &number, sizeof number);
        else if (slot->way == HVD__WAY_ALL)
            for (size_t k = 0; k < requests[i].bytes; k++)
                own[k] = byte_of(member, i, k);
    }
    if (slot->way == HVD__WAY_ROOT && slot->root == host)
        for (size_t k = 0; k < slot->bytes; k++)
            data[k] = byte_of(1000 + host, i, k);
}

static void begin(int host)
{
    memset(&offers[host], 0xa5, sizeof offers[host]);
    hvd__offer_begin(&offers[host], hosts[host], 5, 3);
    offers[host].values.threshold = 100 + (uint64_t)host;
    offers[host].values.direct_max = 200 + (uint64_t)host;
}

static void offer_slots(int host, int n)
{
    begin(host);
    for (int i = 0; i < n; i++) {
        MUST(hvd__offer_add(&offers[host], &requests[i], ways[i], roots[i]));
        write_data(host, i);
    }
}

/* ----------------------------------------------------------------- the plan */

static void write_message(int host, int to, int modulus)
{
    const struct hvd__offer_peer peer = {.host = to, .modulus = modulus};
    size_t bytes = hvd__offer_write(&offers[host], &peer, messages[host]);

    MUST(bytes <= HVD__OFFER_BYTES);
    memset(messages[host] + bytes, 0x5a, HVD__OFFER_BYTES - bytes);
}

static void take(int host, int from, int first, int end, int modulus)
{
    const struct hvd__offer_peer peer = {from, first, end, modulus};

    if (!hvd__offer_take(&offers[host], messages[from], &peer))
        ck_abort_msg("%d hosts: host %d refused the offer of host %d", nhosts,
                     host, from);
}

static void exchange_all(void)
{
    int power = 1, r, first[MOST_HOSTS], end[MOST_HOSTS], host[MOST_HOSTS];

    while (2 * power <= nhosts)
        power *= 2;
    r = nhosts - power;
    for (int i = 0; i < power; i++) {
        host[i] = i < r ? 2 * i + 1 : i + r;
        if (i >= r)
            continue;
        write_message(2 * i, 2 * i + 1, 1);
        take(2 * i + 1, 2 * i, 2 * i, 2 * i + 1, 1);
    }
    for (int distance = 1; distance < power; distance *= 2) {
        for (int i = 0; i < power; i++) {
            write_message(host[i], host[i ^ distance], 2 * distance);
            first[i] = offers[host[i]].first;
            end[i] = offers[host[i]].end;
        }
        for (int i = 0; i < power; i++)
            take(host[i], host[i ^ distance], first[i ^ distance],
                 end[i ^ distance], 2 * distance);
    }
    for (int i = 0; i < r; i++) {
        write_message(2 * i + 1, 2 * i, 0);
        take(2 * i, 2 * i + 1, 0, nhosts, 0);
    }
}

/* --------------------------------------------------------------- the result */

/* Blocks from all members to those of the host. */
static void check_blocks(int host, int i)
{
    static unsigned char result[HVD__OFFER_DATA];
    const struct hvd__offer_slot *slot = &offers[host].slots[i];
    const struct hvd__hosts *h = hosts[host];
    size_t block = slot->bytes / (size_t)(nmembers * nmembers);
    const unsigned char *at = result;

    hvd__offer_result(&offers[host], slot, result);
    for (int from = 0; from < nmembers; from++)
        for (int to = h->first[host]; to < h->first[host + 1]; to++)
            for (size_t k = 0; k < block; k++)
                if (*at++ != byte_of(h->members[from], i,
                                     (size_t)h->members[to] * block + k))
                    ck_abort_msg("%d hosts, slot %d: a wrong byte from member "
                                 "%d to %d",
                                 nhosts, i, h->members[from], h->members[to]);
    MUST((size_t)(at - result) ==
         hvd__way_result_bytes(slot->way, slot->request, h));
}

/* The shares of the members of the host: as many elements as they are slices
 * of, each counted once. */
static void check_shares(int host, int i)
{
    static int64_t result[HVD__OFFER_DATA / sizeof(int64_t)];
    const struct hvd__offer_slot *slot = &offers[host].slots[i];
    const struct hvd__hosts *h = hosts[host];
    size_t n = 0;

    hvd__offer_result(&offers[host], slot, (unsigned char *)result);
    for (int local = 0; local < hvd__hosts_size(h, host); local++) {
        int member = h->members[h->first[host] + local];
        size_t count = (size_t)(requests[i].count / nmembers);

        MUST(hvd__way_share_at(&requests[i], h, local) == n * sizeof *result);
        n += count + (member < requests[i].count % nmembers);
    }
    MUST(hvd__way_result_bytes(slot->way, slot->request, h) ==
         n * sizeof *result);
    for (size_t k = 0; k < n; k++)
        MUST(result[k] == 1);
}

static void check_slot(int host, int i)
{
    const struct hvd__offer *offer = &offers[host];
    const struct hvd__offer_slot *slot = &offer->slots[i];
    const unsigned char *data = offer->data + slot->at;

    MUST(slot->way == ways[i]);
    if (is_exchange(slot->way))
        check_blocks(host, i);
    if (slot->way == HVD__WAY_SHARES)
        check_shares(host, i);
    if (slot->way == HVD__WAY_ROOT)
        for (size_t k = 0; k < slot->bytes; k++)
            MUST(data[k] == byte_of(1000 + roots[i], i, k));
    if (slot->way == HVD__WAY_SUM)
        for (int64_t k = 0; k < requests[i].count; k++) {
            int64_t times;

            memcpy(&times, data + sizeof times * (size_t)k, sizeof times);
            if (times != 1)
                ck_abort_msg("%d hosts, host %d: member %d counted %d times",
                             nhosts, host, (int)k, (int)times);
        }
    for (int place = 0; place < nmembers; place++) {
        int member = hosts[host]->members[place];
        const unsigned char *own =
            offer->data + hvd__offer_member(slot, hosts[host], place);

        if (slot->way == HVD__WAY_ALL)
            for (size_t k = 0; k < requests[i].bytes; k++)
                MUST(own[k] == byte_of(member, i, k));
        if (slot->way == HVD__WAY_ROWS)
            MUST(memcmp(own, &(int64_t){number_of(member, i)},
                        sizeof(int64_t)) == 0);
    }
}

static void check_results(int n, uint32_t flags)
{
    for (int host = 0; host < nhosts; host++) {
        const struct hvd__offer *offer = &offers[host];

        if (offer->n != n)
            ck_abort_msg("%d hosts: host %d has %d slots, not %d", nhosts, host,
                         offer->n, n);
        MUST(offer->flags == flags);
        MUST(offer->first == 0);
        MUST(offer->end == nhosts);
        MUST(offer->values.threshold == 100);
        MUST(offer->values.direct_max == 200);
        for (int i = 0; i < n; i++)
            check_slot(host, i);
    }
}

static void make_requests(void)
{
    for (int i = 0; i < SLOTS; i++) {
        enum hvd__way way = (enum hvd__way)any(8);
        size_t bytes = (size_t)any(any(2) ? 9 : 30);
        int64_t count = nmembers;

        if (way == HVD__WAY_HALVES) { /* core_round has these */
            way = HVD__WAY_SHARES;
            count = any(3 * nmembers);
        }
        if (way == HVD__WAY_EACH)
            bytes = bytes % 4 * (size_t)nmembers;

        if (is_sum(way))
            make_request(i, way, HVD_INT64, count,
                         (size_t)count * sizeof(int64_t));
        else
            make_request(i, way, HVD_UINT8, (int64_t)bytes, bytes);
    }
}

/* ---------------------------------------------------------------- the tests */

LOOP_TEST(all_data_arrives_once_and_in_its_place, 2, MOST_HOSTS + 1)
{
    seed = (uint64_t)_i;
    for (int times = 0; times < 8; times++) {
        make_hosts(_i);
        make_requests();
        for (int host = 0; host < nhosts; host++)
            offer_slots(host, SLOTS);
        exchange_all();
        check_results(SLOTS, 0);
        free_hosts();
    }
}

LOOP_TEST(a_shorter_prefix_is_no_conflict, 2, MOST_HOSTS + 1)
{
    seed = (uint64_t)_i;
    for (int times = 0; times < 16; times++) {
        int least = SLOTS;

        make_hosts(_i);
        make_requests();
        for (int host = 0; host < nhosts; host++) {
            int n = any(SLOTS + 1);

            offer_slots(host, n);
            least = n < least ? n : least;
        }
        exchange_all();
        check_results(least, 0);
        free_hosts();
    }
}

/* One host has something else at a slot that all have: another key, or the same
 * key with another fingerprint. */
LOOP_TEST(a_slot_that_differs_is_a_conflict, 2, MOST_HOSTS + 1)
{
    seed = (uint64_t)_i;
    for (int times = 0; times < 16; times++) {
        int at = any(SLOTS), odd = any(_i);
        struct hvd__offer_slot *slot;

        make_hosts(_i);
        make_requests();
        for (int host = 0; host < nhosts; host++)
            offer_slots(host, at + 1 + any(SLOTS - at));
        slot = &offers[odd].slots[at];
        *(any(2) ? &slot->key : &slot->fingerprint) ^= 1;
        exchange_all();
        check_results(at, HVD__OFFER_CONFLICT);
        free_hosts();
    }
}

/* A host whose own members differ behind its last slot says so. That counts
 * only if no prefix is shorter. */
LOOP_TEST(conflicts_that_hosts_know_of_count_at_the_end, 2, MOST_HOSTS + 1)
{
    seed = (uint64_t)_i;
    for (int times = 0; times < 16; times++) {
        int least = SLOTS + 1;
        uint32_t flags = 0;

        make_hosts(_i);
        make_requests();
        for (int host = 0; host < nhosts; host++) {
            int n = SLOTS - any(4);

            offer_slots(host, n);
            offers[host].flags = any(3) ? 0 : HVD__OFFER_CONFLICT;
            if (n < least)
                flags = 0;
            if (n <= least)
                flags |= offers[host].flags;
            least = n < least ? n : least;
        }
        exchange_all();
        check_results(least, flags);
        free_hosts();
    }
}

/* Whatever hosts offer, all get the same, and a conflict is no invention. */
LOOP_TEST(all_get_the_same, 2, MOST_HOSTS + 1)
{
    seed = (uint64_t)_i;
    for (int times = 0; times < 64; times++) {
        int n[MOST_HOSTS], common = SLOTS;
        bool differs = false;

        make_hosts(_i);
        make_requests();
        for (int host = 0; host < nhosts; host++) {
            offer_slots(host, n[host] = any(SLOTS + 1));
            common = n[host] < common ? n[host] : common;
            if (n[host] > 0 && any(4) == 0)
                offers[host].slots[any(n[host])].key ^= UINT64_C(1)
                                                        << (8 + any(2));
        }
        for (int i = 0; i < common; i++)
            for (int host = 1; host < nhosts; host++)
                if (offers[host].slots[i].key != offers[0].slots[i].key)
                    common = i;
        for (int a = 0; a < nhosts; a++)
            for (int b = 0; b < a; b++)
                differs |=
                    n[a] > common && n[b] > common &&
                    offers[a].slots[common].key != offers[b].slots[common].key;
        exchange_all();
        if (!differs)
            MUST(offers[0].flags == 0);
        check_results(common, offers[0].flags);
        free_hosts();
    }
}

LOOP_TEST(what_is_said_of_an_epoch_reaches_all, 2, MOST_HOSTS + 1)
{
    seed = (uint64_t)_i;
    for (int times = 0; times < 32; times++) {
        uint32_t flags = HVD__OFFER_OPENS;

        make_hosts(_i);
        for (int host = 0; host < nhosts; host++) {
            begin(host);
            offers[host].flags = HVD__OFFER_OPENS;
            if (any(nhosts) == 0)
                offers[host].flags |= HVD__OFFER_REFUSED;
            if (any(nhosts) == 0)
                offers[host].flags |= HVD__OFFER_IMPOSSIBLE;
            flags |= offers[host].flags;
        }
        exchange_all();
        check_results(0, flags);
        free_hosts();
    }
}

/* The order of sums of floating-point numbers matters: all hosts have the same
 * one. */
LOOP_TEST(sums_have_the_same_bits, 2, MOST_HOSTS + 1)
{
    enum { COUNT = 1000 };

    seed = (uint64_t)_i;
    make_hosts(_i);
    make_request(0, HVD__WAY_SUM, HVD_FLOAT32, COUNT, COUNT * sizeof(float));
    for (int host = 0; host < nhosts; host++) {
        float values[COUNT];

        begin(host);
        MUST(hvd__offer_add(&offers[host], &requests[0], ways[0], -1));
        for (int k = 0; k < COUNT; k++)
            values[k] = (float)(any(2000001) - 1000000) / 7e3f;
        memcpy(offers[host].data, values, sizeof values);
    }
    exchange_all();
    for (int host = 1; host < nhosts; host++)
        ck_assert_mem_eq(offers[host].data, offers[0].data,
                         COUNT * sizeof(float));
    free_hosts();
}

LOOP_TEST(full_offers_fit_in_a_message, 2, MOST_HOSTS + 1)
{
    int n = 0;

    seed = (uint64_t)_i;
    make_hosts(_i);
    /* Small slots end by number, ... */
    for (int i = 0; i <= HVD__OFFER_SLOTS; i++)
        make_request(i, HVD__WAY_ALL, HVD_UINT8, 1, 1);
    for (int host = 0; host < nhosts; host++)
        offer_slots(host, nmembers <= 64 ? HVD__OFFER_SLOTS : 100);
    n = offers[0].n;
    if (n == HVD__OFFER_SLOTS)
        MUST(!hvd__offer_add(&offers[0], &requests[n], ways[n], -1));
    exchange_all();
    check_results(n, 0);
    /* ... one as large as can be fills all, ... */
    make_request(0, HVD__WAY_ROOT, HVD_UINT8, HVD__OFFER_RESULTS,
                 HVD__OFFER_RESULTS);
    for (int i = 1; i < HVD__OFFER_SLOTS; i++)
        make_request(i, HVD__WAY_NONE, HVD_UINT8, 1, 1);
    for (int host = 0; host < nhosts; host++)
        offer_slots(host, HVD__OFFER_SLOTS);
    exchange_all();
    check_results(HVD__OFFER_SLOTS, 0);
    /* ... others by bytes, ... */
    for (int i = 0; i < HVD__OFFER_SLOTS; i++)
        make_request(i, HVD__WAY_SUM, HVD_INT64, 512, 4096);
    for (int host = 0; host < nhosts; host++)
        offer_slots(host, HVD__OFFER_RESULTS / 4096);
    n = offers[0].n;
    MUST(!hvd__offer_add(&offers[0], &requests[n], ways[n], -1));
    MUST(offers[0].n == n);
    exchange_all();
    check_results(n, 0);
    /* ... what all get by the half of it that a message has at most, ... */
    for (int i = 0; i <= HVD__OFFER_SLOTS; i++)
        make_request(i, HVD__WAY_ALL, HVD_UINT8, 700, 700);
    for (int host = 0; host < nhosts; host++) {
        begin(host);
        for (n = 0; hvd__offer_add(&offers[host], &requests[n], ways[n], -1);
             n++)
            write_data(host, n);
    }
    MUST(n > 0);
    exchange_all();
    check_results(n, 0);
    /* ... and blocks by those of a message, or of all members. */
    for (int i = 0; i <= HVD__OFFER_SLOTS; i++)
        make_request(i, HVD__WAY_EACH, HVD_UINT8, 16 * nmembers,
                     16 * (size_t)nmembers);
    for (int host = 0; host < nhosts; host++) {
        begin(host);
        for (n = 0; hvd__offer_add(&offers[host], &requests[n], ways[n], -1);
             n++)
            write_data(host, n);
    }
    MUST(n > 0);
    exchange_all();
    check_results(n, 0);
    free_hosts();
}

TEST(only_the_first_broadcasts_of_a_round_go_with_it)
{
    enum { BYTES = 4096, FIT = (64 << 10) / BYTES };
    size_t of_two = 0, of_three = 0;

    make_hosts(2);
    for (int i = 0; i <= 2 * FIT; i++) {
        make_request(i, HVD__WAY_ROOT, HVD_UINT8, BYTES, BYTES);
        requests[i].way = HVD__WAY_ROOT;
        MUST(hvd__way_in_round(hosts[0], &requests[i], &of_two) ==
             HVD__WAY_ROOT);
    }
    free_hosts();
    make_hosts(3);
    for (int i = 0; i <= 2 * FIT; i++) {
        /* Every second request is a gather, which the limit does not count. */
        requests[i].way = i % 2 ? HVD__WAY_ALL : HVD__WAY_ROOT;
        MUST(hvd__way_in_round(hosts[0], &requests[i], &of_three) ==
             (i < 2 * FIT ? requests[i].way : HVD__WAY_NONE));
    }
    /* A smaller broadcast behind the limit stays behind it. */
    requests[0].bytes = 0;
    MUST(hvd__way_in_round(hosts[0], &requests[0], &of_three) == HVD__WAY_NONE);
    requests[1].way = HVD__WAY_SUM;
    MUST(hvd__way_in_round(hosts[0], &requests[1], &of_three) == HVD__WAY_SUM);
    free_hosts();
}

TEST_MAIN("core_offer", .seconds = 120)
