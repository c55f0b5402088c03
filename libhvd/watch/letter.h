/* SPDX-License-Identifier: Apache-2.0 */
/*
 * letter.h - what hosts write to each other, as bytes: pure.
 *
 * A letter is one datagram, small enough for every network: who wrote it, its
 * number, items, a seal. Each item can be understood alone, so it does not
 * matter which letters arrive. Times travel as ages: hosts have clocks of
 * their own.
 */
#ifndef HVD_WATCH_LETTER_H
#define HVD_WATCH_LETTER_H

#include "watch/board.h"

enum {
    HVD__LETTER_BYTES = 1200, /* fits below any network's limit */
    HVD__LETTER_HEAD = 24,
    HVD__LETTER_KEYS = 128 /* of one item */
};

/* What all letters of version 1 begin with: "hvd1". */
#define HVD__LETTER_MAGIC UINT32_C(0x31647668)

struct hvd__letter {
    unsigned char bytes[HVD__LETTER_BYTES];
    size_t size;
    size_t at;       /* of the next item, while it is read */
    int32_t from;    /* rank of the writer */
    uint64_t number; /* grows from letter to letter of a writer */
};

enum hvd__item_kind {
    HVD__ITEM_NEWS = 1, /* how a rank is */
    HVD__ITEM_KEYS,     /* some of what it has in flight, by key */
    HVD__ITEM_REQUEST,  /* one of those, in full */
    HVD__ITEM_END       /* nothing can succeed any more, and why */
};

struct hvd__item {
    enum hvd__item_kind kind;
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
            uint64_t keys[HVD__LETTER_KEYS];
        } keys;
        struct {
            int32_t total, index;
            struct hvd__watch_request is;
        } request;
        struct {
            int32_t status;
            char text[HVD__BOARD_TEXT];
        } end;
    };
};

/* world: a number that all letters of a world have in their fifth to eighth
 * bytes, for who sorts them before looking further. */
void hvd__letter_begin(struct hvd__letter *letter, uint32_t world, int from,
                       uint64_t number);

/* False: there is no room left for it. An item fits into an empty letter. */
bool hvd__letter_add(struct hvd__letter *letter, const struct hvd__item *item,
                     int64_t now_ns);

/* No item can be added afterwards. */
void hvd__letter_close(struct hvd__letter *letter, const uint64_t key[2]);

/* Whether size bytes, which have arrived in letter->bytes, are a letter that
 * was closed with that key. */
bool hvd__letter_open(struct hvd__letter *letter, size_t size, uint32_t world,
                      const uint64_t key[2]);

/* Take the next item out. False: there is none, or it makes no sense. What
 * is in it is in the ranges of its types, texts end, but its rank may be
 * any. */
bool hvd__letter_next(struct hvd__letter *letter, struct hvd__item *item,
                      int64_t now_ns);

#endif
