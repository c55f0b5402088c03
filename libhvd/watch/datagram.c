/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datagram.c - writes and reads datagrams byte by byte, the lowest byte first.
 *
 *     head    magic 4, world 4, from 4, size 4, number 8
 *     items   kind 1, rank 4, then
 *       news      has_left 1, pid 4, in_flight 4, silent 8, age 8, text
 *       end       status 4, text
 *       ask       number 8, steps 4, count 4, (key 8, set 4) each
 *       lack      number 8, bits 8, has_left 1, silent 8, age 8, text
 *       request   total 4, index 4, key 8, set 4, decided 1, age 8, name, what
 *       have      number 8, bits 8
 *     MAC     8, of all before it
 *
 * A text is its length in 2 bytes and its characters. The age of something that
 * has not happened is NEVER.
 *
 * The reader trusts nothing: a cursor that has run past the end of the items
 * stays bad and returns zeros. heartbeat_send.c and
 * heartbeat_ask.c write datagrams, heartbeat_receive.c reads them.
 */
#include "watch/datagram.h"

#include <string.h>

#include "watch/mac.h"

enum { MAC_BYTES = 8 };
#define NEVER UINT64_MAX

/* ------------------------------------------------------------------ writing */

struct pen {
    unsigned char *at, *end;
    bool is_full;
};

static void put(struct pen *pen, uint64_t value, size_t bytes)
{
    pen->is_full |= (size_t)(pen->end - pen->at) < bytes;
    for (size_t i = 0; i < bytes && !pen->is_full; i++)
        *pen->at++ = (unsigned char)(value >> 8 * i);
}

static void put_text(struct pen *pen, const char *text, size_t size)
{
    size_t length = strnlen(text, size - 1);

    put(pen, length, 2);
    for (size_t i = 0; i < length; i++)
        put(pen, (unsigned char)text[i], 1);
}

static void put_age(struct pen *pen, int64_t since_ns, int64_t now_ns)
{
    uint64_t age = now_ns > since_ns ? (uint64_t)(now_ns - since_ns) : 0;

    put(pen, since_ns == 0 ? NEVER : age, 8);
}

static void put_request(struct pen *pen, const struct hvd__watch_request *r,
                        int64_t now_ns)
{
    put(pen, r->key, 8);
    put(pen, (uint32_t)r->set, 4);
    put(pen, r->decided, 1);
    put_age(pen, r->since_ns, now_ns);
    put_text(pen, r->name, sizeof r->name);
    put_text(pen, r->what, sizeof r->what);
}

static void put_item(struct pen *pen, const struct hvd__datagram_item *item,
                     int64_t now_ns)
{
    put(pen, item->kind, 1);
    put(pen, (uint32_t)item->rank, 4);
    switch (item->kind) {
    case HVD__ITEM_NEWS:
        put(pen, item->news.has_left, 1);
        put(pen, (uint32_t)item->news.pid, 4);
        put(pen, (uint32_t)item->news.in_flight, 4);
        put(pen, (uint64_t)item->news.silent_ns, 8);
        put_age(pen, item->news.doing.since_ns, now_ns);
        put_text(pen, item->news.doing.text, sizeof item->news.doing.text);
        break;
    case HVD__ITEM_ASK:
        put(pen, item->ask.number, 8);
        put(pen, (uint32_t)item->ask.steps, 4);
        put(pen, (uint32_t)item->ask.count, 4);
        for (int32_t i = 0; i < item->ask.count; i++) {
            put(pen, item->ask.keys[i], 8);
            put(pen, (uint32_t)item->ask.sets[i], 4);
        }
        break;
    case HVD__ITEM_LACK:
        put(pen, item->lack.number, 8);
        put(pen, item->lack.bits, 8);
        put(pen, item->lack.has_left, 1);
        put(pen, (uint64_t)item->lack.silent_ns, 8);
        put_age(pen, item->lack.doing.since_ns, now_ns);
        put_text(pen, item->lack.doing.text, sizeof item->lack.doing.text);
        break;
    case HVD__ITEM_HAVE:
        put(pen, item->have.number, 8);
        put(pen, item->have.bits, 8);
        break;
    case HVD__ITEM_REQUEST:
        put(pen, (uint32_t)item->request.total, 4);
        put(pen, (uint32_t)item->request.index, 4);
        put_request(pen, &item->request.is, now_ns);
        break;
    case HVD__ITEM_END:
        put(pen, (uint32_t)item->end.status, 4);
        put(pen, (uint32_t)item->end.lost, 4);
        put(pen, (uint32_t)item->end.reason, 4);
        put_text(pen, item->end.text, sizeof item->end.text);
        break;
    }
}

