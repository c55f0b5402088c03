/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.c - writes the timeline in the JSON object form of Chrome's trace
 * event format. The trace writer (trace_writer.c) calls it.
 *
 *     {"displayTimeUnit":"ms","otherData":{...},"traceEvents":[
 *     {...},
 *     {...}
 *     ]}
 *
 * All ranks append to one file. A flush locks it, makes sure that there is room
 * for what it adds, and overwrites the closing brackets by its events and new
 * closing brackets, with one write: so the file is valid between any two
 * writes, and an abort loses only what was not yet flushed. If there is no
 * room, the file stays as it was, and its last byte, which is white space,
 * tells the other ranks that it has ended. A rank of a host that does not see
 * the file cannot open it, and then no rank begins.
 *
 * A rank is a process of the trace; each name is a row, with phases nested as
 * Horovod names them: the operation holds NEGOTIATE_X (submitted to agreed on),
 * QUEUE (to started), MEMCPY_IN_FUSION_BUFFER, MPI_X and
 * MEMCPY_OUT_FUSION_BUFFER. If wanted, CYCLE_START marks each batch. Times are
 * microseconds of rank 0's clock.
 */
#include "trace/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "disk/disk.h"

/* CAPACITY spans, at 300 bytes each, fit between two flushes. */
enum { CAPACITY = 16384, MOST_ROWS = 4096 };

enum { TAIL_BYTES = 4 };

/* The end of the file; and the end of a file to which no rank appends any more,
 * since one found no room. Both are white space and the same brackets. */
static const char tail[TAIL_BYTES + 1] = "\n]}\n";
static const char last_tail[TAIL_BYTES + 1] = "\n]} ";

/* The reasons why an append failed, besides the statuses of disk.h. */
enum { ENDED = 1, CHANGED = 2 };

struct row {
    char name[96];
};

struct hvd__timeline {
    char *path; /* owned */
    int fd;     /* owned; -1: writing has failed */
    int rank;
    int64_t offset_ns;
    pthread_mutex_t lock;    /* guards the next three */
    struct hvd__span *spans; /* owned, [CAPACITY] */
    int nspans;
    int64_t dropped;
    struct hvd__span *writing; /* owned, [CAPACITY]; used by the flusher */
    struct row *rows;          /* owned, [MOST_ROWS]; used by the flusher */
    int nrows;
    char *text; /* owned, used by the flusher: the next write */
    size_t length;
    size_t capacity;
    bool lacks_memory; /* the text lacks what was added last */
    bool closed;       /* no rank appends to the file */
    bool marks_cycles;
    int64_t marked_ns; /* the cycle that was marked last; used by the flusher */
};

/* --------------------------------------------------------------------- text */

/* Adds to the text, leaving room for the tail, so that it can be written. */
__attribute__((format(printf, 2, 3))) static void add(struct hvd__timeline *t,
                                                      const char *format, ...)
{
    va_list arguments;
    int n;

    for (;;) {
        size_t room = t->capacity - t->length;
        char *grown;

        va_start(arguments, format);
        n = vsnprintf(t->text ? t->text + t->length : NULL, room, format,
                      arguments);
        va_end(arguments);
        if (n < 0 || (size_t)n + TAIL_BYTES < room)
            break;
        grown = realloc(t->text, 2 * t->capacity + (size_t)n + 1024);
        if (!grown) {
            t->lacks_memory = true;
            return;
        }
        t->text = grown;
        t->capacity = 2 * t->capacity + (size_t)n + 1024;
    }
    t->length += n > 0 ? (size_t)n : 0;
}

/* Returns the bytes of a well-formed UTF-8 character at text; 0: it is none
 * (RFC 3629). */
