/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offer.c - gives offers that no host would make to the reader of offers
 * (core/agree/offer.h): good ones are accepted; spoilt ones are refused or
 * leave an offer that is still well made. The message is as long as the buffer
 * of a round and the offer as its memory, so a sanitized build (make sanitize)
 * sees a byte read or written too far.
 */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/agree/offer.h"
#include "suite.h"

enum { HOSTS = 5, MEMBERS = 9, SLOTS = 40 };
static const int host_of[MEMBERS] = {0, 1, 2, 3, 4, 1, 1, 3, 4};

static struct hvd__submission submissions[SLOTS];
static struct hvd__request requests[SLOTS];
static enum hvd__way ways[SLOTS];
static int roots[SLOTS];
static struct hvd__hosts *hosts[HOSTS];
static uint64_t state;

static uint32_t any(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state * UINT64_C(0x2545f4914f6cdd1d)) >> 32) % below;
}

static void begin(void)
{
    state = 20221106;
    for (int host = 0; host < HOSTS; host++) {
        hosts[host] = hvd__hosts_new(MEMBERS, host, host_of);
        ck_assert_ptr_nonnull(hosts[host]);
    }
}

static void end(void)
{
    for (int host = 0; host < HOSTS; host++)
        hvd__hosts_free(hosts[host]);
}

static void make_requests(void)
{
    for (int i = 0; i < SLOTS; i++) {
        int64_t count = any(any(8) ? 30 : 200) * (any(4) ? 1 : MEMBERS);

        submissions[i].key = 1 + any(3);
        submissions[i].fingerprint = any(2);
        ways[i] = (enum hvd__way)any(7);
        roots[i] = ways[i] == HVD__WAY_ROOT ? (int)any(HOSTS) : -1;
        requests[i] = (struct hvd__request){
            .submission = &submissions[i],
            .count = count,
            .bytes = (size_t)count * sizeof(int32_t),
            .signature = {.kind = HVD_ALLREDUCE,
                          .dtype = HVD_INT32,
                          .op = any(2) ? HVD_SUM : HVD_AVERAGE,
                          .prescale = 1,
                          .postscale = 1},
        };
    }
}

/* Makes an offer of random slots; sums would overflow, were they not 0. */
static void make_offer(struct hvd__offer *offer, int host, bool opens)
{
    int n = opens ? 0 : (int)any(SLOTS + 1);

    hvd__offer_begin(offer, hosts[host], 9, 4);
    offer->flags = opens ? HVD__OFFER_OPENS : any(2) * HVD__OFFER_CONFLICT;
    while (offer->n < n && hvd__offer_add(offer, &requests[offer->n],
                                          ways[offer->n], roots[offer->n]))
        continue;
    memset(offer->data, 0, offer->data_bytes);
}

static void spoil(unsigned char *message, size_t bytes)
{
    static const int64_t extremes[] = {
        0,   1,       -1,        INT_MAX, INT_MIN,    255,      256,
        257, 0x10000, INT64_MAX, 1 << 28, 0x10000001, 62 << 10, (62 << 10) + 1};
    size_t reach = any(2) ? 56 : bytes, width = (size_t)1 << any(4);
    uint32_t most = (uint32_t)(HVD__OFFER_BYTES - bytes);
    uint32_t length;

    switch (any(8)) {
    case 0:
        message[any((uint32_t)reach)] ^= (unsigned char)(1 << any(8));
        break;
    case 1: message[any((uint32_t)reach)] = (unsigned char)any(256); break;
    case 2:
        memcpy(message + any((uint32_t)(reach - width + 1)),
               &extremes[any(sizeof extremes / sizeof *extremes)], width);
        break;
    case 3: /* another length, the first number of a message */
        length = any((uint32_t)bytes + 1);
        memcpy(message, &length, sizeof length);
        break;
    case 4:
        length = (uint32_t)bytes + any(most + 1000);
        memcpy(message, &length, sizeof length);
        break;
    case 5: /* another number of slots, the last of the head */
        length = any(300);
        memcpy(message + 44, &length, sizeof length);
        break;
    case 6:
        memmove(message + any((uint32_t)bytes), message + any((uint32_t)bytes),
                any(most) / 2);
        break;
    default:
        for (size_t i = any(2) ? 0 : 48; i < bytes; i++)
            message[i] = (unsigned char)any(256);
    }
}

static void check_offer(const struct hvd__offer *offer,
                        const struct hvd__offer *before, int first, int last)
{
    if (offer->n < 0 || offer->n > before->n || offer->flags > HVD__OFFER_ALL ||
        offer->hosts != before->hosts || offer->round != before->round ||
        offer->epoch != before->epoch ||
        (offer->flags & HVD__OFFER_OPENS) !=
            (before->flags & HVD__OFFER_OPENS) ||
        offer->first != first || offer->end != last)
        ck_abort_msg("an offer that cannot be");
}

