/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - calls all servers, sends each its files as soon as it welcomes the
 * client, and lets them start when all are ready. From then on it relays, until
 * all have ended. One failure is the failure of all: the client gives the
 * others two seconds to say what they saw, and hangs up.
 */
#include "remote/client.h"

#include "base/clock.h"
#include "output/problem.h"
#include "remote/call.h"
#include "remote/folder.h"
#include "remote/link.h"
#include "remote/party.h"
#include "remote/spout.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_WAITING = 1 << 20, CHUNK = 1 << 16, TICK_MS = 250 };
#define GRACE_NS INT64_C(2000000000)

enum stage { CALLED, SENDING, READY, STARTED, ENDED };

/* A server, as its client sees it. */
struct peer {
    struct remote_client *client; /* borrowed */
    int rank;
    enum stage stage;
    struct remote_link link;
    int files[REMOTE_FILES]; /* owned; -1: it does not come, or has been sent */
    char *description;       /* owned; with the sizes of its files */
    uint32_t port;
    struct spout_lines lines[2];
    bool gave_up; /* its worker ended by itself, with a failure */
};

struct remote_client {
    struct remote_party *party; /* owned */
    struct peer *peers;         /* owned, [size] */
    const struct remote_job *job;
    struct spout out, error;
    char failure[1024]; /* "": none */
    bool is_cause;      /* the failure is no mere consequence of another */
    int64_t failed_ns;  /* the first */
};

/* ----------------------------------------------------------- beginning, end */

int client_new(const char *cluster, struct remote_client **made)
{
    struct remote_client *client = calloc(1, sizeof *client);
    int size, status;

    if (!client)
        return problem_set("no memory for a client");
    client->out.fd = STDOUT_FILENO;
    client->error.fd = STDERR_FILENO;
    status = party_new(cluster, NULL, true, &client->party);
    size = status == 0 ? party_size(client->party) : 0;
    if (status == 0)
        client->peers = calloc((size_t)size, sizeof *client->peers);
    if (status == 0 && !client->peers)
        status = problem_set("no memory for a client");
    for (int rank = 0; rank < size && client->peers; rank++) {
        struct peer *peer = &client->peers[rank];

        *peer =
            (struct peer){.client = client, .rank = rank, .link = {.fd = -1}};
        for (int i = 0; i < REMOTE_FILES; i++)
            peer->files[i] = -1;
    }
    if (status == 0)
        *made = client;
    else
        client_free(client);
    return status;
}

static void peer_fini(struct peer *peer)
{
    link_fini(&peer->link);
    for (int i = 0; i < REMOTE_FILES; i++)
        if (peer->files[i] >= 0)
            close(peer->files[i]);
    free(peer->description);
    free(peer->lines[0].text);
    free(peer->lines[1].text);
}

void client_free(struct remote_client *client)
{
    if (!client)
        return;
    for (int rank = 0; client->peers && rank < client_size(client); rank++)
        peer_fini(&client->peers[rank]);
    free(client->peers);
    party_free(client->party);
    spout_fini(&client->out);
    spout_fini(&client->error);
    free(client);
}

int client_size(const struct remote_client *client)
{
    return party_size(client->party);
}

/* Notes why a server's part of the training is over before its time. The first
 * reason is kept, unless it is that a worker gave up, which workers do when
 * another has died. */
static void fail_peer(struct peer *peer, const char *why)
{
    struct remote_client *client = peer->client;
    const bool is_cause = !peer->gave_up;

    peer->stage = ENDED;
    link_fini(&peer->link);
    if (*client->failure == '\0')
        client->failed_ns = hvd__now_ns();
    else if (client->is_cause || !is_cause)
        return;
    client->is_cause = is_cause;
    snprintf(client->failure, sizeof client->failure, "%s: %s",
             party_name(client->party, peer->rank), why);
}

/* ------------------------------------------------------------ what it sends */