static int utf8_length(const unsigned char *text)
{
    int n = text[0] < 0x80                       ? 1
            : text[0] >= 0xc2 && text[0] < 0xe0  ? 2
            : text[0] >= 0xe0 && text[0] < 0xf0  ? 3
            : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                 : 0;

    for (int i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) ||
        (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) ||
        (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return n;
}

/* Adds a JSON string; bytes that are not UTF-8 become the replacement
 * character. */
static void add_string(struct hvd__timeline *t, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    add(t, "\"");
    while (*at) {
        int n = utf8_length(at);

        if (n == 0) {
            add(t, "\\ufffd");
            at++;
        } else if (*at < 0x20 || *at == '"' || *at == '\\' || *at == 0x7f) {
            add(t, "\\u%04x", *at++);
        } else {
            add(t, "%.*s", n, (const char *)at);
            at += n;
        }
    }
    add(t, "\"");
}

/* ------------------------------------------------------------------- events */

static void add_name(struct hvd__timeline *t, const char *what, int row,
                     const char *name)
{
    add(t,
        ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,"
        "\"args\":{\"name\":",
        what, t->rank, row);
    add_string(t, name);
    add(t, "}}");
}

/* Returns the row of a name; new ones are announced. Names for which there is
 * no room share the last row. */
static int row_of(struct hvd__timeline *t, const char *name)
{
    int i = 0;

    while (i < t->nrows && strcmp(t->rows[i].name, name) != 0)
        i++;
    if (i == t->nrows && i < MOST_ROWS) {
        bool full = ++t->nrows == MOST_ROWS;

        snprintf(t->rows[i].name, sizeof t->rows[i].name, "%s", name);
        add_name(t, "thread_name", i + 1, full ? "and others" : name);
    }
    return i < MOST_ROWS ? i + 1 : MOST_ROWS;
}

/* Adds microseconds; in integers, since floats have a comma in some locales. */
static void add_time(struct hvd__timeline *t, const char *key, int64_t ns)
{
    int64_t size = ns < 0 ? -ns : ns;

    add(t, ",\"%s\":%s%" PRId64 ".%03d", key, ns < 0 ? "-" : "", size / 1000,
        (int)(size % 1000));
}

/* Begins an event, to which arguments can be added. */
static void begin_event(struct hvd__timeline *t, int row, const char *prefix,
                        const char *name, int64_t from, int64_t to)
{
    add(t, ",\n{\"ph\":\"X\",\"name\":\"%s%s\",\"pid\":%d,\"tid\":%d", prefix,
        name, t->rank, row);
    add_time(t, "ts", from + t->offset_ns);
    add_time(t, "dur", to > from ? to - from : 0);
}

static void add_phase(struct hvd__timeline *t, int row, const char *prefix,
                      const char *name, int64_t from, int64_t to)
{
    if (from <= 0 || to <= 0)
        return;
    begin_event(t, row, prefix, name, from, to);
    add(t, "}");
}

/* The requests of a batch are started at one time, and recorded one after the
 * other. */
static void add_cycle(struct hvd__timeline *t, int64_t started_ns)
{
    if (!t->marks_cycles || started_ns <= 0 || started_ns == t->marked_ns)
        return;
    t->marked_ns = started_ns;
    add(t,
        ",\n{\"ph\":\"i\",\"name\":\"CYCLE_START\",\"s\":\"p\",\"pid\":%d,"
        "\"tid\":0",
        t->rank);
    add_time(t, "ts", started_ns + t->offset_ns);
    add(t, "}");
}

static void add_span(struct hvd__timeline *t, const struct hvd__span *span)
{
    const struct hvd__times *at = &span->times;
    int row = row_of(t, span->name);
    char kind[32];

    add_cycle(t, at->started_ns);
    snprintf(kind, sizeof kind, "%s", hvd_kind_name(span->kind));
    for (char *c = kind; *c; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    begin_event(t, row, "", kind, at->submitted_ns, at->done_ns);
    add(t, ",\"args\":{\"tensor\":");
    add_string(t, span->shape);
    add(t, ",\"bytes\":%" PRId64 ",\"batch\":%d,\"status\":", span->bytes,
        (int)span->batch);
    add_string(t, hvd_strerror(span->status));
    add(t, "}}");
    add_phase(t, row, "NEGOTIATE_", kind, at->submitted_ns,
              at->decided_ns ? at->decided_ns : at->done_ns);
    add_phase(t, row, "QUEUE", "", at->decided_ns, at->started_ns);
    if (span->packed)
        add_phase(t, row, "MEMCPY_IN_FUSION_BUFFER", "", at->started_ns,
                  at->packed_ns);
    add_phase(t, row, span->shared ? "SHM_" : "MPI_", kind,
              span->packed ? at->packed_ns : at->started_ns, at->moved_ns);
    if (span->packed)
        add_phase(t, row, "MEMCPY_OUT_FUSION_BUFFER", "", at->moved_ns,
                  at->done_ns);
}

/* Adds a whole span or, if memory is short, nothing. Returns whether it did. */
static bool add_whole_span(struct hvd__timeline *t,
                           const struct hvd__span *span)
{
    size_t length = t->length;
    int nrows = t->nrows;
    int64_t marked_ns = t->marked_ns;

    add_span(t, span);
    if (!t->lacks_memory)
        return true;
    t->lacks_memory = false;
    t->length = length;
    t->nrows = nrows;
    t->marked_ns = marked_ns;
    return false;
}

/* ----------------------------------------------------------------- the file */

static int cannot(const char *path, int status)
{
    return hvd__fail(HVD_ERR_FILE, "cannot write the timeline '%s': %s", path,
                     disk__text(status));
}

int hvd__timeline_create(const char *path, int nranks)
{
    char text[256];
    int n = snprintf(text, sizeof text,
                     "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"hvd\":"
                     "\"%s\",\"ranks\":%d},\"traceEvents\":[\n"
                     "{\"ph\":\"M\",\"name\":\"hvd\",\"pid\":0,\"tid\":0,"
                     "\"args\":{}}%s",
                     HVD_VERSION_STRING, nranks, tail);
    int status = disk__replace(path, text, (size_t)n, DISK__SWEEP);

    return status < 0 ? cannot(path, status) : HVD_OK;
}

static bool lock_file(int fd, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET};

    /* The lock is the open file's, not the process's, so it works between
     * threads. */
    return fcntl(fd, F_OFD_SETLKW, &lock) == 0;
}

/* Overwrites the file from the closing brackets on. File systems that cannot
 * reserve room may notice only on the way to the disk that there is none. */
static int overwrite_end(const struct hvd__timeline *t, off_t size)
{
    int reserved = disk__reserve(t->fd, size, t->length - TAIL_BYTES), status;

    if (reserved < 0 && reserved != -EOPNOTSUPP && reserved != -ENOSYS)
        return reserved;
    status = disk__write_at(t->fd, t->text, t->length, size - TAIL_BYTES);
    if (status == 0 && reserved < 0 && fdatasync(t->fd) < 0)
        status = -errno;
    return status;
}

/* Restores the file, except for its end, which now shows all ranks that nothing
 * follows. */
static void close_file(const struct hvd__timeline *t, off_t size)
{
    if (ftruncate(t->fd, size) == 0)
        disk__write_at(t->fd, last_tail, TAIL_BYTES, size - TAIL_BYTES);
}

/* Appends with the file locked. */
static int append_locked(struct hvd__timeline *t)
{
    char end[TAIL_BYTES];
    struct stat now;
    int status;

    if (fstat(t->fd, &now) < 0)
        return -errno;
    if (now.st_size < TAIL_BYTES ||
        pread(t->fd, end, TAIL_BYTES, now.st_size - TAIL_BYTES) != TAIL_BYTES)
        return CHANGED;
    if (memcmp(end, last_tail, TAIL_BYTES) == 0)
        return ENDED;
    if (memcmp(end, tail, TAIL_BYTES) != 0)
        return CHANGED;
    status = overwrite_end(t, now.st_size);
    if (status < 0) {
        close_file(t, now.st_size);
        t->closed = true;
    }
    return status;
}

/* Puts the text in place of the file's end, and the end after it. */
static int append(struct hvd__timeline *t)
{
    int status;

    memcpy(t->text + t->length, tail, TAIL_BYTES);
    t->length += TAIL_BYTES;
    if (!lock_file(t->fd, F_WRLCK))
        return -errno;
    status = append_locked(t);
    lock_file(t->fd, F_UNLCK);
    return status;
}

static void write_out(struct hvd__timeline *t)
{
    int status = t->length > 0 && t->fd >= 0 ? append(t) : 0;

    t->length = 0;
    if (status == 0)
        return;
    if (status != ENDED)
        hvd__log(HVD__LOG_WARNING,
                 "cannot write the timeline '%s': %s; it ends here%s", t->path,
                 status == CHANGED ? "somebody else has changed it"
                                   : disk__text(status),
                 t->closed ? ", for all ranks" : "");
    close(t->fd);
    t->fd = -1;
}

static int allocate(struct hvd__timeline *t, const char *path)
{
    t->path = strdup(path);
    t->spans = calloc(CAPACITY, sizeof *t->spans);
    t->writing = calloc(CAPACITY, sizeof *t->writing);
    t->rows = calloc(MOST_ROWS, sizeof *t->rows);
    if (t->path && t->spans && t->writing && t->rows)
        return HVD_OK;
    return hvd__fail_memory(2 * CAPACITY * sizeof *t->spans);
}

static void add_head(struct hvd__timeline *t, const char *host)
{
    char name[200];

    snprintf(name, sizeof name, "rank %d (%s)", t->rank, host);
    add_name(t, "process_name", 0, name);
    add(t,
        ",\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%d,"
        "\"tid\":0,\"args\":{\"sort_index\":%d}}",
        t->rank, t->rank);
    if (t->lacks_memory)
        t->length = 0; /* the rank has no name then */
    t->lacks_memory = false;
}

int hvd__timeline_open(const char *path, int rank, const char *host,
                       int64_t offset_ns, struct hvd__timeline **timeline)
{
    struct hvd__timeline *t = calloc(1, sizeof *t);
    int status;

    *timeline = NULL;
    if (!t)
        return hvd__fail_memory(sizeof *t);
    t->rank = rank;
    t->offset_ns = offset_ns;
    t->fd = -1;
    pthread_mutex_init(&t->lock, NULL);
    status = allocate(t, path);
    if (status == HVD_OK) {
        t->fd = disk__open_regular(path, O_RDWR);
        status = t->fd < 0 ? cannot(path, t->fd) : HVD_OK;
    }
    if (status < 0) {
        hvd__timeline_close(t);
        return status;
    }
    add_head(t, host);
    write_out(t);
    *timeline = t;
    return HVD_OK;
}

void hvd__timeline_mark_cycles(struct hvd__timeline *t)
{
    t->marks_cycles = true;
}

void hvd__timeline_record(struct hvd__timeline *t, const struct hvd__span *span)
{
    pthread_mutex_lock(&t->lock);
    if (t->nspans < CAPACITY)
        t->spans[t->nspans++] = *span;
    else
        t->dropped++;
    pthread_mutex_unlock(&t->lock);
}

void hvd__timeline_flush(struct hvd__timeline *t)
{
    struct hvd__span *full;
    int64_t dropped;
    int n;

    pthread_mutex_lock(&t->lock);
    full = t->spans;
    n = t->nspans;
    dropped = t->dropped;
    t->spans = t->writing;
    t->writing = full;
    t->nspans = 0;
    t->dropped = 0;
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < n; i++)
        dropped += !add_whole_span(t, &full[i]);
    if (dropped > 0)
        hvd__log(HVD__LOG_WARNING,
                 "the timeline lacks %" PRId64 " requests: they came faster "
                 "than it is written, or memory is short",
                 dropped);
    write_out(t);
}

void hvd__timeline_close(struct hvd__timeline *t)
{
    if (!t)
        return;
    if (t->fd >= 0 && t->spans && t->writing && t->rows)
        hvd__timeline_flush(t);
    if (t->fd >= 0)
        close(t->fd);
    pthread_mutex_destroy(&t->lock);
    free(t->path);
    free(t->spans);
    free(t->writing);
    free(t->rows);
    free(t->text);
    free(t);
}

int64_t hvd__clock_offset(const int64_t *before, const int64_t *theirs,
                          const int64_t *after, int n)
{
    int best = 0;

    for (int i = 1; i < n; i++)
        if (after[i] - before[i] < after[best] - before[best])
            best = i;
    return theirs[best] - (before[best] + (after[best] - before[best]) / 2);
}
