/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - the request table: every request of this rank from hvd_submit until
 * it has been waited for; the door of the room core/table.
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
    uint32_t generation;          /* of the handle that is or was here */
    int32_t next_free;            /* -1: none */
};

/* The part of the request table that belongs to one process set. */
struct hvd__set_table {
    struct hvd__in_flight_table in_flight; /* borrowed until completion */
    uint64_t nunnamed; /* unnamed submissions since the last join, refused ones
                          included */
    uint64_t njoins;   /* that are over */
    bool joined;       /* nothing can be submitted until the join is over */
    int status;        /* negative: why nothing can be submitted any more */
    char *message;     /* owned: the same in full */
};

struct hvd__table {
    struct hvd__mutex lock; /* guards everything below, and the request table */
    struct hvd__submission *queue; /* not yet announced, oldest first */
    struct hvd__submission **queue_tail;
    struct hvd__handle_slot *slots; /* owned */
    int32_t nslots;
    int32_t nfree;
    int32_t first_free; /* -1: none */
    /* Requests ever in flight or to be announced, and those of them that are
     * over: two numbers, for each has one writer, who needs no locked
     * instruction. The first is written under the lock, the second by the
     * driver. */
    atomic_int_fast64_t nentered, nover;
    struct hvd__recycled recycled;
    struct hvd__metrics *metrics; /* borrowed: where to count what is submitted;
                                     NULL: nowhere */
    struct hvd__set **sets;       /* owned, [nsets], ascending ids */
    int nsets;
    int sets_capacity;
    struct hvd__set *everybody; /* borrowed: set 0, which stays */
};

/* A request that may have been submitted before: argument and result of
 * hvd__table_resubmit. */
struct hvd__resubmission {
    const hvd_request *given;
    const char *name;
    hvd_handle *handle; /* NULL: none is wanted */
    bool timed;         /* whatever its size */
    /* Out: */
    struct hvd__submission *submission;
    struct hvd__set *refused_by; /* the submission's, to be given back, if there
                                    is one, and it could not be entered */
    int64_t submitted_ns;
};

/* Returns how many requests are in flight or to be announced: a hint, without
 * the lock. */
static inline int64_t hvd__table_busy(const struct hvd__table *table)
{
    /* nover is loaded first: every request that is over was entered before. */
    int64_t nover = atomic_load(&table->nover);

    return atomic_load(&table->nentered) - nover;
}

/* Frees requests of a set that nobody waits for. */
void hvd__set_table_fini(struct hvd__set_table *requests);

void hvd__table_init(struct hvd__table *table);
/* Also frees requests that nobody waited for, and the sets, which have neither
 * executor nor agreement any more. */
void hvd__table_fini(struct hvd__table *table);

/* Returns a submission of one empty request; NULL: out of memory. */
struct hvd__submission *hvd__table_reuse(struct hvd__table *table);
/* Frees a request, as hvd__request_free does, but keeps its submission for the
 * next one. */
void hvd__table_recycle(struct hvd__table *table, struct hvd__request *request);

/*
 * Enter a submission: its name, "" if it is unnamed, and its key are completed;
 * handles are made if handles is not NULL; it is queued to be announced, or
 * not, if *direct, and nothing is queued before it; else *direct becomes false
 * (NULL: likewise).
 * On success it is the request table's. HVD_ERR_DUPLICATE, HVD_ERR_MEMORY,
 * HVD_ERR_JOINED, or the status that the part of the set was closed with.
 */
int hvd__table_submit(struct hvd__table *table,
                      struct hvd__submission *submission, hvd_handle *handles,
                      bool *direct);

/* Enter a request that is like one before, without a look at it. If there is
 * a submission of that one, and it is not used, it is the submission; else that
 * is NULL, and nothing has happened. As hvd__table_submit; unless all is well
 * the submission is the caller's. */
int hvd__table_resubmit(struct hvd__table *table,
                        struct hvd__resubmission *resubmission, bool *direct);

/* Numbers a submission without a name that is not entered yet, and may never
 * be. It then counts as submitted and has its key. Returns false, and does
 * nothing, if anything is in flight or waits to be announced. */
bool hvd__table_number(struct hvd__table *table,
                       struct hvd__submission *submission, uint64_t *number);
/* Enters such a submission after all, with a handle; it is not announced. */
int hvd__table_adopt(struct hvd__table *table,
                     struct hvd__submission *submission, uint64_t number,
                     hvd_handle *handle);

/* Queues a submission whose status says that it was refused. It is taken;
 * whoever announces it frees it. */
void hvd__table_refuse(struct hvd__table *table,
                       struct hvd__submission *submission);

/* Refuses every later request of a set with this status. The first reason
 * stays. */
void hvd__table_close(struct hvd__table *table, struct hvd__set *set,
                      int status, const char *message);

/* Returns the whole queue, a list by next; each submission is in flight, or
 * refused. */
struct hvd__submission *hvd__table_take(struct hvd__table *table);

/* Returns the submission in flight under a key; NULL: there is none. */
struct hvd__submission *hvd__table_look(struct hvd__table *table,
                                        struct hvd__set *set, uint64_t key);
/* Returns the oldest submission in flight, decided or not; NULL: there is none.
 */
struct hvd__submission *hvd__table_any(struct hvd__table *table,
                                       struct hvd__set *set);

/* Removes a submission from the in-flight table: its name may be submitted
 * again. */
void hvd__table_remove(struct hvd__table *table,
                       struct hvd__submission *submission);
/* Removes the submissions of which these requests, a list, are the last ones.
 */
void hvd__table_remove_all(struct hvd__table *table,
                           const struct hvd__request *requests);
/* Publishes the status of a request to its waiter; frees the request if nobody
 * waits. */
void hvd__table_finish(struct hvd__table *table, struct hvd__request *request);

/* Gives the request of a handle to this thread alone, which gives it back.
 * Returns 1 if it is complete: the handle is freed. Returns 0 if it is not:
 * this thread calls hvd__table_release when it is. HVD_ERR_HANDLE. A request
 * that is complete without an error and needs nothing more is given back at
 * once, and *request is NULL. wanted: the caller looks at its output. */
int hvd__table_claim(struct hvd__table *table, hvd_handle handle, bool wanted,
                     struct hvd__request **request);
/* Returns 1 if the request of a handle is complete, else 0; HVD_ERR_HANDLE. */
int hvd__table_poll(struct hvd__table *table, hvd_handle handle);
/* Frees the handle. */
void hvd__table_release(struct hvd__table *table,
                        const struct hvd__request *request);

/* Finds the set of an id, to be given back; NULL: there is none. Any thread. */
struct hvd__set *hvd__table_find_set(struct hvd__table *table, int32_t id);
/* Gives a set back and returns the next by id, to be given back; NULL: there is
 * no other. set NULL: returns the first. Any thread. */
struct hvd__set *hvd__table_next_set(struct hvd__table *table,
                                     struct hvd__set *set);
/* Gives a set back, which may free it if it was removed meanwhile. NULL is
 * accepted. Any thread. */
void hvd__set_put(struct hvd__set *set);
/* Adds a set, with the highest id so far: messages about it find it now.
 * HVD_ERR_MEMORY; then it is not taken. */
int hvd__table_add_set(struct hvd__table *table, struct hvd__set *set);
/* Removes a set on which nothing moves and whose part of the table is closed.
 * Its last user frees it. */
void hvd__table_remove_set(struct hvd__table *table, struct hvd__set *set);

#endif
