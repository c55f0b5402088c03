/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi.c - the transport over an MPI communicator. hvd__mpi_open makes it; the
 * driver of the engine calls it, one thread at a time.
 *
 * The transport works on its own copy of a communicator, so that no message of
 * the library can match one of the program's. Every MPI call is nonblocking and
 * polled: a blocking call of Open MPI 4.1 never returns once a peer is dead.
 * The exception is freeing the communicator at close, which is local in Open
 * MPI. A communicator is not freed after a failure: MPI crashes if it then
 * still finds fragments of a dead rank (11 of 28 deaths, measured).
 *
 * Survivors go on with the same communicator, because making another one would
 * block if one more of them died. The tags prove that nothing late reaches
 * them: the tags of MPI are divided among GENERATIONS generations, each of
 * which has one for messages, one for each kind of meeting, and the others for
 * transfers. No generation comes twice. What was under way in an earlier one is
 * taken back (mpi_quiet): a receive that nothing has matched is cancelled, and
 * for the others the rank waits, unless they are from lost ranks.
 *
 * If a wait for all ranks is given up, MPI keeps a request that cannot be taken
 * back: the memory that it may still write to is never freed.
 *
 * The copy returns errors instead of ending the job (MPI_ERRORS_RETURN); an
 * error code becomes HVD_ERR_MPI with MPI's own text.
 *
 * Messages are received with the matched probe (MPI_Improbe), which gives the
 * size of exactly that message, in the order of arrival.
 */
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/left.h"
#include "base/log.h"
#include "base/status.h"
#include "transport/dissemination.h"
#include "transport/transport.h"

/* The tags of a generation, counted from its first. */
enum { MESSAGE_TAG, EXCHANGE_TAG, PART_TAG, FIRST_TRANSFER_TAG };

/* Tags of transfers that are the transport's own. */
enum {
    OWN_EXCHANGE = EXCHANGE_TAG - FIRST_TRANSFER_TAG,
    OWN_PART = PART_TAG - FIRST_TRANSFER_TAG
};

enum { GENERATIONS = 256 };

/* A transfer under way. */
struct pending {
    struct pending *next, **place; /* in the list of all, or of spare ones */
    MPI_Request request;
    int peer;
    bool is_receive;
};

/* A message on its way out; it is freed when MPI has taken it. */
struct outgoing {
    struct outgoing *next;
    MPI_Request request;
    void *message;
};

struct mpi {
    struct hvd__transport base;
    MPI_Comm comm;             /* owned copy, unless is_shrunk */
    bool is_shrunk;            /* it was made of another transport */
    int *members;              /* owned, [size]: the ranks in comm; NULL: as in
                                  base */
    int *rank_of;              /* owned, by rank in comm; NULL: likewise */
    int tags;                  /* of a generation */
    int first_tag;             /* of this one */
    struct outgoing *outgoing; /* owned list, newest first */
    int npending;
    struct pending *pending; /* owned: transfers under way */
    struct pending *spare;   /* owned: for the next ones */
    /* The message being received; a long one takes several polls. */
    void *incoming; /* owned; NULL: none */
    MPI_Request incoming_request;
    int incoming_peer;
    size_t incoming_bytes;
    struct hvd__parting parting; /* the meeting at the end */
    struct hvd__asked asked;     /* asked while all ranks are waited for */
    bool is_quiet;               /* mpi_quiet has been called */
    void *abandoned; /* owned: MPI may still write to it, and to this */
};

static int mpi_error(int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    MPI_Error_string(code, text, &length);
    return hvd__fail(HVD_ERR_MPI, "%s failed: %s", call, text);
}

/* Turns the code of an MPI call into a status of this library. */
#define HVD_TRY_MPI(call, name)                                                \
    do {                                                                       \
        int code_ = (call);                                                    \
        if (code_ != MPI_SUCCESS)                                              \
            return mpi_error(code_, name);                                     \
    } while (0)

static int comm_rank(const struct mpi *mpi, int rank)
{
    return mpi->members ? mpi->members[rank] : rank;
}

/* Returns NULL, with the last error set, if memory runs out. */
static struct pending *pending_new(struct mpi *mpi, int peer, bool is_receive)
{
    struct pending *pending = mpi->spare;

    if (pending)
        mpi->spare = pending->next;
    else
        pending = malloc(sizeof *pending);
    if (!pending) {
        hvd__fail_memory(sizeof *pending);
        return NULL;
    }
    *pending = (struct pending){.next = mpi->pending,
                                .place = &mpi->pending,
                                .peer = peer,
                                .is_receive = is_receive};
    if (mpi->pending)
        mpi->pending->place = &pending->next;
    mpi->pending = pending;
    return pending;
}