void hvd__datagram_begin(struct hvd__datagram *datagram, uint32_t world,
                         int from, uint64_t number)
{
    struct pen pen = {.at = datagram->bytes,
                      .end = datagram->bytes + HVD__DATAGRAM_HEAD};

    put(&pen, HVD__DATAGRAM_MAGIC, 4);
    put(&pen, world, 4);
    put(&pen, (uint32_t)from, 4);
    put(&pen, 0, 4); /* the size is set by hvd__datagram_close */
    put(&pen, number, 8);
    datagram->size = HVD__DATAGRAM_HEAD;
    datagram->from = from;
    datagram->number = number;
}

bool hvd__datagram_add(struct hvd__datagram *datagram,
                       const struct hvd__datagram_item *item, int64_t now_ns)
{
    struct pen pen = {.at = datagram->bytes + datagram->size,
                      .end = datagram->bytes + HVD__DATAGRAM_BYTES - MAC_BYTES};

    put_item(&pen, item, now_ns);
    if (pen.is_full)
        return false;
    datagram->size = (size_t)(pen.at - datagram->bytes);
    return true;
}

void hvd__datagram_close(struct hvd__datagram *datagram, const uint64_t key[2])
{
    struct pen size = {.at = datagram->bytes + 12, .end = datagram->bytes + 16};
    struct pen mac = {.at = datagram->bytes + datagram->size,
                      .end = datagram->bytes + HVD__DATAGRAM_BYTES};

    put(&size, datagram->size + MAC_BYTES, 4);
    put(&mac, hvd__mac(key, datagram->bytes, datagram->size), MAC_BYTES);
    datagram->size += MAC_BYTES;
}

/* ------------------------------------------------------------------ reading */

struct eye {
    const unsigned char *at, *end;
    bool is_bad;
};

static uint64_t get(struct eye *eye, size_t bytes)
{
    uint64_t value = 0;

    eye->is_bad |= (size_t)(eye->end - eye->at) < bytes;
    if (eye->is_bad)
        return 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)eye->at[i] << 8 * i;
    eye->at += bytes;
    return value;
}

static int32_t get_int(struct eye *eye)
{
    return (int32_t)(uint32_t)get(eye, 4);
}

/* Reads a number from 0 to most. */
static int32_t get_count(struct eye *eye, int32_t most)
{
    uint64_t count = get(eye, 4);

    eye->is_bad |= count > (uint64_t)most;
    return eye->is_bad ? 0 : (int32_t)count;
}

/* Reads a text. It goes to people's terminals, so control characters are
 * replaced. */
static void get_text(struct eye *eye, char *text, size_t size)
{
    size_t length = get(eye, 2);

    memset(text, 0, size);
    eye->is_bad |= length >= size || (size_t)(eye->end - eye->at) < length;
    if (eye->is_bad)
        return;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = eye->at[i];

        text[i] = c < ' ' || c == 0x7f ? '?' : (char)c;
    }
    eye->at += length;
}

static int64_t get_duration(struct eye *eye)
{
    uint64_t duration = get(eye, 8);

    return duration > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)duration;
}

/* Reads an age as a time; 0 is kept for what has not happened. */
static int64_t get_since(struct eye *eye, int64_t now_ns)
{
    uint64_t age = get(eye, 8);

    if (age == NEVER || eye->is_bad)
        return 0;
    return now_ns > 1 && age < (uint64_t)now_ns - 1 ? now_ns - (int64_t)age : 1;
}

static void get_ask(struct eye *eye, struct hvd__datagram_item *item)
{
    item->ask.number = get(eye, 8);
    item->ask.steps = get_count(eye, HVD__DATAGRAM_STEPS);
    item->ask.count = get_count(eye, HVD__DATAGRAM_KEYS);
    for (int32_t i = 0; i < item->ask.count; i++) {
        item->ask.keys[i] = get(eye, 8);
        item->ask.sets[i] = get_int(eye);
    }
}

