/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harm.c - signals to processes, and links that go down.
 *
 * A process is addressed by a descriptor (pidfd), so that a signal never
 * reaches another process that has got its number. A slow process is stopped
 * and continued ten times a second.
 *
 * The links of a rank are those of its network namespace, if that is not ours.
 * A short-lived child enters the namespace and switches off all links that are
 * up, except the loopback interface; later another one switches the same links
 * on again. The kernel then restores the routes to the networks of the links,
 * but no others.
 */
#include "chaos/harm.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLICE 0.1

static int send_signal(int process, int number)
{
    return (int)syscall(SYS_pidfd_send_signal, process, number, NULL, 0);
}

/* -------------------------------------------------------------------- links */

enum { LINKS_MOST = 8 * sizeof(unsigned) };

/* Switches a link. Returns whether it is done; a link that is as it should be
 * already is not. */
static bool switch_link(int at, int index, bool on)
{
    struct ifreq link = {0};
    bool is_on;

    link.ifr_ifindex = index;
    if (ioctl(at, SIOCGIFNAME, &link) != 0 ||
        ioctl(at, SIOCGIFFLAGS, &link) != 0 || (link.ifr_flags & IFF_LOOPBACK))
        return false;
    is_on = link.ifr_flags & IFF_UP;
    if (on == is_on)
        return false;
    link.ifr_flags =
        (short)(on ? link.ifr_flags | IFF_UP : link.ifr_flags & ~IFF_UP);
    return ioctl(at, SIOCSIFFLAGS, &link) == 0;
}

/* Switches those of the namespace's links whose bits are set. Writes the bits
 * of those that were switched, or -errno. */
static void switch_links(int network, unsigned links, bool on, int answer)
{
    int64_t done = 0;
    int at = -1;

    if (setns(network, CLONE_NEWNET) == 0)
        at = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (at < 0)
        done = -errno;
    for (int i = 1; at >= 0 && i < (int)LINKS_MOST; i++)
        if (links >> i & 1 && switch_link(at, i, on))
            done |= INT64_C(1) << i;
    _exit(write(answer, &done, sizeof done) == (ssize_t)sizeof done ? 0 : 1);
}

/* Does that in a child. Returns the bits, or -1 with errno set. */
static int64_t links_switch(int network, unsigned links, bool on)
{
    int64_t done = -EIO;
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid = fork();
    if (pid == 0)
        switch_links(network, links, on, ends[1]);
    close(ends[1]);
    if (pid < 0 || read(ends[0], &done, sizeof done) != (ssize_t)sizeof done)
        done = -EIO;
    close(ends[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (done >= 0)
        return done;
    errno = (int)-done;
    return -1;
}

static int cut(struct harm *harm, char *error, size_t size)
{
    char path[64];
    int64_t done;

    if (!harm->rank.is_remote) {
        snprintf(error, size, "it is in this host's own network namespace");
        return -1;
    }
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)harm->rank.pid);
    harm->network = open(path, O_RDONLY | O_CLOEXEC);
    done = harm->network < 0 ? -1 : links_switch(harm->network, ~0U, false);
    if (done > 0) {
        harm->links = (unsigned)done;
        return 0;
    }
    snprintf(error, size, "%s",
             done < 0 ? strerror(errno)
                      : "its network namespace has no link that is up");
    return -1;
}

/* ---------------------------------------------------------------- beginning */

static int fail(char *error, size_t size)
{
    snprintf(error, size, "%s", strerror(errno));
    return -1;
}

static int begin(struct harm *harm, char *error, size_t size)
{
    if (harm->kind == CHAOS_CUT)
        return cut(harm, error, size);
    harm->process = (int)syscall(SYS_pidfd_open, harm->rank.pid, 0);
    if (harm->process < 0 ||
        send_signal(harm->process,
                    harm->kind == CHAOS_KILL ? SIGKILL : SIGSTOP) != 0)
        return fail(error, size);
    harm->is_stopped = true;
    return 0;
}

static void forget(struct harm *harm)
{
    if (harm->process >= 0)
        close(harm->process);
    if (harm->network >= 0)
        close(harm->network);
}

int harm_begin(struct harms *harms, const struct chaos_settings *settings,
               const struct job_rank *rank, enum chaos_kind kind, char *error,
               size_t size)
{
    struct harm harm = {.kind = kind,
                        .rank = *rank,
                        .process = -1,
                        .network = -1,
                        .share = settings->slow_share};
    double now = chaos_now();

    if (harms->n == HARM_MOST) {
        snprintf(error, size, "%d ranks are under harm already", HARM_MOST);
        return -1;
    }
    if (begin(&harm, error, size) < 0) {
        forget(&harm);
        return -1;
    }
    if (settings->lasts[kind] > 0)
        harm.until = now + settings->lasts[kind];
    if (kind == CHAOS_SLOW)
        harm.next = now + SLICE * (1 - harm.share);
    if (kind == CHAOS_KILL)
        forget(&harm);
    else
        harms->all[harms->n++] = harm;
    return 0;
}

bool harm_has(const struct harms *harms, const struct job_rank *rank)
{
    for (int i = 0; i < harms->n; i++)
        if (harms->all[i].rank.pid == rank->pid ||
            (harms->all[i].kind == CHAOS_CUT &&
             harms->all[i].rank.network == rank->network))
            return true;
    return false;
}

/* ------------------------------------------------------------------- ending */

static void take_back(struct harm *harm)
{
    if (harm->kind == CHAOS_CUT)
        links_switch(harm->network, harm->links, true);
    else if (harm->is_stopped)
        send_signal(harm->process, SIGCONT);
    forget(harm);
}

/* Stops or continues a slow process. */
static void turn(struct harm *harm, double now)
{
    harm->is_stopped = !harm->is_stopped;
    send_signal(harm->process, harm->is_stopped ? SIGSTOP : SIGCONT);
    harm->next =
        now + SLICE * (harm->is_stopped ? 1 - harm->share : harm->share);
}

double harm_continue(struct harms *harms, double now)
{
    double next = 0;

    for (int i = 0; i < harms->n; i++) {
        struct harm *harm = &harms->all[i];

        if (harm->until > 0 && now >= harm->until) {
            take_back(harm);
            harms->all[i--] = harms->all[--harms->n];
            continue;
        }
        if (harm->kind == CHAOS_SLOW && now >= harm->next)
            turn(harm, now);
        if (harm->until > 0 && (next == 0 || harm->until < next))
            next = harm->until;
        if (harm->kind == CHAOS_SLOW && (next == 0 || harm->next < next))
            next = harm->next;
    }
    return next;
}

void harm_end(struct harms *harms)
{
    while (harms->n > 0)
        take_back(&harms->all[--harms->n]);
}