static void pending_drop(struct mpi *mpi, struct pending *pending)
{
    *pending->place = pending->next;
    if (pending->next)
        pending->next->place = pending->place;
    pending->next = mpi->spare;
    mpi->spare = pending;
}

/* Makes a type for more bytes than an int counts: blocks and a rest. Freeing
 * the type does not disturb transfers under way. */
static int make_type(size_t bytes, MPI_Datatype *type)
{
    const size_t block = (size_t)1 << 30;
    int lengths[2] = {(int)(bytes / block), (int)(bytes % block)};
    MPI_Aint starts[2] = {0, (MPI_Aint)(bytes / block * block)};
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_BYTE};

    HVD_TRY_MPI(MPI_Type_contiguous((int)block, MPI_BYTE, &types[0]),
                "MPI_Type_contiguous");
    HVD_TRY_MPI(MPI_Type_create_struct(2, lengths, starts, types, type),
                "MPI_Type_create_struct");
    MPI_Type_free(&types[0]);
    HVD_TRY_MPI(MPI_Type_commit(type), "MPI_Type_commit");
    return HVD_OK;
}

/* Begins a transfer of the data, which is only read if it is sent. */
static int begin(struct mpi *mpi, struct pending *pending, int tag, void *data,
                 size_t bytes)
{
    const int peer = comm_rank(mpi, pending->peer);
    MPI_Datatype type = MPI_BYTE;
    int count, code;

    if (bytes > INT_MAX)
        HVD_TRY(make_type(bytes, &type));
    count = type == MPI_BYTE ? (int)bytes : 1;
    tag += mpi->first_tag + FIRST_TRANSFER_TAG;
    code = pending->is_receive ? MPI_Irecv(data, count, type, peer, tag,
                                           mpi->comm, &pending->request)
                               : MPI_Isend(data, count, type, peer, tag,
                                           mpi->comm, &pending->request);
    if (type != MPI_BYTE)
        MPI_Type_free(&type);
    if (code != MPI_SUCCESS)
        return mpi_error(code, pending->is_receive ? "MPI_Irecv" : "MPI_Isend");
    return HVD_OK;
}

static int transfer_data(struct mpi *mpi, int peer, bool is_receive, int tag,
                         void *data, size_t bytes,
                         struct hvd__transfer *transfer)
{
    struct pending *pending;
    int status;

    transfer->request = NULL;
    if (bytes == 0)
        return HVD_OK;
    pending = pending_new(mpi, peer, is_receive);
    if (!pending)
        return HVD_ERR_MEMORY;
    status = begin(mpi, pending, tag, data, bytes);
    if (status < 0)
        pending_drop(mpi, pending);
    else
        transfer->request = pending;
    return status;
}

static int mpi_send(struct hvd__transport *self, int peer, int tag,
                    const void *data, size_t bytes,
                    struct hvd__transfer *transfer)
{
    return transfer_data((struct mpi *)self, peer, false, tag,
                         (void *)(uintptr_t)data, bytes, transfer);
}

static int mpi_receive(struct hvd__transport *self, int peer, int tag,
                       void *data, size_t bytes, struct hvd__transfer *transfer)
{
    return transfer_data((struct mpi *)self, peer, true, tag, data, bytes,
                         transfer);
}

static int mpi_test(struct hvd__transport *self, struct hvd__transfer *transfer)
{
    struct pending *pending = transfer->request;
    int done = 0;

    if (!pending)
        return 1;
    HVD_TRY_MPI(MPI_Test(&pending->request, &done, MPI_STATUS_IGNORE),
                "MPI_Test");
    if (!done)
        return 0;
    pending_drop((struct mpi *)self, pending);
    transfer->request = NULL;
    return 1;
}

/* Frees the messages that have left. Returns how many have not. */
static int mpi_pending(struct hvd__transport *self)
{
    struct mpi *mpi = (struct mpi *)self;
    struct outgoing **link = &mpi->outgoing;

    while (*link) {
        struct outgoing *out = *link;
        int done = 0;

        HVD_TRY_MPI(MPI_Test(&out->request, &done, MPI_STATUS_IGNORE),
                    "MPI_Test");
        if (!done) {
            link = &out->next;
            continue;
        }
        *link = out->next;
        free(out->message);
        free(out);
        mpi->npending--;
    }
    return mpi->npending;
}

static int mpi_post(struct hvd__transport *self, int peer, void *message,
                    size_t bytes)
{
    struct mpi *mpi = (struct mpi *)self;
    struct outgoing *out = calloc(1, sizeof *out);
    int code;

    if (!out) {
        free(message);
        return hvd__fail_memory(sizeof *out);
    }
    out->message = message;
    code = MPI_Isend(message, (int)bytes, MPI_BYTE, comm_rank(mpi, peer),
                     mpi->first_tag + MESSAGE_TAG, mpi->comm, &out->request);
    if (code != MPI_SUCCESS) {
        free(message);
        free(out);
        return mpi_error(code, "MPI_Isend");
    }
    out->next = mpi->outgoing;
    mpi->outgoing = out;
    mpi->npending++;
    return mpi_pending(self) < 0 ? HVD_ERR_MPI : HVD_OK;
}