TEST(an_offer_is_refused_or_remains_well_made)
{
    struct hvd__offer *from = malloc(sizeof *from);
    struct hvd__offer *offer = malloc(sizeof *offer);
    struct hvd__offer *before = malloc(sizeof *before);
    unsigned char *message = malloc(HVD__OFFER_BYTES);
    int n = getenv("HVD_TEST_FULL") ? 2000000 : 30000, accepted = 0;

    begin();
    for (int round = 0; round < n; round++) {
        int own = (int)any(HOSTS - 1), peer = own + 1;
        bool opens = any(10) == 0, replace = any(3) == 0;
        int modulus = replace ? 0 : 1 << any(3);
        struct hvd__offer_peer with;
        size_t bytes;

        if (any(2))
            own = peer--;
        make_requests();
        make_offer(from, peer, opens);
        if (replace) { /* the result of all hosts is a prefix */
            from->first = 0;
            from->end = HOSTS;
        }
        memset(message, (int)any(256), HVD__OFFER_BYTES);
        bytes = hvd__offer_write(
            from, &(struct hvd__offer_peer){.host = own, .modulus = modulus},
            message);
        with = (struct hvd__offer_peer){peer, from->first, from->end, modulus};
        make_offer(offer, own, opens);
        if (replace && offer->n < from->n)
            continue;
        memcpy(before, offer, offsetof(struct hvd__offer, data));
        if (any(8) == 0) {
            if (!hvd__offer_take(offer, message, &with))
                ck_abort_msg("round %d: a good offer was refused", round);
        } else {
            for (uint32_t times = 1 + any(3); times > 0; times--)
                spoil(message, bytes);
            if (!hvd__offer_take(offer, message, &with))
                continue;
            accepted++;
        }
        check_offer(offer, before, replace || peer < own ? from->first : own,
                    replace ? HOSTS : (peer < own ? own : peer) + 1);
        if (memcmp(offer->slots, before->slots,
                   (size_t)before->n * sizeof *before->slots) != 0)
            ck_abort_msg("round %d: the slots have changed", round);
    }
    /* Spoilt data is still valid, so some messages must be accepted. */
    ck_assert_int_gt(accepted, n / 20);
    ck_assert_int_lt(accepted, n / 10 * 9);
    end();
    free(message);
    free(before);
    free(offer);
    free(from);
}

/* Gives the offer a message of which one thing is different. */
static bool takes_other(uint64_t number, uint32_t epoch, uint32_t flags)
{
    const struct hvd__offer_peer one = {1, 1, 2, 2}, all = {1, 0, HOSTS, 0};
    struct hvd__offer *from = malloc(sizeof *from);
    struct hvd__offer *offer = malloc(sizeof *offer);
    unsigned char *message = malloc(HVD__OFFER_BYTES);
    bool taken;

    hvd__offer_begin(from, hosts[1], number, epoch);
    from->flags = flags;
    hvd__offer_write(from, &(struct hvd__offer_peer){.modulus = 2}, message);
    hvd__offer_begin(offer, hosts[0], 9, 4);
    taken = hvd__offer_take(offer, message, &one);
    hvd__offer_begin(offer, hosts[0], 9, 4);
    ck_assert_int_eq(taken, hvd__offer_take(offer, message, &all));
    free(message);
    free(offer);
    free(from);
    return taken;
}

/* Returns whether a host accepts that these hosts send blocks beside the round,
 * from a host that speaks for itself, or in the result of all. */
static bool takes_straight(uint64_t hosts_that_send, bool alone, bool is_result)
{
    static const int own_hosts[HOSTS] = {0, 1, 2, 3, 4};
    struct hvd__offer_peer peer = {1, 1, 2, 2};
    struct hvd__hosts *two[2];
    struct hvd__offer *from = malloc(sizeof *from);
    struct hvd__offer *offer = malloc(sizeof *offer);
    unsigned char *message = malloc(HVD__OFFER_BYTES);
    bool taken;

    for (int i = 0; i < 2; i++)
        two[i] = alone ? hvd__hosts_new(HOSTS, i, own_hosts)
                       : hvd__hosts_new(MEMBERS, i, host_of);
    if (is_result)
        peer = (struct hvd__offer_peer){1, 0, HOSTS, 0};
    hvd__offer_begin(from, two[1], 9, 4);
    from->straight = hosts_that_send;
    hvd__offer_write(from, &(struct hvd__offer_peer){.modulus = peer.modulus},
                     message);
    hvd__offer_begin(offer, two[0], 9, 4);
    taken = hvd__offer_take(offer, message, &peer);
    if (taken)
        ck_assert_uint_eq(offer->straight, hosts_that_send);
    for (int i = 0; i < 2; i++)
        hvd__hosts_free(two[i]);
    free(message);
    free(offer);
    free(from);
    return taken;
}

TEST(only_hosts_that_are_spoken_for_send_blocks)
{
    ck_assert(takes_straight(0, true, false));
    ck_assert(takes_straight(2, true, false));
    ck_assert(!takes_straight(1, true, false));
    ck_assert(!takes_straight(6, true, false));
    ck_assert(takes_straight(31, true, true));
    ck_assert(!takes_straight(32, true, true));
    ck_assert(!takes_straight(UINT64_C(1) << 63, true, true));
    ck_assert(takes_straight(0, false, false));
    ck_assert(!takes_straight(2, false, false));
}

TEST(what_does_not_belong_is_refused)
{
    begin();
    ck_assert(takes_other(9, 4, 0));
    ck_assert(takes_other(9, 4, HVD__OFFER_CONFLICT));
    ck_assert(!takes_other(8, 4, 0));
    ck_assert(!takes_other(10, 4, 0));
    ck_assert(!takes_other(UINT64_C(1) << 32 | 9, 4, 0));
    ck_assert(!takes_other(9, 3, 0));
    ck_assert(!takes_other(9, 5, 0));
    ck_assert(!takes_other(9, 4, HVD__OFFER_OPENS));
    ck_assert(!takes_other(9, 4, HVD__OFFER_ALL + 1));
    end();
}

TEST_MAIN("fuzz_offer", .seconds = 600)
