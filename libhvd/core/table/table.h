/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - the request table. It holds every request of this rank from
 * hvd_submit until the program has waited for it. This is the door of the room
 * core/table.
 *
 * The table knows which submissions are in flight under which key, which are
 * not yet announced, which handle belongs to which request, which submissions
 * are kept for reuse (recycled.h), and the process sets (set.h). The rooms
 * above call it from any thread. Its lock is never held across anything that
 * blocks or calls out, and no other lock is taken under it.
 */
#ifndef HVD_CORE_TABLE_H
#define HVD_CORE_TABLE_H

#include "base/mutex.h"
#include "core/request/request.h"
#include "core/table/in_flight.h"
#include "core/table/recycled.h"

struct hvd__metrics;

struct hvd__handle_slot {
    struct hvd__request *request; /* owned; NULL: free */
    uint32_t generation;          /* generation of the current or last handle */
    int32_t next_free;            /* -1: none */
};

/* The part of the request table that belongs to one process set. */
struct hvd__set_table {
    struct hvd__in_flight_table in_flight; /* borrowed until completion */
    uint64_t nunnamed; /* unnamed submissions since the last join, refused ones
                          included */
    uint64_t njoins;   /* joins that are over */
    bool joined;       /* nothing can be submitted until the join is over */
    int status;        /* negative: the set is closed with this status */
    char *message;     /* owned: text of the status */
};

struct hvd__table {
    struct hvd__mutex lock; /* guards everything below, and the request table */
    struct hvd__submission *queue; /* not yet announced, oldest first */
    struct hvd__submission **queue_tail;
    struct hvd__handle_slot *slots; /* owned */
    int32_t nslots;
    int32_t nfree;
    int32_t first_free; /* -1: none */
    /* nentered counts all requests that were ever in flight or waiting to be
     * announced, nover those that are over. Each has one writer and so needs no
     * locked instruction: nentered is written under the lock, nover by the
     * driver. */
    atomic_int_fast64_t nentered, nover;
    struct hvd__recycled recycled;
    struct hvd__metrics
        *metrics;           /* borrowed: counters of submissions; NULL: none */
    struct hvd__set **sets; /* owned, [nsets], ascending ids */
    int nsets;
    int sets_capacity;
    struct hvd__set *everybody; /* borrowed: set 0, which is never removed */
};

/* Returns how many requests are in flight or waiting to be announced. It takes
 * no lock, so the number is a hint. */
static inline int64_t hvd__table_busy(const struct hvd__table *table)
{
    /* nover is loaded first, because every request that is over was entered
     * before. */
    int64_t nover = atomic_load(&table->nover);

    return atomic_load(&table->nentered) - nover;
}

/* Frees requests of a set for which nobody waits. */
void hvd__set_table_fini(struct hvd__set_table *requests);

void hvd__table_init(struct hvd__table *table);
/* Empties a table. Frees the requests for which nobody waited, and the sets,
 * which must have neither executor nor agreement any more. */
void hvd__table_fini(struct hvd__table *table);

/* Returns a submission of one empty request, or NULL if memory runs out. */
struct hvd__submission *hvd__table_reuse(struct hvd__table *table);
/* Frees a request like hvd__request_free, but keeps its submission for reuse.
 */
void hvd__table_recycle(struct hvd__table *table, struct hvd__request *request);

/* The caller of the next three holds the lock. It posts or queues a submission
 * that was entered. */

/* Enters a submission. Completes its name, which is "" if it is unnamed, and
 * its key, and makes handles if handles is not NULL. On success the request
 * table owns the submission. Fails with HVD_ERR_DUPLICATE, HVD_ERR_MEMORY,
 * HVD_ERR_JOINED, or the status with which the set was closed. */
int hvd__table_enter(struct hvd__table *table,
                     struct hvd__submission *submission, hvd_handle *handles);
/* Enters the submission of an earlier request that equals the given one,
 * without checking the request again. It is timed whatever its size if timed is
 * true. Returns NULL, and does nothing, if no such submission is kept or it
 * cannot be entered. */
