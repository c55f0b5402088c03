/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - a request of this rank, from hvd_submit to its end.
 */
#ifndef HVD_CORE_REQUEST_H
#define HVD_CORE_REQUEST_H

#include <stdatomic.h>

#include "core/hash.h"
#include "core/signature.h"

/* Keys of unnamed requests begin with this; names cannot, for they hold no
 * control character. */
enum { HVD__UNNAMED = '\1' };

/* Room for a key: a name, or the mark and a number; and the NUL. */
enum { HVD__KEY_SIZE = HVD_MAX_NAME + 1 };

struct hvd__entry {
    /* As submitted: copied, but for the buffers, borrowed until the end. */
    struct hvd__signature signature;
    const void *input;
    void *output;
    int64_t count;
    size_t bytes;
    hvd_callback callback;
    void *callback_context;
    char key[HVD__KEY_SIZE];

    /* On its way. An entry whose submission was refused is only announced,
     * with its status and message, and then freed. */
    struct hvd__entry *next; /* in the queue, then in its batch */
    UT_hash_handle hh;       /* in the ledger's table of keys in flight */
    bool decided;            /* all ranks agreed: it is in a batch */

    /* At its end. done publishes status and message to the waiter. */
    int status;
    char *message; /* owned; NULL: none */
    int32_t slot;  /* its handle's; -1: nobody waits */
    bool claimed;  /* a thread waits for it */
    atomic_bool done;
};

/* Copy what a program gave as a request, of whatever version: fields that it
 * does not know have their defaults, fields that we do not know are refused
 * unless zero. */
int hvd__request_copy(const hvd_request *given, hvd_request *request);

/* Check the name; it is not announced if it is bad, since no other rank can
 * have submitted it. */
int hvd__request_check_name(const char *name);

/*
 * Check the rest, in a world of size ranks, and fill the entry's first part
 * but the key. what is how messages call the request.
 */
int hvd__request_check(const hvd_request *request, int size, const char *what,
                       struct hvd__entry *entry);

/* NULL is accepted. */
void hvd__entry_free(struct hvd__entry *entry);

#endif
