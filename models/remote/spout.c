/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/spout.h"

#include "output/problem.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A descriptor that is ready takes so much without waiting: a pipe has room for
 * PIPE_BUF bytes. A longer line is cut. */
enum { AT_ONCE = 4096, MOST_LINE = 1 << 16 };

size_t spout_waiting(const struct spout *spout)
{
    return spout->count - spout->done;
}

int spout_add(struct spout *spout, const char *text, size_t bytes)
{
    if (spout->done == spout->count)
        spout->done = spout->count = 0;
    if (spout->count + bytes > spout->room) {
        size_t room = 2 * (spout->count + bytes);
        char *grown = realloc(spout->text, room);

        if (!grown)
            return problem_set("no memory for what the servers print");
        spout->text = grown;
        spout->room = room;
    }
    memcpy(spout->text + spout->count, text, bytes);
    spout->count += bytes;
    return 0;
}

static int write_some(struct spout *spout)
{
    size_t left = spout_waiting(spout);
    ssize_t wrote = write(spout->fd, spout->text + spout->done,
                          left < AT_ONCE ? left : AT_ONCE);

    if (wrote >= 0)
        spout->done += (size_t)wrote;
    else if (errno != EINTR && errno != EAGAIN)
        return problem_set("standard %s: %s",
                           spout->fd == STDERR_FILENO ? "error" : "output",
                           strerror(errno));
    return 0;
}

int spout_write(struct spout *spout)
{
    struct pollfd one = {spout->fd, POLLOUT, 0};

    if (spout_waiting(spout) == 0 || poll(&one, 1, 0) <= 0)
        return 0;
    return write_some(spout);
}

int spout_drain(struct spout *spout)
{
    struct pollfd one = {spout->fd, POLLOUT, 0};

    while (spout_waiting(spout) > 0) {
        poll(&one, 1, -1);
        if (write_some(spout) < 0)
            return PROBLEM;
    }
    return 0;
}

void spout_fini(struct spout *spout)
{
    free(spout->text);
    spout->text = NULL;
    spout->count = spout->done = spout->room = 0;
}

static int keep_part(struct spout_lines *lines, const char *text, size_t bytes)
{
    char *grown = realloc(lines->text, lines->count + bytes + 1);

    if (!grown)
        return problem_set("no memory for what the servers print");
    memcpy(grown + lines->count, text, bytes);
    lines->text = grown;
    lines->count += bytes;
    return 0;
}

static int add_line(struct spout *spout, struct spout_lines *lines,
                    const char *name)
{
    int status = spout_add(spout, name, strlen(name));

    if (status == 0)
        status = spout_add(spout, ": ", 2);
    if (status == 0)
        status = spout_add(spout, lines->text, lines->count);
    if (status == 0)
        status = spout_add(spout, "\n", 1);
    lines->count = 0;
    return status;
}

int spout_add_lines(struct spout *spout, struct spout_lines *lines,
                    const char *name, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const char *newline = memchr(text, '\n', bytes);
        size_t part = newline ? (size_t)(newline - text) : bytes;

        if (keep_part(lines, text, part) < 0)
            return PROBLEM;
        if ((newline || lines->count > MOST_LINE) &&
            add_line(spout, lines, name) < 0)
            return PROBLEM;
        part += newline != NULL;
        text += part;
        bytes -= part;
    }
    return 0;
}
