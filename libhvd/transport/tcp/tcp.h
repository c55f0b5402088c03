/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.h - the state of the transport over TCP, and what its files do for each
 * other: open.c makes it and meets the other ranks, listener.c listens,
 * sender.c calls and writes, receiver.c reads, tcp.c is the transport's table.
 * lookup.c finds out what addresses mean.
 *
 * A connection carries data in one direction, from the rank that called to the
 * one that was called, and is made when a rank first sends to another. So two
 * ranks that call each other at the same time have no conflict. Frames follow
 * each other on it: a header and as many bytes as it says.
 *
 * Everything is moved by hvd__tcp_drive, on the thread that drives the engine.
 * Nothing blocks.
 */
#ifndef HVD_TRANSPORT_TCP_TCP_H
#define HVD_TRANSPORT_TCP_TCP_H

#include "transport/dissemination.h"
#include "transport/fault.h"
#include "transport/tcp/address.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/lookup.h"
#include "transport/transport.h"

enum { HVD__FRAME_TRANSFER = 1, HVD__FRAME_MESSAGE, HVD__FRAME_MEETING };

/* Tags of the transport's own transfers. */
enum {
    HVD__TCP_NTAGS = 1 << 30,
    HVD__TAG_EXCHANGE = HVD__TCP_NTAGS,
    HVD__TAG_PART
};

struct hvd__frame {
    uint32_t kind;
    uint32_t tag;
    uint64_t bytes;
};

/* Something that is to be sent or received; hvd__transfer points to it. */
struct hvd__tcp_request {
    struct hvd__tcp_request *next;           /* in a queue */
    struct hvd__tcp_request *other, **place; /* in the list of all */
    struct hvd__frame frame;
    char *data;    /* borrowed from the caller of send or receive */
    void *message; /* owned; NULL: a transfer */
    size_t done;   /* bytes, those of the frame included where it is sent */
    bool is_done;
};

struct hvd__tcp_queue {
    struct hvd__tcp_request *first, **end;
};

/* The kinds of objects whose descriptor is watched; it is their first member.
 */
enum hvd__fd_kind {
    HVD__FD_LISTENER,
    HVD__FD_CALLER,
    HVD__FD_SENDER,
    HVD__FD_RECEIVER
};

struct hvd__watched_fd {
    enum hvd__fd_kind kind;
    int fd;                       /* -1: closed */
    struct hvd__watched_fd *dead; /* next of those to be freed */
};

enum hvd__sender_stage {
    HVD__SENDER_IDLE,    /* calls again at retry_ns */
    HVD__SENDER_CALLING, /* the connection is being made */
    HVD__SENDER_ASKED,   /* it has said hello */
    HVD__SENDER_PROVING, /* it has proved who it is */
    HVD__SENDER_OPEN,
    HVD__SENDER_REFUSED, /* for good */
    HVD__SENDER_BROKEN
};

struct hvd__sender {
    struct hvd__watched_fd watched;
    struct hvd__sender *next; /* of those that are not open, in which it is */
    bool is_listed;
    int peer;
    enum hvd__sender_stage stage;
    struct hvd__lookup *lookup;      /* owned; NULL: none is under way */
    struct addrinfo *addresses, *at; /* owned; the one to call next */
    int64_t retry_ns, delay_ns;
    int64_t since_ns; /* when the stage began */
    int ncalls;       /* answers of the kind "under way" in a row */
    char why[160];    /* the last failure */
    bool is_stranger; /* which was that the other side knows no such cluster */
    bool is_absent;   /* which was that nothing listens there */
    struct hvd__hello hello;
    union {
        struct hvd__challenge challenge;
        struct hvd__result result;
        char bytes[sizeof(struct hvd__challenge)];
    } answer;
    size_t got; /* bytes of the answer */
    struct hvd__tcp_queue queue;
    bool wants_room; /* epoll tells when more can be written */
};

