/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - the connection between a client and a server, once each has proved
 * to the other who it is (call.h, door.h): frames in both directions.
 *
 *     client                                 server
 *                                        <-  WELCOME  it may begin
 *       JOB      the description (JSON)  ->
 *       FILE     pieces of the files     ->    until all are there
 *                                        <-  READY   port for the training
 *       START    the ports of all        ->    starts a worker
 *                                        <-  OUTPUT  what the worker prints
 *                                        <-  RESULT  pieces of the results
 *                                        <-  END     exit status, and why
 *
 * REFUSAL takes the place of any frame of the server, and is its last. PING
 * says only that a side is there; whoever is not heard for ten seconds is gone.
 * A frame has at most FRAME_MOST bytes behind its head, in the byte order of
 * the host, which both sides share (handshake.h refuses others).
 *
 * Functions that return int return 0, or PROBLEM with the text kept
 * (problem.h).
 */
#ifndef MODELS_REMOTE_LINK_H
#define MODELS_REMOTE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_MOST = 1 << 20 };

enum frame_kind {
    FRAME_PING,
    FRAME_WELCOME,
    FRAME_JOB,
    FRAME_FILE,   /* item: a remote_file (description.h) */
    FRAME_READY,  /* a uint32_t */
    FRAME_START,  /* a uint32_t for each rank */
    FRAME_OUTPUT, /* item: 1 or 2, the descriptor that it was written to */
    FRAME_RESULT, /* item: a remote_result (description.h); no bytes: its end */
    FRAME_END,    /* item: exit status, 128 + number of a signal; a text */
    FRAME_REFUSAL, /* a text */
    FRAME_KINDS
};

/* A frame that has arrived. data is valid during the call that takes it. */
struct frame {
    enum frame_kind kind;
    unsigned item;
    const void *data;
    size_t bytes;
};

struct remote_link {
    int fd;            /* owned; -1: closed */
    unsigned char *in; /* owned; what has arrived and is no whole frame */
    size_t got;
    unsigned char *out; /* owned; [queued], of which sent bytes have left */
    size_t queued, sent, room;
    int64_t heard_ns, spoke_ns;
    bool has_finished; /* nothing more is sent */
};

/* Takes the descriptor over, also on failure. */
int link_init(struct remote_link *link, int fd);
void link_fini(struct remote_link *link); /* zeroed with fd -1 is accepted */

/* Returns how many bytes wait to leave. */
size_t link_waiting(const struct remote_link *link);

/* Queues a frame. */
int link_send(struct remote_link *link, enum frame_kind kind, unsigned item,
              const void *data, size_t bytes);

/* Sends what the other side takes now, without waiting. */
int link_write(struct remote_link *link);

/* Says that what has been sent was all. The other side hangs up once it has
 * read that: whoever closes a connection on which something arrives later, a
 * PING maybe, takes back what is still on its way. */
void link_finish(struct remote_link *link);

/* Reads what is there, and gives every whole frame to take, which returns 0 or
 * PROBLEM. A side that has ended, or sends what is no frame, is a PROBLEM. */
int link_read(struct remote_link *link,
              int (*take)(void *context, const struct frame *frame),
              void *context);

/* Queues a PING if it is time for one, unless this side has finished. PROBLEM
 * if the other side has not been heard for too long; deaf: this side has not
 * listened, and cannot know. */
int link_tend(struct remote_link *link, bool deaf);

#endif
