/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - what ranks tell each other about requests, as bytes: pure, no I/O.
 *
 * A message is a run of records. A worker sends the coordinator
 *
 *     ANNOUNCE  key signature      I have submitted this
 *     REFUSE    key status text    I was refused this
 *     LEAVE                        I have called hvd_shutdown
 *     BREAK     status text        my world is broken
 *
 * and the coordinator sends everyone, in one order that all ranks follow,
 *
 *     BATCH     n, n keys          run these as one collective
 *     FAIL      status text key ranks    fails on these ranks
 *     CLOSE                        every rank has left
 *     BREAK     status text        the world is broken
 *
 * Numbers have fixed widths and this machine's byte order: the ranks of a
 * world run on machines of one kind. A text is its length in 2 bytes, then
 * its bytes. docs/PROTOCOL.md has the layout.
 */
#ifndef HVD_CORE_WIRE_H
#define HVD_CORE_WIRE_H

#include "core/request.h"
#include "core/signature.h"

enum hvd__record_type {
    HVD__ANNOUNCE = 1,
    HVD__REFUSE,
    HVD__LEAVE,
    HVD__BATCH,
    HVD__FAIL,
    HVD__CLOSE,
    HVD__BREAK
};

/* Bytes being written. When memory runs out it stays failed. */
struct hvd__writer {
    unsigned char *data; /* owned; malloc'ed */
    size_t bytes;
    size_t capacity;
    bool failed;
};

void hvd__write_type(struct hvd__writer *writer, enum hvd__record_type type);
void hvd__write_int(struct hvd__writer *writer, int32_t value);
void hvd__write_text(struct hvd__writer *writer, const char *text);
void hvd__write_signature(struct hvd__writer *writer,
                          const struct hvd__signature *signature);
/* The set of the ranks r of nranks for which of[r] != 0. */
void hvd__write_ranks(struct hvd__writer *writer, const int *of, int nranks);
void hvd__writer_fini(struct hvd__writer *writer);

/* Bytes being read. What does not fit, or is out of its range, makes it
 * failed, and then everything reads as zero. */
struct hvd__reader {
    const unsigned char *data; /* borrowed */
    size_t bytes;
    size_t at;
    bool failed;
};

bool hvd__reader_more(const struct hvd__reader *reader);
enum hvd__record_type hvd__read_type(struct hvd__reader *reader);
int32_t hvd__read_int(struct hvd__reader *reader);
/* Into text of size bytes, NUL-terminated; longer ones are a failure. */
void hvd__read_text(struct hvd__reader *reader, char *text, size_t size);
void hvd__read_signature(struct hvd__reader *reader,
                         struct hvd__signature *signature);
/* Whether rank is in the set. */
bool hvd__read_ranks(struct hvd__reader *reader, int nranks, int rank);

#endif
