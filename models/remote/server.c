/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.c - the loop of a server: the door, at most one training, and a client
 * who waits for a training to end whose client has gone. Everything happens on
 * one thread, and nothing but poll waits.
 */
#include "remote/server.h"

#include "output/problem.h"
#include "remote/door.h"
#include "remote/link.h"
#include "remote/serving.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_WAITS = 1 + 1 + DOOR_MOST + SERVING_MOST_WAITS };
/* Something is looked at so often that no descriptor tells: a worker's end, and
 * who has been silent. */
enum { TICK_MS = 100 };

struct remote_server {
    const struct remote_party *party;
    int job_port;
    int signals; /* owned */
    struct remote_door *door;
    struct serving *serving; /* NULL: nobody trains */
    int next;                /* owned; a client whose turn comes; -1: none */
    char next_from[DOOR_ADDRESS];
};

/* Tells a client that it comes at the wrong time. What does not fit into the
 * kernel's buffer is not missed. */
static void send_away(const struct remote_server *server, int fd)
{
    struct remote_link link;
    char since[DOOR_ADDRESS + 40] = "another client", why[256];

    if (server->serving)
        serving_describe(server->serving, since, sizeof since);
    snprintf(why, sizeof why,
             "this server trains for %s: try again when that has ended", since);
    if (link_init(&link, fd) < 0)
        return;
    if (link_send(&link, FRAME_REFUSAL, 0, why, strlen(why)) == 0)
        link_write(&link);
    /* A close with unread bytes would take the answer with it. */
    shutdown(fd, SHUT_WR);
    link_fini(&link);
}

static void let_in(struct remote_server *server, int fd, const char *from)
{
    if (!server->serving) {
        server->serving = serving_new(server->party, server->door,
                                      server->job_port, fd, from);
    } else if (!serving_has_client(server->serving) && server->next < 0) {
        server->next = fd;
        memcpy(server->next_from, from, DOOR_ADDRESS);
    } else {
        send_away(server, fd);
    }
}

static void tend_serving(struct remote_server *server)
{
    if (server->serving && serving_tend(server->serving)) {
        serving_free(server->serving);
        server->serving = NULL;
    }
    if (!server->serving && server->next >= 0) {
        int fd = server->next;

        server->next = -1;
        let_in(server, fd, server->next_from);
    }
}

/* Waits until something happens. Returns the number of a signal, or 0. */
static int wait_for_more(const struct remote_server *server)
{
    struct pollfd fds[MOST_WAITS];
    struct signalfd_siginfo signal;
    nfds_t n = 1;

    fds[0] = (struct pollfd){server->signals, POLLIN, 0};
    n += (nfds_t)door_wait(server->door, fds + n);
    if (server->serving)
        n += (nfds_t)serving_wait(server->serving, fds + n);
    poll(fds, n, server->serving || n > 2 ? TICK_MS : -1);
    if (read(server->signals, &signal, sizeof signal) == sizeof signal)
        return (int)signal.ssi_signo;
    return 0;
}

static int serve(struct remote_server *server)
{
    for (;;) {
        char from[DOOR_ADDRESS];
        int signal = wait_for_more(server), fd;

        if (signal)
            return signal;
        while ((fd = door_tend(server->door, from)) >= 0)
            let_in(server, fd, from);
        tend_serving(server);
    }
}

int server_run(const struct remote_party *party, int job_port)
{
    struct remote_server server = {
        .party = party, .job_port = job_port, .next = -1};
    sigset_t set;
    int status;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    server.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (server.signals < 0)
        return problem_set("signals cannot be waited for: %s", strerror(errno));
    status = door_open(party, &server.door);
    if (status == 0) {
        fprintf(stderr, "hvd-server: %s waits for clients\n",
                party_name(party, party_rank(party)));
        status = serve(&server);
    }
    serving_free(server.serving);
    if (server.next >= 0)
        close(server.next);
    door_close(server.door);
    close(server.signals);
    return status;
}