struct hvd__submission *hvd__table_reenter(struct hvd__table *table,
                                           const hvd_request *given,
                                           const char *name, bool timed,
                                           hvd_handle *handle);
/* Queues a submission to be announced. */
void hvd__table_queue(struct hvd__table *table,
                      struct hvd__submission *submission);

/* Numbers a submission without a name that is not entered yet and may never be.
 * It then counts as submitted and has its key. Returns false and does nothing
 * if anything is in flight or waits to be announced. */
bool hvd__table_number(struct hvd__table *table,
                       struct hvd__submission *submission, uint64_t *number);
/* Enters a numbered submission after all, with a handle. It is not queued to be
 * announced. */
int hvd__table_adopt(struct hvd__table *table,
                     struct hvd__submission *submission, uint64_t number,
                     hvd_handle *handle);

/* Queues a refused submission, whose status says why. The table takes
 * ownership; the code that announces the submission frees it. */
void hvd__table_refuse(struct hvd__table *table,
                       struct hvd__submission *submission);

/* Refuses every later request of a set with this status. If the set is already
 * closed, the first status and message stay. */
void hvd__table_close(struct hvd__table *table, struct hvd__set *set,
                      int status, const char *message);

/* Takes the whole queue, a list linked by next. Each submission is in flight or
 * refused. */
struct hvd__submission *hvd__table_take(struct hvd__table *table);

/* Returns the submission in flight under a key, or NULL if there is none. */
struct hvd__submission *hvd__table_look(struct hvd__table *table,
                                        struct hvd__set *set, uint64_t key);
/* Returns the oldest submission in flight, decided or not, or NULL if there is
 * none. */
struct hvd__submission *hvd__table_any(struct hvd__table *table,
                                       struct hvd__set *set);

/* Removes from the in-flight table the submissions whose last requests are in
 * this list. Their names may then be submitted again. */
void hvd__table_remove(struct hvd__table *table,
                       const struct hvd__request *requests);
/* Publishes the status of a request to its waiter, or frees the request if
 * nobody waits. */
void hvd__table_finish(struct hvd__table *table, struct hvd__request *request);

/* Reserves the request of a handle for this thread, which must give it back.
 * Returns 1 if the request is complete; the handle is then freed. Returns 0 if
 * it is not; this thread must call hvd__table_release when it is. Fails with
 * HVD_ERR_HANDLE. If the request is complete without an error and wanted is
 * false, it may be given back at once; *request is then NULL. wanted is true if
 * the caller reads its output. */
int hvd__table_claim(struct hvd__table *table, hvd_handle handle, bool wanted,
                     struct hvd__request **request);
/* Returns 1 if the request of a handle is complete, else 0. Fails with
 * HVD_ERR_HANDLE. */
int hvd__table_poll(struct hvd__table *table, hvd_handle handle);
/* Frees the handle. */
void hvd__table_release(struct hvd__table *table,
                        const struct hvd__request *request);

/* Returns the set of an id, which the caller must give back, or NULL if there
 * is none. Any thread may call it. */
struct hvd__set *hvd__table_find_set(struct hvd__table *table, int32_t id);
/* Gives a set back and returns the next one by id, which the caller must give
 * back, or NULL if there is none. If set is NULL, it returns the first. Any
 * thread may call it. */
struct hvd__set *hvd__table_next_set(struct hvd__table *table,
                                     struct hvd__set *set);
/* Gives a set back. This frees the set if it was removed and this was its last
 * user. NULL is accepted. Any thread may call it. */
void hvd__set_put(struct hvd__set *set);
/* Adds a set, which must have the highest id so far. Messages about the set
 * find it from now on. On HVD_ERR_MEMORY the caller keeps the set. */
int hvd__table_add_set(struct hvd__table *table, struct hvd__set *set);
/* Removes a set on which nothing moves and whose part of the table is closed.
 * Its last user frees it. */
void hvd__table_remove_set(struct hvd__table *table, struct hvd__set *set);

#endif
