/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport.h - the door of this room: it moves bytes between the ranks of a
 * world.
 *
 * A transport is a table of functions and its state. No function blocks, except
 * those that say so: sends and receives are started and tested, messages are
 * posted and polled, so that the caller can always do something else, or give
 * up. One thread at a time uses a transport (core/world/progress.c ensures
 * that).
 *
 * There are two kinds of traffic. Messages carry the agreement between ranks:
 * they have any size, stay in order between two ranks, and are received from
 * any rank. Transfers carry tensors: the receiver knows peer, tag and size, and
 * provides the memory.
 *
 * Functions return 0 or more on success, and a negative HVD_ERR_* with the text
 * of hvd_last_error set on failure.
 */
#ifndef HVD_TRANSPORT_TRANSPORT_H
#define HVD_TRANSPORT_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ip.h"
#include "hvd.h"

/* A transfer under way; it belongs to the caller that started it. NULL: none,
 * or done. */
struct hvd__transfer {
    void *request;
};

/* The callback that a collective call calls from time to time while it waits
 * for other ranks. A negative answer, with the last error set, ends the wait;
 * then the transport can only be closed. */
struct hvd__asked {
    int (*ask)(void *context);
    void *context;
};

/* Returns whether a rank is lost. */
typedef bool hvd__rank_test(const void *context, int rank);

struct hvd__transport;

/* The ranks of a transport that go on without the others. */
struct hvd__shrink {
    const int *ranks; /* borrowed, [n], ascending, this one among them */
    int n;
    int generation; /* 1 or more; never the same twice */
    const struct hvd__asked *asked;
    int64_t limit_ns, report_ns; /* as for hvd__tcp_open */
};

struct hvd__transport {
    const char *name; /* "self", "mpi", "tcp", "ucx" */
    int rank;
    int size;
    bool threads;           /* any thread may drive, one at a time */
    bool parts_by_program;  /* only threads of the program may call part */
    int ntags;              /* tags of transfers are 0 <= tag < ntags */
    struct hvd__ip address; /* the only one on which this rank is to listen */
    /* Counter of the bytes of tensors sent to other ranks (team.h); NULL: not
     * counted. */
    atomic_int_fast64_t *sent_bytes;

    /* Starts a transfer. The memory is borrowed until test returns 1. Between
     * two ranks, transfers of one tag match in the order in which they were
     * started. The receiver gives the room that there is; the sender may send
     * fewer bytes, but not none where the receiver expects some. */
    int (*send)(struct hvd__transport *self, int peer, int tag,
                const void *data, size_t bytes, struct hvd__transfer *transfer);
    int (*receive)(struct hvd__transport *self, int peer, int tag, void *data,
                   size_t bytes, struct hvd__transfer *transfer);
    /* Returns 1 if the transfer is done (an empty one is at once), 0 if not;
     * then it has moved all transfers that are under way. */
    int (*test)(struct hvd__transport *self, struct hvd__transfer *transfer);

    /* Sends a message, which was malloc'ed and is owned by the transport from
     * now on, also on failure. */
    int (*post)(struct hvd__transport *self, int peer, void *message,
                size_t bytes);
    /* Returns 1 with a message from *peer, which the caller frees, or 0 if
     * there is none. */
    int (*poll)(struct hvd__transport *self, int *peer, void **message,
                size_t *bytes);
    /* Moves the posted messages that are still being sent. Returns their
     * number. */
    int (*pending)(struct hvd__transport *self);

    /* Gathers bytes from all ranks: all[r] is what rank r gave as mine.
     * Collective and blocking (it polls and sleeps). */
    int (*exchange)(struct hvd__transport *self, const void *mine, void *all,
                    size_t bytes);

    /* Meets all ranks when nothing more will be sent. Returns 1 when all ranks
     * have called, 0 before; it is called again until then. */
    int (*part)(struct hvd__transport *self);
    bool parts; /* close must come after part, except after a failure */

    /* Call this after a failure, when this rank sends nothing any more, again
     * and again until it returns more than 0: then nothing that a rank that is
     * not lost has sent can reach memory of this process any more. 2: a
     * transfer with a lost rank cannot be taken back, so the memory of all
     * transfers must stay allocated. The transport can then only shrink and
     * close. */
    int (*quiet)(struct hvd__transport *self, hvd__rank_test *is_lost,
                 const void *context);

    /* Collective over the ranks that are given. Makes another transport of
     * them. Nothing that was sent on self, or on one that was made of it for
     * another generation, can reach it. self, which is quiet, must be closed
     * after what was made of it. HVD_ERR_UNSUPPORTED: there were too many
     * generations. */
    int (*shrink)(struct hvd__transport *self, const struct hvd__shrink *to,
                  struct hvd__transport **made);
    bool is_broken; /* set it before close if anything may be under way */