/* Opens the files that prepare has written, which then are removed. */
static int open_files(struct peer *peer, const char *folder)
{
    struct remote_description *d = peer->client->job->description;

    for (int i = 0; i < REMOTE_FILES; i++) {
        char path[FOLDER_BYTES + 32];
        struct stat st;

        snprintf(path, sizeof path, "%s/%s", folder, remote_file_names[i]);
        d->files[i] = -1;
        peer->files[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (peer->files[i] < 0 && errno == ENOENT && i == REMOTE_FILE_TEXT)
            continue;
        if (peer->files[i] < 0 || fstat(peer->files[i], &st) != 0)
            return problem_set("%s: %s", path, strerror(errno));
        d->files[i] = st.st_size;
    }
    peer->description = remote_description_write(d);
    return peer->description ? 0 : PROBLEM;
}

static int prepare_peer(struct peer *peer)
{
    const struct remote_job *job = peer->client->job;
    const int size = client_size(peer->client);
    struct remote_folder folder;
    int status;

    if (folder_make(&folder) < 0)
        return PROBLEM;
    status = job->prepare(job->context, peer->rank, size, folder.path);
    if (status == 0)
        status = open_files(peer, folder.path);
    folder_remove(&folder);
    return status;
}

/* Sends pieces of the files, as long as not too much waits. */
static int send_files(struct peer *peer)
{
    char piece[CHUNK];

    for (int i = 0; i < REMOTE_FILES; i++) {
        while (peer->files[i] >= 0 &&
               link_waiting(&peer->link) < MOST_WAITING) {
            ssize_t got = read(peer->files[i], piece, sizeof piece);

            if (got < 0)
                return problem_set("%s: %s", remote_file_names[i],
                                   strerror(errno));
            if (got == 0) {
                close(peer->files[i]);
                peer->files[i] = -1;
            } else if (link_send(&peer->link, FRAME_FILE, (unsigned)i, piece,
                                 (size_t)got) < 0) {
                return PROBLEM;
            }
        }
    }
    return 0;
}

/* Lets all start, once all are ready. */
static int start_all(struct remote_client *client)
{
    const int size = client_size(client);
    uint32_t *ports;
    int status = 0;

    for (int rank = 0; rank < size; rank++)
        if (client->peers[rank].stage != READY)
            return 0;
    ports = malloc((size_t)size * sizeof *ports);
    if (!ports)
        return problem_set("no memory for a training");
    for (int rank = 0; rank < size; rank++)
        ports[rank] = client->peers[rank].port;
    for (int rank = 0; rank < size && status == 0; rank++) {
        status = link_send(&client->peers[rank].link, FRAME_START, 0, ports,
                           (size_t)size * sizeof *ports);
        client->peers[rank].stage = STARTED;
    }
    free(ports);
    return status;
}

/* ---------------------------------------------------------- what it is told */

/* Rank 0's standard output is that of the program; all else is marked. */
static int take_output(struct peer *peer, const struct frame *frame)
{
    struct remote_client *client = peer->client;

    if (frame->item != 1 && frame->item != 2)
        return problem_set("what it printed came from nowhere");
    if (frame->item == 1 && peer->rank == 0)
        return spout_add(&client->out, frame->data, frame->bytes);
    return spout_add_lines(&client->error, &peer->lines[frame->item - 1],
                           party_name(client->party, peer->rank), frame->data,
                           frame->bytes);
}

static int take_result(struct peer *peer, const struct frame *frame)
{
    const struct remote_job *job = peer->client->job;

    if (peer->rank != 0 || frame->item >= REMOTE_RESULTS ||
        !job->description->results[frame->item])
        return problem_set("a result came that nobody wants");
    return job->take(job->context, (enum remote_result)frame->item, frame->data,
                     frame->bytes);
}

static int take_end(struct peer *peer, const struct frame *frame)
{
    char why[256];

    snprintf(why, sizeof why, "%.*s", (int)frame->bytes,
             (const char *)frame->data);
    peer->gave_up = frame->kind == FRAME_END && frame->item < 128;
    if (frame->kind == FRAME_REFUSAL || frame->item != 0)
        return problem_set("%s", *why ? why : "it gives no reason");
    if (peer->stage != STARTED)
        return problem_set("it has ended before it began");
    peer->stage = ENDED;
    link_fini(&peer->link);
    return 0;
}

static int take_frame(void *context, const struct frame *frame)
{
    struct peer *peer = context;

    switch (frame->kind) {
    case FRAME_WELCOME:
        if (peer->stage != CALLED)
            break;
        peer->stage = SENDING;
        return link_send(&peer->link, FRAME_JOB, 0, peer->description,
                         strlen(peer->description));
    case FRAME_READY:
        if (peer->stage != SENDING || frame->bytes != sizeof peer->port)
            break;
        memcpy(&peer->port, frame->data, sizeof peer->port);
        peer->stage = READY;
        return start_all(peer->client);
    case FRAME_OUTPUT: return take_output(peer, frame);
    case FRAME_RESULT: return take_result(peer, frame);
    case FRAME_END:
    case FRAME_REFUSAL: return take_end(peer, frame);
    default: break;
    }
    return problem_set("a frame came that does not belong there");
}

/* ----------------------------------------------------------------- the loop */

/* As long as nobody takes what was printed, nothing more is read. */
static bool is_deaf(const struct remote_client *client)
{
    return spout_waiting(&client->out) > MOST_WAITING ||
           spout_waiting(&client->error) > MOST_WAITING;
}

static int wait_for_more(const struct remote_client *client, struct pollfd *fds)
{
    const struct spout *spouts[] = {&client->out, &client->error};
    const short reads = is_deaf(client) ? 0 : POLLIN;
    nfds_t n = 0;

    for (int i = 0; i < 2; i++)
        if (spout_waiting(spouts[i]) > 0)
            fds[n++] = (struct pollfd){spouts[i]->fd, POLLOUT, 0};
    for (int rank = 0; rank < client_size(client); rank++) {
        const struct remote_link *link = &client->peers[rank].link;
        const short writes = link_waiting(link) > 0 ? POLLOUT : 0;

        if (link->fd >= 0)
            fds[n++] = (struct pollfd){link->fd, (short)(reads | writes), 0};
    }
    poll(fds, n, TICK_MS);
    return (int)n;
}

static int tend_peer(struct peer *peer)
{
    const bool deaf = is_deaf(peer->client);

    if (!deaf && link_read(&peer->link, take_frame, peer) < 0)
        return PROBLEM;
    if (peer->stage == ENDED)
        return 0;
    if (peer->stage == SENDING && send_files(peer) < 0)
        return PROBLEM;
    if (link_tend(&peer->link, deaf) < 0)
        return PROBLEM;
    return link_write(&peer->link);
}

/* Returns whether there is nothing more to wait for. */
static bool is_over(const struct remote_client *client)
{
    if (*client->failure && hvd__now_ns() - client->failed_ns > GRACE_NS)
        return true;
    for (int rank = 0; rank < client_size(client); rank++)
        if (client->peers[rank].stage != ENDED)
            return false;
    return true;
}

static int relay(struct remote_client *client)
{
    struct pollfd *fds = calloc((size_t)client_size(client) + 2, sizeof *fds);

    if (!fds)
        return problem_set("no memory for a training");
    while (!is_over(client)) {
        wait_for_more(client, fds);
        for (int rank = 0; rank < client_size(client); rank++) {
            struct peer *peer = &client->peers[rank];

            if (peer->stage != ENDED && tend_peer(peer) < 0)
                fail_peer(peer, problem_text());
        }
        if (spout_write(&client->out) < 0 || spout_write(&client->error) < 0) {
            free(fds);
            return PROBLEM;
        }
    }
    free(fds);
    return 0;
}

/* Calls all servers. */
static int call_all(struct remote_client *client)
{
    for (int rank = 0; rank < client_size(client); rank++) {
        int fd;

        if (call_server(client->party, rank, &fd) < 0 ||
            link_init(&client->peers[rank].link, fd) < 0)
            return PROBLEM;
    }
    return 0;
}

int client_train(struct remote_client *client, const struct remote_job *job)
{
    int status = 0;

    client->job = job;
    for (int rank = 0; rank < client_size(client) && status == 0; rank++)
        status = prepare_peer(&client->peers[rank]);
    if (status == 0)
        status = call_all(client);
    if (status == 0)
        status = relay(client);
    /* Hang up first: the servers need not wait for this side's terminal. */
    for (int rank = 0; rank < client_size(client); rank++)
        link_fini(&client->peers[rank].link);
    if (status == 0)
        status = spout_drain(&client->out);
    if (status == 0)
        status = spout_drain(&client->error);
    if (status == 0 && *client->failure)
        status = problem_set("%s", client->failure);
    return status;
}
