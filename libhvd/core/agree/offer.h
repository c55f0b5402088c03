/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offer.h - what some hosts of a process set offer the others in a round
 * (round.h): the next slots of their logs, as far as all their members agree,
 * and the data of small tensors. The functions are pure and do no I/O.
 *
 * The combination of two offers is their longest common prefix. Data of slots
 * in it is combined; all other data is dropped. A slot that differs ends the
 * prefix with a conflict; a prefix that merely ends earlier does not. All hosts
 * combine the same offers in the same bracket, so all get the same result.
 *
 * An offer covers a range of hosts, and the partner's range follows it or lies
 * before it. Data is combined in the order of the hosts, so that both partners
 * get the same bits.
 */
#ifndef HVD_CORE_OFFER_H
#define HVD_CORE_OFFER_H

#include "core/request/request.h"
#include "transport/hosts.h"

/* The way of a slot's data in a round. */
enum hvd__way {
    HVD__WAY_NONE,   /* the slot has no data */
    HVD__WAY_SUM,    /* the hosts' data is reduced */
    HVD__WAY_ROOT,   /* one host has the data */
    HVD__WAY_ALL,    /* every member's data is kept, host by host */
    HVD__WAY_ROWS,   /* every member's number is kept: request->rows */
    HVD__WAY_EACH,   /* a member's data is a block for each member, in the order
                        of the members; a host gets those for its own */
    HVD__WAY_SPLITS, /* the same, of numbers: request->splits */
    HVD__WAY_HALVES, /* the hosts' data is reduced in halves; of 2^k hosts */
    HVD__WAY_SHARES, /* the hosts' data is reduced, and a host gets its members'
                        shares: slices of the rows (hvd__slice_of) */
    HVD__WAY_STRAIGHT /* a member has a block for each member (hvd__way_block);
                         messages have the sender's for the receiver, and all
                         others go beside the round (straight.h) */
};

enum {
    HVD__OFFER_SLOTS = 256,         /* the most slots of a round */
    HVD__OFFER_BYTES = 94 << 10,    /* the most bytes of a message */
    HVD__OFFER_RESULTS = 88 << 10,  /* the most bytes of a message's data */
    HVD__OFFER_DATA = 2 << 20,      /* the most bytes of all members' data */
    HVD__STRAIGHT_BYTES = 512 << 10 /* the most of one member's blocks that go
                                       straight to their receivers */
};

enum hvd__offer_flags {
    HVD__OFFER_OPENS = 1,      /* the round opens an epoch; it has no slots */
    HVD__OFFER_CONFLICT = 2,   /* the slot behind the last differs somewhere */
    HVD__OFFER_REFUSED = 4,    /* a rank has refused the epoch */
    HVD__OFFER_IMPOSSIBLE = 8, /* the ranks of a host cannot share memory */
    HVD__OFFER_ALL = 15
};

struct hvd__offer_slot {
    uint64_t key;
    uint64_t fingerprint;
    const struct hvd__request *request; /* borrowed: this rank's */
    enum hvd__way way;
    int root;     /* WAY_ROOT: the host that has the data */
    size_t bytes; /* bytes of all members' data, or of a sum */
    size_t at;    /* offset of these in data */
};

/* Returns true if the hosts' data is reduced. */
static inline bool hvd__way_sums(enum hvd__way way)
{
    return way == HVD__WAY_SUM || way == HVD__WAY_HALVES ||
           way == HVD__WAY_SHARES;
}

/* A host that takes part in an exchange of a round. A message to it has the
 * blocks or shares (HVD__WAY_EACH, HVD__WAY_SPLITS, HVD__WAY_SHARES) for the
 * hosts whose number in the doubling of a round (hvd__pairing_of) is that of
 * the receiver, modulo a power of two; modulo 0, for the receiver alone. Blocks
 * pass through other hosts on their way. Of sums in halves (HVD__WAY_HALVES) it
 * has the part that the receiver keeps after as many halvings. */
struct hvd__offer_peer {
    int host;
    int first, end; /* a message from it covers the hosts first to end-1 */
    int modulus;    /* of messages in both directions; 0: they have the result
                       of all hosts */
};

struct hvd__offer {
    const struct hvd__hosts *hosts; /* borrowed */
    uint64_t round;
    uint32_t epoch;
    uint32_t flags;
    int first, end; /* the hosts first <= h < end have contributed */
    bool is_back;   /* all hosts have; what each lacks of sums comes back */
    /* The values of the first host of the set, which all use from here on. */
    struct hvd__piece_values values;
    uint64_t straight; /* bit h: host h sends blocks beside the round */
    int n;
    size_t data_bytes, message_bytes; /* of data here, and in any message */
    size_t broadcast_bytes;           /* of hvd__way_in_round */
    struct hvd__offer_slot slots[HVD__OFFER_SLOTS];
    _Alignas(64) unsigned char data[HVD__OFFER_DATA];
};