    /* Closes and frees self. It waits for no rank. Something is under way only
     * after a failure. */
    void (*close)(struct hvd__transport *self);
};

/* Opens the transport of one rank, which has no peers. Messages that it posts
 * to itself come back. */
int hvd__self_open(struct hvd__transport **transport);

/* Opens a transport on a communicator. comm points to an MPI_Comm (a type that
 * this header must not know); NULL: MPI_COMM_WORLD. Collective. The caller has
 * called hvd__mpi_start, which returned threads. */
int hvd__mpi_open(const void *comm, bool threads,
                  const struct hvd__asked *asked,
                  struct hvd__transport **transport);

/* The ranks of a job without a launcher know this. All is borrowed until
 * hvd__tcp_open returns. */
struct hvd__tcp_options {
    int rank, size;
    const char *const *addresses; /* [size]: host:port, on which each listens */
    const char *const *names;     /* [size]: "worker 2", for people */
    uint64_t cluster;             /* fingerprint of what all must know alike */
    const void *key; /* shared by the ranks; NULL: none, then all addresses
                        are of the loopback interface */
    size_t key_bytes;
    int64_t limit_ns;  /* time that ranks wait for each other; 0: any */
    int64_t report_ns; /* time between reports of who is missing; 0: none */
    int64_t grace_ns;  /* as for hvd__ucx_open */
    struct hvd__lobby *lobby; /* borrowed until the transport is closed: who
                                 calls for it is taken there; NULL: none */
};

/* Sets a file in the form of /etc/hosts, of HVD_HOSTS_FILE, that says where the
 * hosts of addresses are (tcp/hosts_file.h); "": there is none. The text is
 * copied. Returns HVD_ERR_CONFIG if it cannot be read. To be called before the
 * functions below. */
int hvd__hosts_file_use(const char *path);

/* Opens a transport over TCP, when all ranks have met. Collective; ranks may
 * call it in any order. Returns HVD_ERR_CONFIG if this rank cannot listen,
 * HVD_ERR_LAUNCH if rank 0 refuses it, HVD_ERR_LOST if others do not come. */
int hvd__tcp_open(const struct hvd__tcp_options *options,
                  const struct hvd__asked *asked,
                  struct hvd__transport **transport);

/* Where processes of an elastic cluster wait until a world lets them in
 * (tcp/lobby.c). It outlives the transports. Whoever drives the engine uses it,
 * or starts or ends a world. */
struct hvd__lobby;

struct hvd__lobby_limits {
    int64_t limit_ns, report_ns, grace_ns; /* as in hvd__tcp_options */
    int64_t silence_ns; /* after which a guest leaves its host; 0: never */
};

/* The ranks that are to be a world of a cluster. */
struct hvd__admission {
    uint64_t number;    /* of the world; no other one has it */
    int32_t generation; /* as in hvd_recovery */
    int32_t nold;       /* so many come from the world before: the first ones */
    int n;
    int *ranks; /* owned, [n]: their ranks in the cluster */
};

/* Makes a lobby of the whole cluster, which options describe. The first world
 * needs least ranks, and no world has more than most: the others wait. */
int hvd__lobby_open(const struct hvd__tcp_options *options, int least, int most,
                    struct hvd__lobby **lobby);
/* Accepts NULL. Those who wait then call others. */
void hvd__lobby_close(struct hvd__lobby *lobby);

/* Blocks until a world lets this process in, or it founds one: *admission says
 * which, and the caller frees its ranks, also on failure. Returns
 * HVD_ERR_LAUNCH if another process refuses this one, HVD_ERR_LOST if none
 * comes within the limit, HVD_ERR_SHUTDOWN if the job ends. */
int hvd__lobby_enter(struct hvd__lobby *lobby,
                     const struct hvd__lobby_limits *limits,
                     const struct hvd__asked *asked,
                     struct hvd__admission *admission);
/* Opens the transport of those who were admitted, as hvd__tcp_open. */
int hvd__lobby_connect(struct hvd__lobby *lobby,
                       const struct hvd__admission *admission,
                       const struct hvd__lobby_limits *limits,
                       const struct hvd__asked *asked,
                       struct hvd__transport **transport);
/* Returns HVD_ERR_LOST if, while they meet, one whom this rank has let in is
 * gone, or the one who has let in this process gave up. */
