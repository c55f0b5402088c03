/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - writes without being ended by a signal.
 *
 * A write to a FIFO whose reader has gone sends SIGPIPE, and one beyond the
 * limit of RLIMIT_FSIZE sends SIGXFSZ; both end the process by default. A
 * library must not let a job die of a file of metrics. So both are blocked
 * while a write goes on, and taken back if it has sent one: the errno remains.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "disk/disk.h"
#include "disk/parts.h"

struct quiet {
    sigset_t before;  /* the thread's mask */
    sigset_t pending; /* signals pending before */
};

static void begin_quiet(struct quiet *quiet, sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGPIPE);
    sigaddset(signals, SIGXFSZ);
    sigpending(&quiet->pending);
    pthread_sigmask(SIG_BLOCK, signals, &quiet->before);
}

/* Restores the mask. sent: the signal that a failed call has sent, if any. */
static void end_quiet(const struct quiet *quiet, int sent)
{
    static const struct timespec now = {0, 0};
    int kept = errno;
    sigset_t one;

    if (sent && !sigismember(&quiet->pending, sent)) {
        sigemptyset(&one);
        sigaddset(&one, sent);
        sigtimedwait(&one, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
    errno = kept;
}

static int signal_of(bool failed)
{
    if (failed && errno == EPIPE)
        return SIGPIPE;
    return failed && errno == EFBIG ? SIGXFSZ : 0;
}

static ssize_t write_some(int fd, const void *data, size_t bytes, off_t at)
{
    struct quiet quiet;
    sigset_t signals;
    ssize_t n;

    begin_quiet(&quiet, &signals);
    n = at < 0 ? write(fd, data, bytes) : pwrite(fd, data, bytes, at);
    end_quiet(&quiet, signal_of(n < 0));
    return n;
}

/* Waits for room in a FIFO whose reader takes its time. */
static int wait_for_room(int fd, int patience_ms)
{
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    int n = poll(&one, 1, patience_ms);

    if (n == 0)
        return DISK__UNREAD;
    return n > 0 || errno == EINTR ? 0 : -errno;
}

int disk__write_all(int fd, const void *data, size_t bytes, off_t at,
                    int patience_ms)
{
    const char *from = data;
    int status = 0;

    while (bytes > 0 && status == 0) {
        ssize_t n = write_some(fd, from, bytes, at);

        if (n > 0) {
            from += n;
            bytes -= (size_t)n;
            at += at < 0 ? 0 : n;
        } else if (n == 0) {
            status = -EIO; /* cannot happen with a file */
        } else if (errno == EAGAIN) {
            status = wait_for_room(fd, patience_ms);
        } else if (errno != EINTR) {
            status = -errno;
        }
    }
    return status;
}

int disk__write_at(int fd, const void *data, size_t bytes, off_t at)
{
    return disk__write_all(fd, data, bytes, at, 0);
}

int disk__reserve(int fd, off_t at, size_t bytes)
{
    struct quiet quiet;
    sigset_t signals;
    int failed;

    if (bytes == 0)
        return 0;
    begin_quiet(&quiet, &signals);
    do
        failed = fallocate(fd, FALLOC_FL_KEEP_SIZE, at, (off_t)bytes);
    while (failed && errno == EINTR);
    end_quiet(&quiet, signal_of(failed));
    return failed ? -errno : 0;
}
