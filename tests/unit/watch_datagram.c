/* SPDX-License-Identifier: Apache-2.0 */
/* A datagram between hosts arrives as it was written; a forged or damaged one
 * is not accepted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"
#include "watch/datagram.h"
#include "watch/mac.h"

enum { WORLD = 77, WRITER = 5 };
#define NOW INT64_C(500000000000)

static const uint64_t key[2] = {UINT64_C(0x0123456789abcdef), 42};
static struct hvd__datagram datagram;
static struct hvd__datagram_item item, back;

/* The test vector of the appendix of the paper on SipHash. */
TEST(macs_are_siphash)
{
    const uint64_t paper[2] = {UINT64_C(0x0706050403020100),
                               UINT64_C(0x0f0e0d0c0b0a0908)};
    unsigned char bytes[15];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    ck_assert_uint_eq(hvd__mac(paper, bytes, sizeof bytes),
                      UINT64_C(0xa129ca6149be45e5));
}

static void begin(void)
{
    hvd__datagram_begin(&datagram, WORLD, WRITER, 9);
    memset(&item, 0, sizeof item);
    memset(&back, 0xff, sizeof back);
}

/* Opens the datagram as if it had just arrived. */
static bool open_as(const uint64_t with[2], uint32_t world)
{
    static struct hvd__datagram arrived;
    bool good;

    arrived = datagram;
    good = hvd__datagram_open(&arrived, datagram.size, world, with);
    if (good)
        datagram = arrived;
    return good;
}

/* Writes item alone, and reads it into back, with a clock that is later. */
static void send_item(void)
{
    ck_assert(hvd__datagram_add(&datagram, &item, NOW));
    hvd__datagram_close(&datagram, key);
    datagram.from = -1;
    ck_assert(open_as(key, WORLD));
    ck_assert_int_eq(datagram.from, WRITER);
    ck_assert_uint_eq(datagram.number, 9);
    ck_assert(hvd__datagram_next(&datagram, &back, 3 * NOW));
    ck_assert_int_eq(back.kind, item.kind);
    ck_assert_int_eq(back.rank, item.rank);
    ck_assert(!hvd__datagram_next(&datagram, &back, 3 * NOW));
}

TEST(news_arrive)
{
    begin();
    item.kind = HVD__ITEM_NEWS;
    item.rank = 1000000;
    item.news.has_left = true;
    item.news.pid = 4242;
    item.news.in_flight = 17;
    item.news.silent_ns = 123456789;
    item.news.doing.since_ns = NOW - 7000;
    memset(item.news.doing.text, 'x', sizeof item.news.doing.text - 1);
    send_item();
    ck_assert(back.news.has_left);
    ck_assert_int_eq(back.news.pid, 4242);
    ck_assert_int_eq(back.news.in_flight, 17);
    ck_assert_int_eq(back.news.silent_ns, 123456789);
    ck_assert_int_eq(back.news.doing.since_ns, 3 * NOW - 7000);
    ck_assert_str_eq(back.news.doing.text, item.news.doing.text);
    begin();
    item.kind = HVD__ITEM_NEWS;
    send_item();
    ck_assert(!back.news.has_left);
    ck_assert_int_eq(back.news.doing.since_ns, 0);
    ck_assert_str_eq(back.news.doing.text, "");
}

TEST(questions_arrive)
{
    begin();
    item.kind = HVD__ITEM_ASK;
    item.ask.number = UINT64_C(1) << 40;
    item.ask.steps = HVD__DATAGRAM_STEPS;
    item.ask.count = HVD__DATAGRAM_KEYS;
    for (int i = 0; i < HVD__DATAGRAM_KEYS; i++) {
        item.ask.keys[i] = UINT64_MAX - (uint64_t)i;
        item.ask.sets[i] = -i;
    }
    send_item();
    ck_assert_uint_eq(back.ask.number, UINT64_C(1) << 40);
    ck_assert_int_eq(back.ask.steps, HVD__DATAGRAM_STEPS);
    ck_assert_int_eq(back.ask.count, HVD__DATAGRAM_KEYS);
    ck_assert_mem_eq(back.ask.keys, item.ask.keys, sizeof item.ask.keys);
    ck_assert_mem_eq(back.ask.sets, item.ask.sets, sizeof item.ask.sets);
}

TEST(answers_arrive)
{
    begin();
    item.kind = HVD__ITEM_LACK;
    item.lack.number = 5;
    item.lack.bits = UINT64_MAX - 7;
    item.lack.has_left = true;
    item.lack.silent_ns = 99;
    item.lack.doing.since_ns = NOW - 7000;
    strcpy(item.lack.doing.text, "join ''");
    send_item();
    ck_assert_uint_eq(back.lack.number, 5);
    ck_assert_uint_eq(back.lack.bits, UINT64_MAX - 7);
    ck_assert(back.lack.has_left);
    ck_assert_int_eq(back.lack.silent_ns, 99);
    ck_assert_int_eq(back.lack.doing.since_ns, 3 * NOW - 7000);
    ck_assert_str_eq(back.lack.doing.text, "join ''");
    begin();
    item.kind = HVD__ITEM_HAVE;
    item.have.number = 5;
    item.have.bits = 3;
    send_item();
    ck_assert_uint_eq(back.have.number, 5);
    ck_assert_uint_eq(back.have.bits, 3);
}