/* A message that has come. */
struct hvd__tcp_message {
    struct hvd__tcp_message *next;
    int peer;
    size_t bytes;
    void *message; /* owned */
};

/* A transfer that came before its receive was started. */
struct hvd__unexpected {
    struct hvd__unexpected *next;
    uint32_t tag;
    size_t bytes;
    char *data; /* owned */
};

enum { HVD__READ_BYTES = 65536 };

struct hvd__receiver {
    struct hvd__watched_fd watched;
    int peer;
    struct hvd__frame frame; /* the one that is being read */
    size_t frame_got;        /* bytes of its header */
    char *to;                /* where the rest of it goes */
    size_t left;             /* bytes of the rest */
    int64_t waits_until_ns;  /* for the frame's receive; 0: it does not wait */
    const char *kept;        /* in buffer: read, and not yet used */
    size_t nkept;
    /* One of these, or none, is being read. */
    struct hvd__tcp_request *request;
    struct hvd__unexpected *unexpected;
    void *message; /* owned */
    char buffer[HVD__READ_BYTES];
};

struct hvd__tcp_peer {
    struct hvd__sender *sender;     /* owned; NULL: never sent to */
    struct hvd__receiver *receiver; /* owned; NULL: it has not called */
    struct hvd__tcp_queue posted;   /* receives that wait for it */
    struct hvd__unexpected *unexpected, **unexpected_end;
};

/* Someone who has connected, and has not proved to be of the job. */
struct hvd__caller {
    struct hvd__watched_fd watched;
    struct hvd__caller *next;
    int64_t until_ns;
    char from[64]; /* address */
    struct hvd__hello hello;
    struct hvd__challenge challenge;
    uint8_t proof[HVD__PROOF_BYTES];
    bool is_challenged;
    size_t got; /* bytes of hello, then of proof */
};

struct hvd__listener {
    struct hvd__watched_fd watched;
    struct hvd__caller *callers; /* owned, the youngest first */
    int ncallers;
    int64_t refused;   /* connections */
    int64_t logged_ns; /* when the last line about them was written */
};

enum { HVD__TCP_TEXT = 512 };

/* A rank keeps here what rank 0 has told it while the ranks meet. */
struct hvd__meeting {
    int end_status; /* negative: it has given up, with end_text */
    char end_text[HVD__TCP_TEXT];
    char missing[HVD__TCP_TEXT]; /* whom it waits for */
};

struct hvd__tcp {
    struct hvd__transport base;
    struct hvd__job job;
    void *key; /* owned: the job's */
    struct hvd__asked asked;
    char **addresses; /* owned, [size] */
    char **names;     /* owned, [size]: "worker 2", for people */
    bool is_local;    /* without a key: on the loopback interface only */
    int epoll;
    struct hvd__listener listener;
    struct hvd__tcp_peer *peers;       /* owned, [size] */
    struct hvd__sender *opening;       /* not open yet */
    struct hvd__tcp_request *requests; /* owned: all transfers and messages */
    int npending;                      /* messages that are being sent */
    struct hvd__tcp_message *received,
        **received_end; /* owned: what has come */
    struct hvd__watched_fd *dead;
    struct hvd__meeting meeting;
    struct hvd__lobby *lobby; /* borrowed; NULL: nobody joins */
    struct hvd__fault fault;
    struct hvd__parting parting;
    void *abandoned; /* owned: memory of transfers that were given up */
};

/* tcp.c */

/* Moves everything; waits for at most so many milliseconds for something to
 * move. */
int hvd__tcp_drive(struct hvd__tcp *tcp, int timeout_ms);

void hvd__tcp_fill(struct hvd__tcp *tcp, int rank, int size);

/* Adds a message, which is owned from now on, to those that have come. */
int hvd__tcp_keep_message(struct hvd__tcp *tcp, int peer, void *message,
                          size_t bytes);

/* Watches a descriptor for reading, or for reading and writing. The second
 * function is for one that is watched already, for another owner perhaps. */