/* Returns true if a request moves data in a lane when it goes this way. */
static inline bool hvd__way_needs_lane(const struct hvd__request *request,
                                       enum hvd__way way)
{
    return request->signature.kind != HVD_BARRIER &&
           (way == HVD__WAY_NONE || way == HVD__WAY_ROWS ||
            way == HVD__WAY_SPLITS);
}

/* Returns true if blocks can go straight between these hosts: only speakers
 * take part in rounds, and an offer has 64 bits for hosts that send. */
static inline bool hvd__blocks_may_go_straight(const struct hvd__hosts *hosts)
{
    return hosts->widest == 1 && hosts->n <= 64;
}

/* Returns true if each member's data is a block for each member. */
static inline bool hvd__way_is_exchange(enum hvd__way way)
{
    return way == HVD__WAY_EACH || way == HVD__WAY_SPLITS;
}

/* Returns the block of a member's data that is for another member, when it goes
 * HVD__WAY_STRAIGHT: of an alltoall a part of it, of an allgather all of it, of
 * a reducescatter that member's share. The first member's is the largest. */
struct hvd__way_block {
    size_t at, bytes; /* in the data */
};
struct hvd__way_block hvd__way_block(const struct hvd__request *request,
                                     int member, int nranks);

/* Returns the bytes of all members' data of a request that goes this way, or of
 * their sum; of blocks that go straight, the bytes of as many as there are
 * members, each as large as the largest. */
size_t hvd__way_bytes(enum hvd__way way, const struct hvd__request *request,
                      int nranks);
/* Returns the most of them that a message of a round has. */
size_t hvd__way_message_bytes(enum hvd__way way,
                              const struct hvd__request *request,
                              const struct hvd__hosts *hosts);
/* Returns the bytes of the result on this host. */
size_t hvd__way_result_bytes(enum hvd__way way,
                             const struct hvd__request *request,
                             const struct hvd__hosts *hosts);
/* HVD__WAY_SHARES: returns where the share of a member of this host begins in
 * that result, given by its number on the host, or where the last one ends. */
size_t hvd__way_share_at(const struct hvd__request *request,
                         const struct hvd__hosts *hosts, int local);

/* Begins an offer of this rank's host alone, without slots. */
void hvd__offer_begin(struct hvd__offer *offer, const struct hvd__hosts *hosts,
                      uint64_t round, uint32_t epoch);
/* Adds a slot. At most one of an offer goes HVD__WAY_STRAIGHT. Its data must
 * then be written to offer->data: a sum of the host's members, or their data at
 * hvd__offer_member. Returns false if the offer is full. */
bool hvd__offer_add(struct hvd__offer *offer,
                    const struct hvd__request *request, enum hvd__way way,
                    int root);
/* Returns the slot of an offer that goes HVD__WAY_STRAIGHT, or NULL. */
const struct hvd__offer_slot *hvd__offer_straight(
    const struct hvd__offer *offer);
/* Reduces n sources into a sum: the members of a host, or two sums. */
void hvd__offer_add_up(struct hvd__offer *offer,
                       const struct hvd__offer_slot *slot, double prescale,
                       const void *const *sources, int n);
/* Returns where the data of a member is, given by its place in hosts->members,
 * if the slot keeps all members' data. */
static inline size_t hvd__offer_member(const struct hvd__offer_slot *slot,
                                       const struct hvd__hosts *hosts,
                                       int place)
{
    return slot->at +
           slot->bytes / (size_t)hosts->first[hosts->n] * (size_t)place;
}

/* Writes an offer as a message of at most HVD__OFFER_BYTES, its result. */
size_t hvd__offer_write(const struct hvd__offer *offer,
                        const struct hvd__offer_peer *to,
                        unsigned char *message);
/* Takes in a message of another host: combines the offer with it or, if its
 * modulus is 0, replaces the offer by it, which is then the result of all
 * hosts. Returns false for a message that no correct rank sends. */
bool hvd__offer_take(struct hvd__offer *offer, const unsigned char *message,
                     const struct hvd__offer_peer *from);

/* Returns true if the offer, which all hosts have agreed on, has sums in
 * halves. The caller then sets is_back, and parts of them must come back: in
 * messages to the same hosts, the last first, of the part that the sender kept
 * there. */
bool hvd__offer_comes_back(const struct hvd__offer *offer);

/* Copies the result of a slot on this host: what data has, or the blocks for
 * the members of this host, one member after another in each member's row, or
 * their shares. */
void hvd__offer_result(const struct hvd__offer *offer,
                       const struct hvd__offer_slot *slot, unsigned char *to);

#endif