static void get_lack(struct eye *eye, struct hvd__datagram_item *item,
                     int64_t now_ns)
{
    item->lack.number = get(eye, 8);
    item->lack.bits = get(eye, 8);
    item->lack.has_left = get(eye, 1) != 0;
    item->lack.silent_ns = get_duration(eye);
    item->lack.doing.since_ns = get_since(eye, now_ns);
    get_text(eye, item->lack.doing.text, sizeof item->lack.doing.text);
}

static void get_request(struct eye *eye, struct hvd__datagram_item *item,
                        int64_t now_ns)
{
    struct hvd__watch_request *r = &item->request.is;

    item->request.total = get_count(eye, HVD__PAGE_REQUESTS);
    item->request.index = get_count(eye, item->request.total);
    eye->is_bad |= item->request.index == item->request.total;
    r->key = get(eye, 8);
    r->set = get_int(eye);
    r->decided = get(eye, 1) != 0;
    r->since_ns = get_since(eye, now_ns);
    get_text(eye, r->name, sizeof r->name);
    get_text(eye, r->what, sizeof r->what);
}

static void get_item(struct eye *eye, struct hvd__datagram_item *item,
                     int64_t now_ns)
{
    item->kind = (enum hvd__datagram_item_kind)get(eye, 1);
    item->rank = get_int(eye);
    switch (item->kind) {
    case HVD__ITEM_NEWS:
        item->news.has_left = get(eye, 1) != 0;
        item->news.pid = get_int(eye);
        item->news.in_flight = get_count(eye, HVD__PAGE_KEYS);
        item->news.silent_ns = get_duration(eye);
        item->news.doing.since_ns = get_since(eye, now_ns);
        get_text(eye, item->news.doing.text, sizeof item->news.doing.text);
        break;
    case HVD__ITEM_ASK: get_ask(eye, item); break;
    case HVD__ITEM_LACK: get_lack(eye, item, now_ns); break;
    case HVD__ITEM_HAVE:
        item->have.number = get(eye, 8);
        item->have.bits = get(eye, 8);
        break;
    case HVD__ITEM_REQUEST: get_request(eye, item, now_ns); break;
    case HVD__ITEM_END:
        item->end.status = get_int(eye);
        item->end.lost = get_int(eye);
        item->end.reason = get_int(eye);
        get_text(eye, item->end.text, sizeof item->end.text);
        eye->is_bad |= item->end.status >= 0;
        break;
    default: eye->is_bad = true;
    }
}

bool hvd__datagram_open(struct hvd__datagram *datagram, size_t size,
                        uint32_t world, const uint64_t key[2])
{
    struct eye head = {.at = datagram->bytes,
                       .end = datagram->bytes + HVD__DATAGRAM_HEAD};
    struct eye mac;

    if (size < HVD__DATAGRAM_HEAD + MAC_BYTES || size > HVD__DATAGRAM_BYTES ||
        get(&head, 4) != HVD__DATAGRAM_MAGIC || get(&head, 4) != world)
        return false;
    datagram->from = get_int(&head);
    if (get(&head, 4) != size)
        return false;
    datagram->number = get(&head, 8);
    datagram->size = size - MAC_BYTES;
    datagram->at = HVD__DATAGRAM_HEAD;
    mac = (struct eye){.at = datagram->bytes + datagram->size,
                       .end = datagram->bytes + size};
    return get(&mac, MAC_BYTES) ==
           hvd__mac(key, datagram->bytes, datagram->size);
}

bool hvd__datagram_next(struct hvd__datagram *datagram,
                        struct hvd__datagram_item *item, int64_t now_ns)
{
    struct eye eye = {.at = datagram->bytes + datagram->at,
                      .end = datagram->bytes + datagram->size};

    if (datagram->at == datagram->size)
        return false;
    get_item(&eye, item, now_ns);
    datagram->at =
        eye.is_bad ? datagram->size : (size_t)(eye.at - datagram->bytes);
    return !eye.is_bad;
}