/* Starts to receive the oldest message. Returns 1 if there is one, else 0. */
static int match(struct mpi *mpi)
{
    MPI_Message matched;
    MPI_Status status;
    int found = 0, count = 0;

    HVD_TRY_MPI(MPI_Improbe(MPI_ANY_SOURCE, mpi->first_tag + MESSAGE_TAG,
                            mpi->comm, &found, &matched, &status),
                "MPI_Improbe");
    if (!found)
        return 0;
    HVD_TRY_MPI(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
    mpi->incoming = malloc((size_t)count + 1);
    if (!mpi->incoming)
        return hvd__fail_memory((size_t)count + 1);
    mpi->incoming_peer =
        mpi->rank_of ? mpi->rank_of[status.MPI_SOURCE] : status.MPI_SOURCE;
    mpi->incoming_bytes = (size_t)count;
    HVD_TRY_MPI(MPI_Imrecv(mpi->incoming, count, MPI_BYTE, &matched,
                           &mpi->incoming_request),
                "MPI_Imrecv");
    return 1;
}

static int mpi_poll(struct hvd__transport *self, int *peer, void **message,
                    size_t *bytes)
{
    struct mpi *mpi = (struct mpi *)self;
    int done = 0;

    if (!mpi->incoming) {
        int matched = match(mpi);
        if (matched <= 0)
            return matched;
    }
    HVD_TRY_MPI(MPI_Test(&mpi->incoming_request, &done, MPI_STATUS_IGNORE),
                "MPI_Test");
    if (!done)
        return 0;
    *peer = mpi->incoming_peer;
    *message = mpi->incoming;
    *bytes = mpi->incoming_bytes;
    mpi->incoming = NULL;
    return 1;
}

/* Sleeps so that a wait does not burn a core. */
static int rest(struct hvd__transport *self, int looks)
{
    (void)self;
    if (looks > 1000)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return HVD_OK;
}

static int mpi_exchange(struct hvd__transport *self, const void *mine,
                        void *all, size_t bytes)
{
    struct mpi *mpi = (struct mpi *)self;
    const struct hvd__patience patience = {mpi->asked, rest};

    return hvd__dissemination_gather(self, OWN_EXCHANGE, &patience, mine, all,
                                     bytes, &mpi->abandoned);
}

static int mpi_part(struct hvd__transport *self)
{
    return hvd__dissemination_part(self, OWN_PART,
                                   &((struct mpi *)self)->parting);
}

/* -------------------------------------------------------- after a failure */

/* Takes back the receives that nothing has matched; those that something has
 * matched are not changed. */
static int cancel_receives(struct mpi *mpi)
{
    for (struct pending *p = mpi->pending; p; p = p->next)
        if (p->is_receive && p->request != MPI_REQUEST_NULL)
            HVD_TRY_MPI(MPI_Cancel(&p->request), "MPI_Cancel");
    return HVD_OK;
}

static int mpi_quiet(struct hvd__transport *self, hvd__rank_test *is_lost,
                     const void *context)
{
    struct mpi *mpi = (struct mpi *)self;
    int nwaiting = 0;

    if (!mpi->is_quiet)
        HVD_TRY(cancel_receives(mpi));
    mpi->is_quiet = true;
    self->is_broken = true;
    for (struct pending *p = mpi->pending, *next; p; p = next) {
        int done = 0;

        next = p->next;
        HVD_TRY_MPI(MPI_Test(&p->request, &done, MPI_STATUS_IGNORE),
                    "MPI_Test");
        if (done)
            pending_drop(mpi, p);
        else
            nwaiting += p->is_receive && !is_lost(context, p->peer);
    }
    HVD_TRY(mpi_pending(self));
    if (nwaiting > 0)
        return 0;
    return mpi->pending || mpi->outgoing ? 2 : 1;
}

static void mpi_close(struct hvd__transport *self)
{
    struct mpi *mpi = (struct mpi *)self;

    if (hvd__mpi_is_live())
        mpi_pending(self);
    if (mpi->abandoned || mpi->outgoing || mpi->pending || mpi->incoming) {
        hvd__leave_behind(mpi);
        return;
    }
    if (mpi->comm != MPI_COMM_NULL && !mpi->is_shrunk && !self->is_broken &&
        hvd__mpi_is_live())
        MPI_Comm_free(&mpi->comm);
    while (mpi->spare) {
        struct pending *pending = mpi->spare;
        mpi->spare = pending->next;
        free(pending);
    }
    free(mpi->members);
    free(mpi->rank_of);
    free(mpi);
}

static struct mpi *mpi_new(bool threads, const struct hvd__asked *asked);

static int copy_ranks(struct mpi *mpi, const struct mpi *from,
                      const struct hvd__shrink *to)
{
    int size = 0;

    HVD_TRY_MPI(MPI_Comm_size(from->comm, &size), "MPI_Comm_size");
    mpi->members = calloc((size_t)to->n, sizeof *mpi->members);
    mpi->rank_of = calloc((size_t)size, sizeof *mpi->rank_of);
    if (!mpi->members || !mpi->rank_of)
        return hvd__fail_memory((size_t)size * sizeof *mpi->rank_of);
    for (int i = 0; i < to->n; i++) {
        mpi->members[i] = comm_rank(from, to->ranks[i]);
        mpi->rank_of[mpi->members[i]] = i;
        if (to->ranks[i] == from->base.rank)
            mpi->base.rank = i;
    }
    mpi->base.size = to->n;
    return HVD_OK;
}

static int mpi_shrink(struct hvd__transport *self, const struct hvd__shrink *to,
                      struct hvd__transport **made)
{
    const struct mpi *from = (const struct mpi *)self;
    struct mpi *mpi;
    int status;

    if (to->generation >= GENERATIONS)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "MPI has tags for %d recoveries of a process: start "
                         "the job again",
                         GENERATIONS - 1);
    mpi = mpi_new(from->base.threads, to->asked);
    if (!mpi)
        return hvd__fail_memory(sizeof *mpi);
    mpi->comm = from->comm;
    mpi->is_shrunk = true;
    mpi->tags = from->tags;
    mpi->first_tag = to->generation * from->tags;
    mpi->base.ntags = from->base.ntags;
    status = copy_ranks(mpi, from, to);
    if (status < 0) {
        mpi_close(&mpi->base);
        return status;
    }
    *made = &mpi->base;
    return HVD_OK;
}

