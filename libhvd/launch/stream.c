/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - passes lines on. A line is written at once, so that lines of
 * several tasks do not mix; one that is too long for the buffer is cut in
 * pieces. Where nobody reads any more, the rest is dropped: a task must not
 * wait for that.
 */
#include "launch/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int launch__stream_open(struct launch__stream *stream, const char *name, int to)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    stream->from = ends[0];
    stream->to = to;
    snprintf(stream->prefix, sizeof stream->prefix, "[%s] ", name);
    stream->used = 0;
    return ends[1];
}

static void write_all(int to, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(to, bytes, count);

        if (written < 0 && errno == EAGAIN) {
            /* Somebody has made a shared terminal or pipe nonblocking. */
            poll(&(struct pollfd){.fd = to, .events = POLLOUT}, 1, 1000);
            continue;
        }
        if (written < 0 && errno != EINTR)
            return;
        if (written > 0) {
            bytes += written;
            count -= (size_t)written;
        }
    }
}

static void put_line(struct launch__stream *stream)
{
    write_all(stream->to, stream->line, stream->used);
    stream->used = 0;
}

static void put_byte(struct launch__stream *stream, char byte)
{
    if (stream->used == 0) {
        stream->used = strlen(stream->prefix);
        memcpy(stream->line, stream->prefix, stream->used);
    }
    stream->line[stream->used++] = byte;
    if (stream->used == sizeof stream->line - 1 && byte != '\n')
        stream->line[stream->used++] = '\n';
    if (stream->line[stream->used - 1] == '\n')
        put_line(stream);
}

static void finish(struct launch__stream *stream)
{
    if (stream->used > 0)
        put_byte(stream, '\n');
    close(stream->from);
    stream->from = -1;
}

void launch__stream_pump(struct launch__stream *stream)
{
    char bytes[4096];
    ssize_t got;

    while (stream->from >= 0) {
        got = read(stream->from, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0)
            finish(stream);
        for (ssize_t i = 0; i < got; i++)
            put_byte(stream, bytes[i]);
    }
}

void launch__stream_close(struct launch__stream *stream)
{
    launch__stream_pump(stream);
    if (stream->from >= 0)
        finish(stream);
}
