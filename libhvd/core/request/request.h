/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - requests of this rank, from hvd_submit to their end.
 *
 * What ranks agree on at once is a submission: a request, or a group of them.
 * What is computed, waited for and completed is a request: one request. A
 * submission and its requests are one piece of memory, which goes when its last
 * request goes.
 */
#ifndef HVD_CORE_REQUEST_H
#define HVD_CORE_REQUEST_H

#include <stdatomic.h>

#include "base/fingerprint.h"
#include "base/text.h"
#include "core/request/signature.h"

struct hvd__set;
struct hvd__submission;

/* Names of unnamed requests begin with this, those of the library's own with
 * the other; names of programs cannot, for they hold no control character. */
enum { HVD__UNNAMED = '\1', HVD__OWN = '\2' };
#define HVD__JOIN_NAME "\2join"
#define HVD__SETS_NAME "\2process sets"

/* Room for a name, or a mark and a number; and the NUL. */
enum { HVD__NAME_SIZE = HVD_MAX_NAME + 1 };

/* A cache line. Where many small requests are under way, their submissions come
 * out of a slower cache one by one, and what is used together lies together. */
enum { HVD__LINE = 64 };

/* What becomes of a request. It is cleared when the request comes again. */
struct hvd__request_state {
    /* On its way. */
    struct hvd__request *next; /* in its batch */
    int64_t started_ns;
    int64_t done_ns;  /* 0: when it is completed */
    int64_t *carried; /* owned; of each rank of the set; NULL: none */
    int32_t batched;  /* requests in its batch */
    bool packed;
    bool shared; /* moved in shared memory */

    /* At its end. done publishes status and message to the waiter. */
    bool claimed; /* a thread waits for it */
    atomic_bool done;
    int status;
    int32_t slot;  /* its handle's; -1: nobody waits */
    char *message; /* owned; NULL: none */

    /* On its way, but not on the shortest. */
    int64_t packed_ns, moved_ns;
    uint64_t sequence; /* of its slot, if it is reduced in place */
    int64_t out_rows;  /* of the output, where it has rows */
};

struct hvd__request {
    /* As submitted: copied, but for the buffers, borrowed until the end. The
     * first line is all that most have. */
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

    /* As submitted, of some. */
    int64_t capacity;
    int64_t *splits; /* owned; rows to each rank of the set; NULL: equal */
    int64_t *counts; /* the caller's; may be NULL */
    char *label;     /* owned: the name of a member of a group; else NULL */

    /* Memory of its own; all owned. */
    void *own_output; /* of hvd_malloc; handed over, or freed */
    void *own_input;  /* a copy, or a code, of the caller's */
    void *scratch;    /* where the result is made first, or an adasum's */

    struct hvd__signature signature; /* ends with what is seldom used */
};

/* What becomes of a submission. It is cleared when the submission comes again.
 */
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

    /* A submission that was refused is only announced, with this, and freed. */
    int status;
    char *message; /* owned */

    int nposted;      /* requests that have a slot; driver's */
    int nleft;        /* ... that are not yet completed; driver's */
    atomic_int nrefs; /* requests not yet freed */
    int nrequests;
};

struct hvd__submission {
    /* What it is; it stays so while it is recycled (recycled.h). */
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

/* A submission of n empty requests; NULL: out of memory. */
struct hvd__submission *hvd__submission_new(int n);
/* One of a single request as if it were new, its first use being over without
 * a trace. */
void hvd__submission_reset(struct hvd__submission *submission);
/* The request that it is of was checked, and is known by what was given,
 * unless something is done for it each time. bytes: of its name. */
void hvd__submission_remember(struct hvd__submission *submission,
                              const hvd_request *given, size_t bytes);
/* Whether a request is what the submission is known by; and make it one again,
 * its last use being over: what was found out about it still holds. */
bool hvd__submission_is_like(const struct hvd__submission *submission,
                             const hvd_request *given, const char *name);
void hvd__submission_renew(struct hvd__submission *submission,
                           const hvd_request *given);
/* All its requests at once, which no one has yet seen. NULL is accepted. */
void hvd__submission_free(struct hvd__submission *submission);
/* The last one takes the submission with it. NULL is accepted. */
void hvd__request_free(struct hvd__request *request);
/* What it owns is freed, and what its submission owns, if it was the last: that
 * submission, still to be freed; else NULL. */
struct hvd__submission *hvd__request_fini(struct hvd__request *request);

/* A gather of the library's own, which makes process sets: no metrics count it,
 * and no timeline has it. */
static inline bool hvd__request_is_own(const struct hvd__request *request)
{
    return request->signature.kind == HVD_ALLGATHER &&
           request->submission->name[0] == HVD__OWN;
}

/* The key under which every rank joins. */
uint64_t hvd__join_key(void);

/* A submission's name as people read it: 'name', or "unnamed operation 7". */
void hvd__text_add_name(struct hvd__text *text, const char *name);

/* How people call it: 'name', "unnamed operation 7", into text. */
const char *hvd__request_label(const struct hvd__request *request, char *text,
                               size_t size);

#endif