/* ----------------------------------------------------------------- opening */

/* Polls the copying to its end. */
static int finish(struct mpi *mpi, MPI_Request *request)
{
    int done = 0, status;

    for (int looks = 0;; looks++) {
        HVD_TRY_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done)
            return HVD_OK;
        status = mpi->asked.ask(mpi->asked.context);
        if (status < 0) {
            mpi->abandoned = mpi; /* MPI writes the communicator */
            return status;
        }
        rest(&mpi->base, looks);
    }
}

static int copy_comm(struct mpi *mpi, const void *comm)
{
    MPI_Comm parent = comm ? *(const MPI_Comm *)comm : MPI_COMM_WORLD;
    MPI_Request request;
    int *tag_max, found = 0;

    HVD_TRY_MPI(MPI_Comm_idup(parent, &mpi->comm, &request), "MPI_Comm_idup");
    HVD_TRY(finish(mpi, &request));
    HVD_TRY_MPI(MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN),
                "MPI_Comm_set_errhandler");
    HVD_TRY_MPI(MPI_Comm_get_attr(mpi->comm, MPI_TAG_UB, &tag_max, &found),
                "MPI_Comm_get_attr");
    mpi->tags = (found ? *tag_max : 32767) / GENERATIONS;
    mpi->base.ntags = mpi->tags - FIRST_TRANSFER_TAG;
    HVD_TRY_MPI(MPI_Comm_rank(mpi->comm, &mpi->base.rank), "MPI_Comm_rank");
    HVD_TRY_MPI(MPI_Comm_size(mpi->comm, &mpi->base.size), "MPI_Comm_size");
    return HVD_OK;
}

static struct mpi *mpi_new(bool threads, const struct hvd__asked *asked)
{
    struct mpi *mpi = calloc(1, sizeof *mpi);

    if (!mpi)
        return NULL;
    mpi->comm = MPI_COMM_NULL;
    mpi->base = (struct hvd__transport){
        .name = "mpi",
        .send = mpi_send,
        .receive = mpi_receive,
        .test = mpi_test,
        .post = mpi_post,
        .poll = mpi_poll,
        .pending = mpi_pending,
        .exchange = mpi_exchange,
        .part = mpi_part,
        .quiet = mpi_quiet,
        .shrink = mpi_shrink,
        .close = mpi_close,
        .threads = threads,
    };
    mpi->asked = *asked;
    return mpi;
}

int hvd__mpi_open(const void *comm, bool threads,
                  const struct hvd__asked *asked,
                  struct hvd__transport **transport)
{
    struct mpi *mpi = mpi_new(threads, asked);
    int status;

    if (!mpi)
        return hvd__fail_memory(sizeof *mpi);
    status = copy_comm(mpi, comm);
    if (status < 0) {
        mpi_close(&mpi->base);
        return status;
    }
    *transport = &mpi->base;
    return HVD_OK;
}
