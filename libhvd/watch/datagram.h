/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datagram.h - what hosts write to each other, as bytes: pure.
 *
 * A datagram is small enough for every network: who wrote it, its number,
 * items, a MAC. Each item can be understood alone, so it does not
 * matter which datagrams arrive. Times travel as ages: hosts have clocks of
 * their own.
 */
#ifndef HVD_WATCH_DATAGRAM_H
#define HVD_WATCH_DATAGRAM_H

#include "watch/page.h"

enum {
    HVD__DATAGRAM_BYTES = 1200, /* fits below any network's limit */
    HVD__DATAGRAM_HEAD = 24,
    HVD__DATAGRAM_KEYS = 128 /* of one item */
};

/* What all datagrams of version 1 begin with: "hvd1". */
#define HVD__DATAGRAM_MAGIC UINT32_C(0x31647668)

struct hvd__datagram {
    unsigned char bytes[HVD__DATAGRAM_BYTES];
    size_t size;
    size_t at;       /* of the next item, while it is read */
    int32_t from;    /* rank of the writer */
    uint64_t number; /* grows from datagram to datagram of a writer */
};

enum hvd__datagram_item_kind {
    HVD__ITEM_NEWS = 1, /* how a rank is */
    HVD__ITEM_KEYS,     /* some of what it has in flight, by key */
    HVD__ITEM_REQUEST,  /* one of those, in full */
    HVD__ITEM_END       /* nothing can succeed any more, and why */
};

struct hvd__datagram_item {
    enum hvd__datagram_item_kind kind;
    int32_t rank; /* whom it is about */
    union {
        struct {
            bool has_left;
            int32_t pid;
            int32_t in_flight; /* requests */
            int64_t silent_ns;
            struct hvd__doing doing;
        } news;
        struct {
            int32_t total, first, count; /* keys [first, first + count) */
            uint64_t keys[HVD__DATAGRAM_KEYS];
        } keys;
        struct {
            int32_t total, index;
            struct hvd__watch_request is;
        } request;
        struct {
            int32_t status;
            char text[HVD__PAGE_TEXT];
        } end;
    };
};

/* world: a number that all datagrams of a world have in their fifth to eighth
 * bytes, for who sorts them before looking further. */
void hvd__datagram_begin(struct hvd__datagram *datagram, uint32_t world,
                         int from, uint64_t number);

/* False: there is no room left for it. An item fits into an empty datagram. */
bool hvd__datagram_add(struct hvd__datagram *datagram,
                       const struct hvd__datagram_item *item, int64_t now_ns);

/* No item can be added afterwards. */
void hvd__datagram_close(struct hvd__datagram *datagram, const uint64_t key[2]);

/* Whether size bytes, which have arrived in datagram->bytes, are a datagram
 * that was closed with that key. */
bool hvd__datagram_open(struct hvd__datagram *datagram, size_t size,
                        uint32_t world, const uint64_t key[2]);

/* Take the next item out. False: there is none, or it makes no sense. What
 * is in it is in the ranges of its types, texts end, but its rank may be
 * any. */
bool hvd__datagram_next(struct hvd__datagram *datagram,
                        struct hvd__datagram_item *item, int64_t now_ns);

#endif
