/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - a submission and its requests, from hvd_submit until they are
 * complete. This is the door of the room core/request. All rooms of core may
 * also include its other headers (signature, compress, names, sampling, hash).
 *
 * A submission is one request or a group of them; ranks agree on it as a whole.
 * Each request is computed, waited for and completed by itself. A submission
 * and its requests are one block of memory, which lives as long as any of its
 * requests. Its owner changes (program's thread, driver, request table), and
 * only one thread uses it at a time unless a field says otherwise.
 */
#ifndef HVD_CORE_REQUEST_H
#define HVD_CORE_REQUEST_H

#include <stdatomic.h>

#include "base/fingerprint.h"
#include "base/text.h"
#include "core/request/signature.h"

struct hvd__set;
struct hvd__submission;

/* Names of unnamed requests begin with HVD__UNNAMED, names of the library's own
 * requests with HVD__OWN. Names of programs hold no control characters. */
enum { HVD__UNNAMED = '\1', HVD__OWN = '\2' };
#define HVD__JOIN_NAME "\2join"
#define HVD__SETS_NAME "\2process sets"

/* The size of a name, or of a mark and a number, with the NUL. */
enum { HVD__NAME_SIZE = HVD_MAX_NAME + 1 };

/* The size of a cache line. When many small requests are under way, each
 * submission must be fetched from a slower cache, so fields that are used
 * together lie together. */
enum { HVD__LINE = 64 };

/* The state of a request in flight, which is cleared when the request comes
 * again. */
struct hvd__request_state {
    /* The next fields are used while the request is in flight. */
    struct hvd__request *next; /* in its batch */
    int64_t started_ns;
    int64_t done_ns;  /* 0: the time at which it is completed */
    int64_t *carried; /* owned, [set size]: each rank's number, or its split for
                         this one; NULL: none */
    int32_t batched;  /* number of requests in its batch */
    bool packed;
    bool shared; /* moved in shared memory */

    /* The next fields are set when it completes. The driver stores done with
     * release order (hvd__table_finish), which publishes status and message;
     * hvd__wait and hvd__table_claim load it with acquire order. */
    bool claimed; /* a thread waits for it */
    atomic_bool done;
    int status;
    int32_t slot;  /* its handle's; -1: nobody waits */
    char *message; /* owned; NULL: none */

    /* The next fields are used in flight, but not on the shortest way. */
    int64_t packed_ns, moved_ns;
    uint64_t
        sequence; /* sequence number of its slot, if it is reduced in place */
};
/* GCC clears more than 80 bytes by "rep stos", which takes tens of cycles. */
_Static_assert(sizeof(struct hvd__request_state) <= 80, "cleared each time");

struct hvd__request {
    /* The request as submitted. It is copied, except the buffers, which are
     * borrowed until it completes. Most requests use only the fields of this
     * first cache line. */
    _Alignas(HVD__LINE) struct hvd__submission *submission;
    const void *input;
    void *output;  /* where the result goes */
    int64_t count; /* elements of the input */
    size_t bytes;  /* of the input */
    int64_t rows;  /* rows of the input; the number that the request carries, if
                      it carries one */
    int32_t data_bytes;  /* bytes of data that go with its slot; -1: none */
    uint8_t way;         /* of its data: enum hvd__way (core/agree) */
    bool has_data_bytes; /* data_bytes and way are set */
    hvd_callback callback;
    void *callback_context;

    struct hvd__request_state state;

    /* Fields that only some requests have, as submitted. */
    int64_t out_rows; /* rows of the output, if it has rows; set in flight */
    int64_t capacity;
    int64_t *splits; /* owned; rows to each rank of the set; NULL: equal */
    int64_t *counts; /* the caller's; may be NULL */
    char *label;     /* owned: the name of a member of a group; else NULL */

    /* Memory that the request owns. */
    void *own_output; /* from hvd_malloc; passed to the caller, or freed */
    void *own_input;  /* the code of the caller's input */
    void *scratch;    /* for results made elsewhere first, and for adasum */

    struct hvd__signature signature; /* rarely used fields last */
};

/* The state of a submission in flight, which is cleared when the submission
 * comes again. */
struct hvd__submission_state {
    /* The next fields are used in flight. */
    struct hvd__submission *next; /* in the queue */
    int64_t submitted_ns;         /* sampling.h */
    bool timed;
    int64_t since_ns;    /* start of its waiting time; the driver's once it is
                            submitted */
    int64_t decided_ns;  /* driver's; 0: not yet */
    atomic_bool decided; /* all ranks have agreed that it runs or fails */

    /* A refused submission is announced with this status, and then freed. */
    int status;
    char *message; /* owned */

    int nposted;      /* requests that have a slot; driver's */
    int nleft;        /* requests not yet completed; driver's */
    atomic_int nrefs; /* requests not yet freed */
    int nrequests;
};
_Static_assert(sizeof(struct hvd__submission_state) <= 80, "likewise");

struct hvd__submission {
    /* These fields describe the submission. They stay while it is recycled
     * (recycled.h). */
    _Alignas(HVD__LINE) struct hvd__set *set; /* borrowed */
    uint64_t key;         /* fingerprint of the name; 0: not yet made */
    uint64_t fingerprint; /* of all signatures */
    int32_t priority;
    int32_t place;    /* one more than its place in the index of recycled
                         submissions; 0: none */
    bool is_recycled; /* likewise */
    bool may_recur; /* a request equal to given may reuse it; it then owns only
                       what it gets in flight */
    uint16_t name_bytes; /* bytes of the given name; 0: unnamed */
    struct hvd__submission *earlier, *later; /* in the set's in-flight table;
                                                later: recycled, no place */
    struct hvd__submission *chained; /* next in its chain of that table */
    hvd_request given;               /* its pointers are only compared */

    struct hvd__submission_state state;
    char name[HVD__NAME_SIZE];
    struct hvd__request requests[];
};

/* Requests linked by state.next, in order. */
struct hvd__request_list {
    struct hvd__request *first; /* NULL: the list is empty */
    struct hvd__request *last;  /* of a list that is not empty */
};

static inline void hvd__request_list_add(struct hvd__request_list *list,
                                         struct hvd__request *request)
{
    if (list->first)
        list->last->state.next = request;
    else
        list->first = request;
    list->last = request;
    request->state.next = NULL;
}

/* Allocates a submission of n empty requests. Returns NULL if memory runs out.
 */
struct hvd__submission *hvd__submission_new(int n);
/* Resets a submission of a single request to the state of a new one. Nothing
 * may refer to its last use any more. */
void hvd__submission_reset(struct hvd__submission *submission);
/* Stores the given request, so that an equal one can reuse the submission,
 * unless such a request needs work each time. The request must be checked.
 * bytes is the length of its name. */
void hvd__submission_remember(struct hvd__submission *submission,
                              const hvd_request *given, size_t bytes);
/* Returns true if a request equals the one that hvd__submission_remember
 * stored. hvd__submission_renew then makes the submission that request again.
 * Its last use must be complete; the results of the checks still hold. */
bool hvd__submission_is_like(const struct hvd__submission *submission,
                             const hvd_request *given, const char *name);
void hvd__submission_renew(struct hvd__submission *submission,
                           const hvd_request *given);
/* Frees all requests of a submission that nobody else has seen. NULL is
 * accepted. */
void hvd__submission_free(struct hvd__submission *submission);
/* Frees a request, and with the last one the submission. NULL is accepted. */
void hvd__request_free(struct hvd__request *request);
/* Frees what the request owns, and, if it is the last one, what its submission
 * owns. In that case returns the submission, which the caller must free, else
 * NULL. */
struct hvd__submission *hvd__request_fini(struct hvd__request *request);

/* Returns true for a gather of the library's own, which makes process sets: no
 * metrics count it, and no timeline shows it. */
static inline bool hvd__request_is_own(const struct hvd__request *request)
{
    return request->signature.kind == HVD_ALLGATHER &&
           request->submission->name[0] == HVD__OWN;
}

/* Returns the rows that an alltoall sends to one of nranks members, and writes
 * those for all members to memory of any alignment. */
int64_t hvd__request_split(const struct hvd__request *request, int rank,
                           int nranks);
void hvd__request_write_splits(const struct hvd__request *request, int nranks,
                               unsigned char *to);

/* The key under which every rank joins. */
uint64_t hvd__join_key(void);

/* Adds a submission's name as people read it: 'name', or "unnamed operation 7".
 */
void hvd__text_add_name(struct hvd__text *text, const char *name);

/* Has a request fail by itself: the text is its name and the formatted text. If
 * memory runs out, hvd__request_text returns that of the status. */
__attribute__((format(printf, 3, 4))) void hvd__request_fail(
    struct hvd__request *request, int status, const char *format, ...);

/* Returns the text of a request's status. */
const char *hvd__request_text(const struct hvd__request *request);

#endif