TEST(requests_arrive)
{
    struct hvd__watch_request *r = &item.request.is;

    begin();
    item.kind = HVD__ITEM_REQUEST;
    item.request.total = 8;
    item.request.index = 7;
    *r = (struct hvd__watch_request){
        .key = 1, .set = -3, .decided = true, .since_ns = NOW - 5};
    strcpy(r->name, "'w'");
    strcpy(r->what, "allreduce sum int32 [4]");
    send_item();
    r = &back.request.is;
    ck_assert_int_eq(back.request.index, 7);
    ck_assert_uint_eq(r->key, 1);
    ck_assert_int_eq(r->set, -3);
    ck_assert(r->decided);
    ck_assert_int_eq(r->since_ns, 3 * NOW - 5);
    ck_assert_str_eq(r->name, "'w'");
    ck_assert_str_eq(r->what, "allreduce sum int32 [4]");
}

TEST(an_end_arrives_whole_and_printable)
{
    begin();
    item.kind = HVD__ITEM_END;
    item.end.status = HVD_ERR_LOST;
    memset(item.end.text, 'e', sizeof item.end.text - 1);
    memcpy(item.end.text, "\033[2J\n\177", 6);
    send_item();
    ck_assert_int_eq(back.end.status, HVD_ERR_LOST);
    ck_assert_uint_eq(strlen(back.end.text), sizeof item.end.text - 1);
    ck_assert_int_eq(strncmp(back.end.text, "?[2J??eee", 9), 0);
}

TEST(a_full_datagram_takes_no_more)
{
    int written = 0, read = 0;

    begin();
    item.kind = HVD__ITEM_NEWS;
    memset(item.news.doing.text, 'x', 50);
    while (hvd__datagram_add(&datagram, &item, NOW))
        item.rank = ++written;
    hvd__datagram_close(&datagram, key);
    ck_assert_uint_le(datagram.size, HVD__DATAGRAM_BYTES);
    ck_assert(open_as(key, WORLD));
    while (hvd__datagram_next(&datagram, &back, NOW))
        ck_assert_int_eq(back.rank, read++);
    ck_assert_int_eq(read, written);
    ck_assert_int_gt(read, 10);
}

/* ------------------------------------------------------------------ hostile */

TEST(strangers_are_not_believed)
{
    const uint64_t other[2] = {key[0], key[1] + 1};

    begin();
    item.kind = HVD__ITEM_NEWS;
    hvd__datagram_add(&datagram, &item, NOW);
    hvd__datagram_close(&datagram, key);
    ck_assert(!open_as(other, WORLD));
    ck_assert(!open_as(key, WORLD + 1));
    ck_assert(open_as(key, WORLD));
}

/* Any flipped bit and any wrong length must be noticed. */
TEST(damage_is_noticed)
{
    struct hvd__datagram whole;
    int believed = 0;

    begin();
    item.kind = HVD__ITEM_NEWS;
    hvd__datagram_add(&datagram, &item, NOW);
    hvd__datagram_close(&datagram, key);
    whole = datagram;
    for (size_t bit = 0; bit < 8 * whole.size; bit++) {
        datagram = whole;
        datagram.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        believed += open_as(key, WORLD);
    }
    for (size_t size = 0; size <= 2 * HVD__DATAGRAM_BYTES; size++) {
        datagram = whole;
        believed += size != whole.size &&
                    hvd__datagram_open(&datagram, size, WORLD, key);
    }
    ck_assert_int_eq(believed, 0);
}

static bool makes_sense(const struct hvd__datagram_item *i)
{
    switch (i->kind) {
    case HVD__ITEM_NEWS:
        return i->news.in_flight >= 0 && i->news.in_flight <= HVD__PAGE_KEYS &&
               i->news.silent_ns >= 0 && i->news.doing.since_ns >= 0 &&
               i->news.doing.since_ns <= NOW &&
               memchr(i->news.doing.text, 0, sizeof i->news.doing.text);
    case HVD__ITEM_ASK:
        return i->ask.steps >= 0 && i->ask.steps <= HVD__DATAGRAM_STEPS &&
               i->ask.count >= 0 && i->ask.count <= HVD__DATAGRAM_KEYS;
    case HVD__ITEM_LACK: return i->lack.silent_ns >= 0;
    case HVD__ITEM_HAVE: return true;
    case HVD__ITEM_REQUEST:
        return i->request.index >= 0 && i->request.index < i->request.total &&
               i->request.total <= HVD__PAGE_REQUESTS &&
               memchr(i->request.is.name, 0, sizeof i->request.is.name) &&
               memchr(i->request.is.what, 0, sizeof i->request.is.what);
    case HVD__ITEM_END:
        return i->end.status < 0 && memchr(i->end.text, 0, sizeof i->end.text);
    default: return false;
    }
}

/* Values are checked even under a right MAC, as the sender may be broken. */
TEST(what_makes_no_sense_is_not_taken)
{
    int taken = 0, senseless = 0;

    srand(7);
    for (int i = 0; i < 50000; i++) {
        begin();
        datagram.size += (size_t)(rand() % (HVD__DATAGRAM_BYTES - 100));
        for (size_t at = HVD__DATAGRAM_HEAD; at < datagram.size; at++)
            datagram.bytes[at] = (unsigned char)(rand() % 3 ? 0 : rand());
        datagram.bytes[HVD__DATAGRAM_HEAD] = (unsigned char)(rand() % 6);
        hvd__datagram_close(&datagram, key);
        ck_assert(open_as(key, WORLD));
        while (hvd__datagram_next(&datagram, &back, NOW)) {
            taken++;
            senseless += !makes_sense(&back);
        }
    }
    ck_assert_int_gt(taken, 1000);
    ck_assert_int_eq(senseless, 0);
}

TEST_MAIN("watch_datagram", .seconds = 120)
