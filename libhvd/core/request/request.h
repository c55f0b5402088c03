/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - a submission and its requests, from hvd_submit until they are
 * complete: the door of the room core/request, whose other headers (signature,
 * compress, names, sampling, hash) all rooms of core may include too.
 *
 * Ranks agree on a submission at once: one request, or a group of them. A
 * request is what is computed, waited for and completed. A submission and its
 * requests are one piece of memory, which lives as long as one of its requests
 * does. Memory changes owner (program's thread, driver, request table), and
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

/* Names of unnamed requests begin with the first, names of the library's own
 * requests with the second. Names of programs hold no control characters. */
enum { HVD__UNNAMED = '\1', HVD__OWN = '\2' };
#define HVD__JOIN_NAME "\2join"
#define HVD__SETS_NAME "\2process sets"

/* The size of a name, or of a mark and a number, with the NUL. */
enum { HVD__NAME_SIZE = HVD_MAX_NAME + 1 };

/* A cache line. Where many small requests are under way, their submissions come
 * out of a slower cache one by one: fields that are used together lie together.
 */
enum { HVD__LINE = 64 };

/* The state of a request in flight, which is cleared when the request comes
 * again. */
struct hvd__request_state {
    /* These fields are used while it is in flight. */
    struct hvd__request *next; /* in its batch */
    int64_t started_ns;
    int64_t done_ns;  /* 0: when it is completed */
    int64_t *carried; /* owned; of each rank of the set; NULL: none */
    int32_t batched;  /* requests in its batch */
    bool packed;
    bool shared; /* moved in shared memory */

    /* These fields are set when it completes. The driver stores done with
     * release order (hvd__table_finish), which publishes status and message;
     * hvd__wait and hvd__table_claim load it with acquire order. */
    bool claimed; /* a thread waits for it */
    atomic_bool done;
    int status;
    int32_t slot;  /* its handle's; -1: nobody waits */
    char *message; /* owned; NULL: none */

    /* These fields are used in flight, but not on the shortest way. */
    int64_t packed_ns, moved_ns;
    uint64_t sequence; /* of its slot, if it is reduced in place */
    int64_t out_rows;  /* of the output, where it has rows */
};

struct hvd__request {
    /* The request as submitted: copied, but for the buffers, which are borrowed
     * until it completes. Most requests have only the fields of this first
     * cache line. */
    _Alignas(HVD__LINE) struct hvd__submission *submission;
    const void *input;
    void *output;        /* where the result goes */
    int64_t count;       /* of the input's elements */
    size_t bytes;        /* of the input */
    int64_t rows;        /* of the input: what it carries, where it does */
    int32_t data_bytes;  /* that go with its slot; -1: none do */
    bool has_data_bytes; /* they are counted */
    hvd_callback callback;
    void *callback_context;

    struct hvd__request_state state;

    /* Fields that only some requests have, as submitted. */
    int64_t capacity;
    int64_t *splits; /* owned; rows to each rank of the set; NULL: equal */
    int64_t *counts; /* the caller's; may be NULL */
    char *label;     /* owned: the name of a member of a group; else NULL */

    /* Memory that the request owns. */
    void *own_output; /* of hvd_malloc; handed over, or freed */
    void *own_input;  /* a copy, or a code, of the caller's */
    void *scratch;    /* where the result is made first, or an adasum's */

    struct hvd__signature signature; /* ends with what is seldom used */
};

/* The state of a submission in flight, which is cleared when the submission
 * comes again. */
struct hvd__submission_state {
    /* On its way. */
    struct hvd__submission *next; /* in the queue */
    struct hvd__submission *earlier,
        *later;                      /* in the set's flight; or recycled */
    struct hvd__submission *chained; /* there: of those with such keys */
    int64_t submitted_ns;            /* sampling.h */
    bool timed;
    int64_t since_ns;    /* from when its time counts; the driver's, once it is
                            submitted */
    int64_t decided_ns;  /* driver's; 0: not yet */
    atomic_bool decided; /* all ranks agreed: it is run, or fails */

    /* A refused submission is announced with this status, and then freed. */
    int status;
    char *message; /* owned */

    int nposted;      /* requests that have a slot; driver's */
    int nleft;        /* ... that are not yet completed; driver's */
    atomic_int nrefs; /* requests not yet freed */
    int nrequests;
};

struct hvd__submission {
    /* These fields describe the submission. They stay while it is recycled
     * (recycled.h). */
    _Alignas(HVD__LINE) struct hvd__set *set; /* borrowed */
    uint64_t key;         /* fingerprint of the name; 0: not yet made */
    uint64_t fingerprint; /* of all signatures */
    int32_t priority;
    int32_t place;    /* of the recycled: one more than where it is found again;
                         0: nowhere */
    bool is_recycled; /* likewise */
    bool may_recur;   /* a request like given is this one again; then it
                         owns nothing but what comes up on its way */
    uint16_t name_bytes; /* likewise: of the name as given; 0: it is a number */
    hvd_request given;   /* likewise; its pointers are only compared */

    struct hvd__submission_state state;
    char name[HVD__NAME_SIZE];
    struct hvd__request requests[];
};

/* Allocates a submission of n empty requests. NULL: out of memory. */
struct hvd__submission *hvd__submission_new(int n);
/* Makes a submission of a single request as good as new. Its first use left no
 * trace anywhere. */
void hvd__submission_reset(struct hvd__submission *submission);
/* Keeps what was given, by which the request is found when it comes again,
 * unless something must be done for it each time. The request was checked;
 * bytes are those of its name. */
void hvd__submission_remember(struct hvd__submission *submission,
                              const hvd_request *given, size_t bytes);
/* Returns true if a request is what the submission is known by.
 * hvd__submission_renew then makes it that request again: the last use is
 * complete, and the results of the checks still hold. */
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
 * owns. Returns that submission, which is still to be freed; else NULL. */
struct hvd__submission *hvd__request_fini(struct hvd__request *request);

/* Returns true for a gather of the library's own, which makes process sets: no
 * metrics count it, and no timeline shows it. */
static inline bool hvd__request_is_own(const struct hvd__request *request)
{
    return request->signature.kind == HVD_ALLGATHER &&
           request->submission->name[0] == HVD__OWN;
}

/* The key under which every rank joins. */
uint64_t hvd__join_key(void);

/* Adds a submission's name as people read it: 'name', or "unnamed operation 7".
 */
void hvd__text_add_name(struct hvd__text *text, const char *name);

/* Writes a request's name as people read it into text: 'name', or "unnamed
 * operation 7". Returns text. */
const char *hvd__request_label(const struct hvd__request *request, char *text,
                               size_t size);

#endif
