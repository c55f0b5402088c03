/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi.c - the transport over an MPI communicator. hvd__mpi_open makes it; the
 * driver of the engine calls it, one thread at a time.
 *
 * The transport works on its own copy of a communicator, so that no message of
 * the library can match one of the program's. Tag 0 carries messages, the other
 * tags transfers. Every MPI call is nonblocking and polled: a blocking call of
 * Open MPI 4.1 never returns once a peer is dead. The exception is freeing the
 * communicator at close, which is local in Open MPI.
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

#include "base/log.h"
#include "base/status.h"
#include "transport/transport.h"

enum { MESSAGE_TAG = 0, FIRST_TRANSFER_TAG = 1 };

/* A message on its way out; it is freed when MPI has taken it. */
struct outgoing {
    struct outgoing *next;
    MPI_Request request;
    void *message;
};

struct mpi {
    struct hvd__transport base;
    MPI_Comm comm;             /* owned copy */
    struct outgoing *outgoing; /* owned list, newest first */
    int npending;
    /* The message being received; a long one takes several polls. */
    void *incoming; /* owned; NULL: none */
    MPI_Request incoming_request;
    int incoming_peer;
    size_t incoming_bytes;
    MPI_Request parting; /* of the meeting at the end */
    bool is_parting, has_parted;
    struct hvd__asked asked; /* asked while all ranks are waited for */
    bool is_abandoned;       /* MPI may still write to this memory and to */
    void *memory;
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

/* A transfer holds an MPI_Request without knowing its type: a pointer in Open
 * MPI, an int in MPICH. */
_Static_assert(sizeof(MPI_Request) <= sizeof(void *), "request fits");

static void keep_request(struct hvd__transfer *transfer, MPI_Request request)
{
    transfer->request = NULL;
    if (request != MPI_REQUEST_NULL)
        memcpy(&transfer->request, &request, sizeof request);
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

static int mpi_send(struct hvd__transport *self, int peer, int tag,
                    const void *data, size_t bytes,
                    struct hvd__transfer *transfer)
{
    struct mpi *mpi = (struct mpi *)self;
    MPI_Datatype type = MPI_BYTE;
    MPI_Request request;

    transfer->request = NULL;
    if (bytes == 0)
        return HVD_OK;
    if (bytes > INT_MAX)
        HVD_TRY(make_type(bytes, &type));
    HVD_TRY_MPI(MPI_Isend(data, type == MPI_BYTE ? (int)bytes : 1, type, peer,
                          FIRST_TRANSFER_TAG + tag, mpi->comm, &request),
                "MPI_Isend");
    if (type != MPI_BYTE)
        MPI_Type_free(&type);
    keep_request(transfer, request);
    return HVD_OK;
}

static int mpi_receive(struct hvd__transport *self, int peer, int tag,
                       void *data, size_t bytes, struct hvd__transfer *transfer)
{
    struct mpi *mpi = (struct mpi *)self;
    MPI_Datatype type = MPI_BYTE;
    MPI_Request request;

    transfer->request = NULL;
    if (bytes == 0)
        return HVD_OK;
    if (bytes > INT_MAX)
        HVD_TRY(make_type(bytes, &type));
    HVD_TRY_MPI(MPI_Irecv(data, type == MPI_BYTE ? (int)bytes : 1, type, peer,
                          FIRST_TRANSFER_TAG + tag, mpi->comm, &request),
                "MPI_Irecv");
    if (type != MPI_BYTE)
        MPI_Type_free(&type);
    keep_request(transfer, request);
    return HVD_OK;
}

static int mpi_test(struct hvd__transport *self, struct hvd__transfer *transfer)
{
    MPI_Request request;
    int done = 0;

    (void)self;
    if (!transfer->request)
        return 1;
    memcpy(&request, &transfer->request, sizeof request);
    HVD_TRY_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done)
        transfer->request = NULL;
    return done;
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
    code = MPI_Isend(message, (int)bytes, MPI_BYTE, peer, MESSAGE_TAG,
                     mpi->comm, &out->request);
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

    HVD_TRY_MPI(MPI_Improbe(MPI_ANY_SOURCE, MESSAGE_TAG, mpi->comm, &found,
                            &matched, &status),
                "MPI_Improbe");
    if (!found)
        return 0;
    HVD_TRY_MPI(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
    mpi->incoming = malloc((size_t)count + 1);
    if (!mpi->incoming)
        return hvd__fail_memory((size_t)count + 1);
    mpi->incoming_peer = status.MPI_SOURCE;
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

/* Keeps a pointer to memory that is left to MPI, so that memory checkers find
 * it. */
static void *volatile abandoned;

/* Polls a request to its end without burning a core. The caller frees memory,
 * which the request works on, unless mpi->is_abandoned. */
static int finish(struct mpi *mpi, MPI_Request *request, void *memory)
{
    int done = 0, status;

    for (int spins = 0;; spins++) {
        HVD_TRY_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done)
            return HVD_OK;
        status = mpi->asked.ask(mpi->asked.context);
        if (status < 0) {
            mpi->memory = memory;
            mpi->is_abandoned = true;
            abandoned = mpi;
            return status;
        }
        if (spins > 1000)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

static int mpi_exchange(struct hvd__transport *self, const void *mine,
                        void *all, size_t bytes)
{
    struct mpi *mpi = (struct mpi *)self;
    size_t total = (size_t)self->size * bytes;
    char *memory = malloc(
        total + bytes); /* the contributions of all ranks, then this rank's */
    MPI_Request request;
    int code, status;

    if (!memory)
        return hvd__fail_memory(total + bytes);
    memcpy(memory + total, mine, bytes);
    code = MPI_Iallgather(memory + total, (int)bytes, MPI_BYTE, memory,
                          (int)bytes, MPI_BYTE, mpi->comm, &request);
    if (code != MPI_SUCCESS) {
        free(memory);
        return mpi_error(code, "MPI_Iallgather");
    }
    status = finish(mpi, &request, memory);
    if (status == HVD_OK)
        memcpy(all, memory, total);
    if (!mpi->is_abandoned)
        free(memory);
    return status;
}

static int mpi_part(struct hvd__transport *self)
{
    struct mpi *mpi = (struct mpi *)self;
    int done = 0;

    if (mpi->has_parted)
        return 1;
    if (!mpi->is_parting)
        HVD_TRY_MPI(MPI_Ibarrier(mpi->comm, &mpi->parting), "MPI_Ibarrier");
    mpi->is_parting = true;
    HVD_TRY_MPI(MPI_Test(&mpi->parting, &done, MPI_STATUS_IGNORE), "MPI_Test");
    mpi->has_parted = done;
    return done;
}

static void mpi_close(struct hvd__transport *self)
{
    struct mpi *mpi = (struct mpi *)self;

    if (mpi->is_abandoned)
        return;
    if (mpi->comm != MPI_COMM_NULL && hvd__mpi_is_live())
        MPI_Comm_free(&mpi->comm);
    while (mpi->outgoing) { /* only after a failure: MPI may still read them */
        struct outgoing *out = mpi->outgoing;
        mpi->outgoing = out->next;
        free(out);
    }
    free(mpi);
}

static int copy_comm(struct mpi *mpi, const void *comm)
{
    MPI_Comm parent = comm ? *(const MPI_Comm *)comm : MPI_COMM_WORLD;
    MPI_Request request;
    int *tag_max, found = 0;

    HVD_TRY_MPI(MPI_Comm_idup(parent, &mpi->comm, &request), "MPI_Comm_idup");
    HVD_TRY(finish(mpi, &request, mpi));
    HVD_TRY_MPI(MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN),
                "MPI_Comm_set_errhandler");
    HVD_TRY_MPI(MPI_Comm_get_attr(mpi->comm, MPI_TAG_UB, &tag_max, &found),
                "MPI_Comm_get_attr");
    mpi->base.ntags = (found ? *tag_max : 32767) - FIRST_TRANSFER_TAG;
    HVD_TRY_MPI(MPI_Comm_rank(mpi->comm, &mpi->base.rank), "MPI_Comm_rank");
    HVD_TRY_MPI(MPI_Comm_size(mpi->comm, &mpi->base.size), "MPI_Comm_size");
    return HVD_OK;
}

int hvd__mpi_open(const void *comm, bool threads,
                  const struct hvd__asked *asked,
                  struct hvd__transport **transport)
{
    struct mpi *mpi = calloc(1, sizeof *mpi);
    int status;

    if (!mpi)
        return hvd__fail_memory(sizeof *mpi);
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
        .close = mpi_close,
        .threads = threads,
    };
    mpi->asked = *asked;
    status = copy_comm(mpi, comm);
    if (status < 0) {
        mpi_close(&mpi->base);
        return status;
    }
    *transport = &mpi->base;
    return HVD_OK;
}
