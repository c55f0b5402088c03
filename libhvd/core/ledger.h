/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - every request of this rank from hvd_submit until it has been
 * waited for: who is in flight under which key, what is yet to be announced,
 * whose handle is which. Any thread may call any of these; the ledger's lock
 * is never held across anything that blocks or calls out.
 */
#ifndef HVD_CORE_LEDGER_H
#define HVD_CORE_LEDGER_H

#include <pthread.h>

#include "core/request.h"

struct hvd__slot {
    struct hvd__entry *entry; /* owned; NULL: free */
    uint32_t generation;      /* of the handle that is or was here */
    int32_t next_free;        /* -1: none */
};

struct hvd__ledger {
    pthread_mutex_t lock;         /* guards everything below */
    struct hvd__entry *in_flight; /* by key; borrowed until completion */
    struct hvd__entry *queue;     /* not yet announced, oldest first */
    struct hvd__entry **queue_tail;
    struct hvd__slot *slots; /* owned */
    int32_t nslots;
    int32_t first_free; /* -1: none */
    uint64_t nunnamed;  /* unnamed requests so far, refused ones included */
    int status;         /* negative: why nothing can be submitted any more */
    char message[1024];
    /* In flight or to be announced; read without the lock as a hint. */
    atomic_int busy;
};

int hvd__ledger_init(struct hvd__ledger *ledger);
/* Also frees entries that nobody waited for. */
void hvd__ledger_fini(struct hvd__ledger *ledger);

/*
 * Enter a request: its key, "" if it is unnamed, is completed; a handle is
 * made if handle is not NULL; it is queued to be announced. On success the
 * entry is the ledger's. HVD_ERR_DUPLICATE, HVD_ERR_MEMORY, or the status
 * that the ledger was closed with.
 */
int hvd__ledger_submit(struct hvd__ledger *ledger, struct hvd__entry *entry,
                       hvd_handle *handle);

/* Queue an entry whose status says that it was refused; it is taken, and
 * freed by who announces it. */
void hvd__ledger_refuse(struct hvd__ledger *ledger, struct hvd__entry *entry);

/* Refuse every later request with this. The first reason stays. */
void hvd__ledger_close(struct hvd__ledger *ledger, int status,
                       const char *message);

/* The whole queue, a list by next; each is in flight, or refused. */
struct hvd__entry *hvd__ledger_take(struct hvd__ledger *ledger);

/* The request in flight under key that is not yet decided, which it now is;
 * NULL if there is none. */
struct hvd__entry *hvd__ledger_decide(struct hvd__ledger *ledger,
                                      const char *key);
/* Any request in flight, decided or not; NULL if there is none. */
struct hvd__entry *hvd__ledger_any(struct hvd__ledger *ledger);

/* It is no longer in flight: its key may be submitted again. */
void hvd__ledger_remove(struct hvd__ledger *ledger, struct hvd__entry *entry);
/* Its status stands; the waiter may have it. Frees it if there is none. */
void hvd__ledger_finish(struct hvd__ledger *ledger, struct hvd__entry *entry);

/* The entry of a handle: HVD_ERR_HANDLE, or *entry, borrowed; claim: for
 * this thread alone, which then owes hvd__ledger_reap. */
int hvd__ledger_find(struct hvd__ledger *ledger, hvd_handle handle, bool claim,
                     struct hvd__entry **entry);
/* The handle is gone; its entry is freed. */
void hvd__ledger_reap(struct hvd__ledger *ledger, struct hvd__entry *entry);

#endif