int hvd__tcp_watch(struct hvd__tcp *tcp, struct hvd__watched_fd *watched,
                   bool writing);
int hvd__tcp_rewatch(struct hvd__tcp *tcp, struct hvd__watched_fd *watched,
                     bool writing);

/* Stops watching a descriptor, which stays open. */
void hvd__tcp_unwatch(struct hvd__tcp *tcp, int fd);

/* Closes a descriptor, and frees its owner after the events of this turn. */
void hvd__tcp_retire(struct hvd__tcp *tcp, struct hvd__watched_fd *watched);

/* Makes a request; NULL with the last error set. */
struct hvd__tcp_request *hvd__tcp_request_new(struct hvd__tcp *tcp,
                                              const struct hvd__frame *frame);
void hvd__tcp_request_free(struct hvd__tcp_request *request);
void hvd__tcp_queue_add(struct hvd__tcp_queue *queue,
                        struct hvd__tcp_request *request);

/* listener.c */

/* Listens on this rank's address. */
int hvd__listener_open(struct hvd__tcp *tcp);
int hvd__listener_ready(struct hvd__tcp *tcp);
int hvd__caller_ready(struct hvd__tcp *tcp, struct hvd__caller *caller);
/* Sends away those who have not proved anything for long. */
void hvd__listener_tidy(struct hvd__tcp *tcp);
void hvd__listener_close(struct hvd__tcp *tcp);

/* sender.c */

/* Returns the sender to a rank, which begins to call it; NULL with the last
 * error set. */
struct hvd__sender *hvd__sender_of(struct hvd__tcp *tcp, int peer);
/* Adds a request to what is sent, and sends what can be sent at once. The
 * request may be freed if it is a message. */
void hvd__sender_add(struct hvd__tcp *tcp, struct hvd__sender *sender,
                     struct hvd__tcp_request *request);
void hvd__sender_ready(struct hvd__tcp *tcp, struct hvd__sender *sender,
                       bool can_write);
/* Calls those whose time has come. */
int hvd__senders_call(struct hvd__tcp *tcp);
/* Returns the open connection of a sender, which is freed. */
int hvd__sender_take(struct hvd__tcp *tcp, int peer);
/* Accepts that there is none. */
void hvd__sender_free(struct hvd__tcp *tcp, int peer);

/* receiver.c */

/* Makes the receiver of a rank that has proved who it is. It owns fd, which is
 * watched already, from now on, also on failure. */
int hvd__receiver_new(struct hvd__tcp *tcp, int peer, int fd);
int hvd__receiver_ready(struct hvd__tcp *tcp, struct hvd__receiver *receiver);
/* Gives a receive what has come for it already, or lets it wait. */
int hvd__receiver_post(struct hvd__tcp *tcp, int peer,
                       struct hvd__tcp_request *request);
/* Takes what this rank sends to itself. */
int hvd__receiver_loop(struct hvd__tcp *tcp, const struct hvd__frame *frame,
                       const void *data);
/* Frees the receiver of a rank, which may have none, and what has come. */
void hvd__receiver_free(struct hvd__tcp *tcp, int peer);

/* open.c */

/* Makes a transport that listens, and has met nobody yet. */
int hvd__tcp_listen(const struct hvd__tcp_options *options,
                    const struct hvd__asked *asked, struct hvd__tcp **tcp);

/* Copies texts into one piece of memory, which begins with pointers to them.
 * The caller frees it. */
char **hvd__tcp_copy_texts(const char *const *texts, int n);

/* Opens a transport of some of the ranks, which meet anew at their addresses.
 */
int hvd__tcp_shrink(struct hvd__transport *self, const struct hvd__shrink *to,
                    struct hvd__transport **made);

/* Takes what a rank says while the ranks meet. */
void hvd__meeting_hear(struct hvd__tcp *tcp, const void *bytes, size_t count);

#endif