int hvd__lobby_look(const struct hvd__lobby *lobby);
/* Ends what was admitted, when all are in a world, or will not be. */
void hvd__lobby_settle(struct hvd__lobby *lobby);
/* Sets the ranks of the cluster that are in the world; others may come. */
void hvd__lobby_members(struct hvd__lobby *lobby, const int *ranks, int n);

/* Nobody is let in any more. */
void hvd__lobby_shut(struct hvd__lobby *lobby);

/* Returns the number of ranks of the cluster. */
int hvd__lobby_size(const struct hvd__lobby *lobby);
/* Returns how many more ranks the world may have. */
int hvd__lobby_room(const struct hvd__lobby *lobby);
/* Returns how many guests wait here; any thread. */
int hvd__lobby_count(const struct hvd__lobby *lobby);
/* Takes those who call. */
int hvd__lobby_drive(struct hvd__lobby *lobby);
/* Writes a ticket for each guest that is alive, which no other one has, and 0
 * for other ranks: [size]. Returns how many. Takes 100 ms if one is stopped. */
int hvd__lobby_list(struct hvd__lobby *lobby, int64_t *tickets);
/* Tells those guests of this rank that have these tickets, and are admitted,
 * that they are in. */
void hvd__lobby_admit(struct hvd__lobby *lobby, const int64_t *tickets,
                      const struct hvd__admission *admission);
/* Tells all who wait that the job has ended. */
void hvd__lobby_end(struct hvd__lobby *lobby);

/* Opens a transport over UCX for the ranks of another one, which it then owns,
 * and on which its exchange and part work. A connection that breaks is an error
 * only after grace_ns, in which the watch may find out why. Collective: if one
 * rank fails, with HVD_ERR_UNSUPPORTED if it has no UCX, all do; then the other
 * transport stays the caller's. */
int hvd__ucx_open(struct hvd__transport *below, int64_t grace_ns,
                  struct hvd__transport **transport);

/* Closes a transport over UCX, without the other one, which is returned. It
 * waits for no rank. */
struct hvd__transport *hvd__ucx_drop(struct hvd__transport *transport);

/* Returns "1.13.1", a static text, or NULL with the last error set. */
const char *hvd__ucx_version(void);

/* Sends bytes to a rank and back, n times; both call it. *ns becomes the
 * shortest time of a round trip. Returns HVD_ERR_UNSUPPORTED if it takes longer
 * than limit_ns (0: no limit); then the transport can only be closed. */
int hvd__ping(struct hvd__transport *transport, int peer, size_t bytes, int n,
              int64_t limit_ns, const struct hvd__asked *asked, int64_t *ns);

/* Two ranks send each other count messages, at most HVD__PROBE_MESSAGES, of
 * bytes at the same time, n times, and all of that a few times; both call it.
 * *ns becomes the time until all have been sent and received: the shortest mean
 * of n. */
enum { HVD__PROBE_MESSAGES = 16 };
int hvd__probe(struct hvd__transport *transport, int peer, size_t bytes,
               int count, int n, const struct hvd__asked *asked, int64_t *ns);

/* Makes MPI live. If the program has not initialised it, this call does, and
 * MPI is finalised at exit. *threads becomes true if a thread of the library
 * may call MPI while the program runs. If not, *note is a static text about the
 * cost, else NULL. */
int hvd__mpi_start(bool *threads, const char **note);

/* Waits, for some seconds at most, until Open MPI's thread has handled what
 * MPI_Init left to it; once in a process. */
void hvd__mpi_settle(void);

/* Allocates the ranks in MPI_COMM_WORLD of a communicator's *n ranks, in their
 * order, negative for those of other jobs. The caller frees them. */
int hvd__mpi_members(const void *comm, int **ranks, int *n);

/* Returns "Open MPI 4.1.4", a static text. */
const char *hvd__mpi_library(void);

/* Returns whether MPI is initialised and not finalised. */
bool hvd__mpi_is_live(void);

/* Sets the function that is called once when MPI is about to be finalised or
 * the process exits, whichever comes first, while MPI still works. NULL: none.
 * If fn sets itself again, an exit leaves MPI without finalising it. */
void hvd__mpi_before_end(void (*fn)(void));

/* Sees to it that this function is called at an exit also if MPI was never
 * started. */
int hvd__watch_exit(void);

/* Sets two functions. enter is called when MPI is being finalised, after the
 * one above and before ranks wait for each other; is_last: the process exits.
 * leave is called when MPI_Finalize has returned, if the process exits, or else
 * when the process exits and the program has finalised MPI before. */
void hvd__mpi_around_end(void (*enter)(bool is_last), void (*leave)(void));

#endif
