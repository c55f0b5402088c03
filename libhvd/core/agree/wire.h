/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - encodes and decodes the records that ranks send each other about
 * requests. The functions are pure and do no I/O.
 *
 * A message is the id of a process set and a sequence of records. A member
 * sends the member that speaks for it (relay.h), and that one sends on,
 *
 *     ANNOUNCE  who key priority statement numbers
 *                                       have submitted this, or were refused it
 *     GONE      member how              joins or leaves
 *
 * and the coordinator's decisions reach all members, in one order that all
 * follow:
 *
 *     BATCH     bytes ranks items       run these as one collective, direct up
 *                                       to so many bytes
 *     END       key status text last ranks
 *                                       is over for these ranks: a failure, or
 *                                       a join, of which this rank was the last
 *     CLOSE                             all members have left
 *     OPEN      epoch count             requests may go by order again, if
 *                                       you have sent only so many messages;
 *                                       alone in its message
 *
 * and, in any direction,
 *
 *     BREAK     status text             the world is broken
 *
 * A key is the fingerprint of a name. A number is what only this rank knows:
 * its rows. docs/PROTOCOL.md has the layout.
 */
#ifndef HVD_CORE_WIRE_H
#define HVD_CORE_WIRE_H

#include "core/request/signature.h"

enum hvd__record_type {
    HVD__ANNOUNCE = 1,
    HVD__GONE,
    HVD__BATCH,
    HVD__END,
    HVD__CLOSE,
    HVD__BREAK,
    HVD__OPEN
};

/* A statement is what a member says about a name: the member has submitted it
 * or, if status is negative, its submission was refused. A refusal has a text
 * with the reason, and its NUL, in the place of the signatures. A statement is
 * one block of memory without padding, and is sent as it is. */
struct hvd__statement {
    uint64_t fingerprint; /* of all signatures; 0: refused */
    int32_t bytes;        /* of the whole */
    int32_t status;
    int32_t nsignatures; /* 0: refused */
    int32_t nnumbers;    /* that each member has: one for each signature that
                            carries one */
    struct hvd__signature signatures[];
};

static inline const char *hvd__statement_text(
    const struct hvd__statement *statement)
{
    return (const char *)statement->signatures;
}

/* Bytes being written. When memory runs out, failed becomes true and stays
 * true. */
struct hvd__writer {
    unsigned char *data; /* owned; malloc'ed */
    size_t bytes;
    size_t capacity;
    bool failed;
};

void hvd__write_type(struct hvd__writer *writer, enum hvd__record_type type);
void hvd__write_long(struct hvd__writer *writer, int64_t value);
void hvd__write_bytes(struct hvd__writer *writer, const void *data,
                      size_t bytes);
void hvd__write_text(struct hvd__writer *writer, const char *text);
/* Writes the set of the ranks r below nranks with of[r] != 0. */
void hvd__write_ranks(struct hvd__writer *writer, const int *of, int nranks);
void hvd__writer_fini(struct hvd__writer *writer);

/* Bytes being read. A value that does not fit or is out of range sets failed;
 * everything then reads as zero. */
struct hvd__reader {
    const unsigned char *data; /* borrowed */
    size_t bytes;
    size_t at;
    bool failed;
};

/* Makes the read fail, because what was read makes no sense. Returns HVD_OK. */
int hvd__reader_fail(struct hvd__reader *reader);
bool hvd__reader_more(const struct hvd__reader *reader);
enum hvd__record_type hvd__read_type(struct hvd__reader *reader);
int32_t hvd__read_int(struct hvd__reader *reader);
int64_t hvd__read_long(struct hvd__reader *reader);
/* Reads how many items follow. An item takes at least each bytes; the read
 * fails if that many items do not fit into the rest. */
int32_t hvd__read_count(struct hvd__reader *reader, size_t each);
void hvd__read_bytes(struct hvd__reader *reader, void *data, size_t bytes);
/* Reads n numbers, none of which is negative, into memory that the caller
 * frees; *numbers is NULL if there are none. Fails with HVD_ERR_MEMORY. */
int hvd__read_numbers(struct hvd__reader *reader, size_t n, int64_t **numbers);
/* Reads a text into size bytes, NUL-terminated. Fails if the text is longer or
 * contains a NUL. */
void hvd__read_text(struct hvd__reader *reader, char *text, size_t size);
/* Reads a statement into memory that the caller frees; *statement is NULL if
 * the read fails. Fails with HVD_ERR_MEMORY. */
int hvd__read_statement(struct hvd__reader *reader,
                        struct hvd__statement **statement);
/* Reads a set of ranks. of[r] becomes 1 for the ranks of the set, else 0. Fails
 * if a rank is not below nranks, or if the set is not in its shortest form.
 * Returns how many ranks it has. */
int hvd__read_ranks(struct hvd__reader *reader, int nranks, int *of);

#endif
