/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datagram.h - encodes and decodes the datagrams that hosts send to each other.
 * The functions do no I/O.
 *
 * A datagram is small enough for every network. It names its sender and its
 * number, and holds items and a MAC. Each item can be understood alone, so it
 * does not matter which datagrams arrive. Times are sent as ages, because each
 * host has its own clock.
 */
#ifndef HVD_WATCH_DATAGRAM_H
#define HVD_WATCH_DATAGRAM_H

#include "watch/page.h"

enum {
    HVD__DATAGRAM_BYTES = 1200, /* fits below any network's limit */
    HVD__DATAGRAM_HEAD = 24,
    HVD__DATAGRAM_STEPS = 64, /* the most that a question is passed on */
    HVD__DATAGRAM_KEYS = 64   /* in one question, a bit of an answer each */
};

/* All datagrams of version 1 begin with "hvd1". */
#define HVD__DATAGRAM_MAGIC UINT32_C(0x31647668)

struct hvd__datagram {
    unsigned char bytes[HVD__DATAGRAM_BYTES];
    size_t size;
    size_t at;       /* offset of the next item to read */
    int32_t from;    /* rank of the sender */
    uint64_t number; /* grows from datagram to datagram of a sender */
};

enum hvd__datagram_item_kind {
    HVD__ITEM_NEWS = 1, /* state of a rank */
    HVD__ITEM_END,      /* nothing can succeed any more, and why */
    HVD__ITEM_ASK,      /* the rank asks who lacks its requests in flight */
    HVD__ITEM_LACK,     /* the rank lacks some, and what it does instead */
    HVD__ITEM_REQUEST,  /* a request that it has in flight instead */
    HVD__ITEM_HAVE      /* the rank, a lower one, waits for some as well */
};

struct hvd__datagram_item {
    enum hvd__datagram_item_kind kind;
    int32_t rank; /* the rank that the item is about */
    union {
        struct {
            bool has_left;
            int32_t pid;
            int32_t in_flight; /* number of requests */
            int64_t silent_ns;
            struct hvd__doing doing;
        } news;
        struct {
            uint64_t number; /* grows from question to question of a rank */
            int32_t steps;   /* how far it is passed on from its receiver */
            int32_t count;
            uint64_t keys[HVD__DATAGRAM_KEYS];
            int32_t sets[HVD__DATAGRAM_KEYS];
        } ask;
        struct {
            uint64_t number; /* of the question */
            uint64_t bits;   /* a bit for each key of it */
            bool has_left;
            int64_t silent_ns;
            struct hvd__doing doing;
        } lack;
        struct {
            uint64_t number, bits;
        } have;
        struct {
            int32_t total, index;
            struct hvd__watch_request is;
        } request;
        struct {
            int32_t status, lost, reason; /* as in struct hvd__cause */
            char text[HVD__PAGE_TEXT];
        } end;
    };
};

/* Begins a datagram. world is a number that all datagrams of a world have in
 * bytes 4 to 7, for simple filters. */
void hvd__datagram_begin(struct hvd__datagram *datagram, uint32_t world,
                         int from, uint64_t number);

/* Adds an item. Returns false if there is no room left; an item fits into an
 * empty datagram. */
bool hvd__datagram_add(struct hvd__datagram *datagram,
                       const struct hvd__datagram_item *item, int64_t now_ns);

/* Closes the datagram with its MAC: no item can be added afterwards. */
void hvd__datagram_close(struct hvd__datagram *datagram, const uint64_t key[2]);

/* Returns true if the size bytes that have arrived in datagram->bytes are a
 * datagram that was closed with this key. */
bool hvd__datagram_open(struct hvd__datagram *datagram, size_t size,
                        uint32_t world, const uint64_t key[2]);

/* Takes the next item out. Returns false if there is none, or if it makes no
 * sense. The fields of an item are in the ranges of their types and its texts
 * end; its rank may be any number. */
bool hvd__datagram_next(struct hvd__datagram *datagram,
                        struct hvd__datagram_item *item, int64_t now_ns);

#endif
