/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serving.c - takes a client's frames, in the order of link.h, relays what the
 * worker prints, and sends the results of rank 0. A client that goes, sends
 * what does not belong there, or is not heard takes its training with it.
 *
 * Not more than a megabyte waits for the client: as long as it takes nothing,
 * the worker's output is not read, and the worker waits, as one does whose
 * terminal is stopped.
 */
#include "remote/serving.h"

#include "disk/disk.h"
#include "output/problem.h"
#include "remote/description.h"
#include "remote/door.h"
#include "remote/folder.h"
#include "remote/link.h"
#include "remote/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WAITING = 1 << 20, CHUNK = 1 << 16 };

enum stage {
    RECEIVING, /* the description, and then files */
    READY,     /* waits for the ports of all */
    TRAINING,
    SENDING, /* results, and the end */
    LAST,    /* the last frame is on its way, until the client hangs up */
    ENDING   /* without a client: waits for the worker to end */
};

struct serving {
    const struct remote_party *party; /* borrowed */
    const struct remote_door *door;   /* borrowed */
    enum stage stage;
    struct remote_link link;
    char from[DOOR_ADDRESS];
    time_t since;
    struct remote_description description;
    bool is_described;
    struct remote_folder folder;
    int files[REMOTE_FILES]; /* owned; -1: not open */
    int64_t got[REMOTE_FILES];
    int job_port; /* as the command line says */
    int reserved; /* owned; keeps the port of the worker; -1 */
    struct remote_worker worker;
    int status;    /* of the worker */
    int result;    /* number of the next to send */
    int result_fd; /* owned; -1: not open */
};

__attribute__((format(printf, 1, 2))) static void log_line(const char *format,
                                                           ...)
{
    char line[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "hvd-server: %s\n", line);
}

/* ----------------------------------------------------------- beginning, end */

struct serving *serving_new(const struct remote_party *party,
                            const struct remote_door *door, int port, int fd,
                            const char *from)
{
    struct serving *serving = calloc(1, sizeof *serving);

    if (!serving || link_init(&serving->link, fd) < 0) {
        if (!serving)
            close(fd);
        free(serving);
        return NULL;
    }
    if (link_send(&serving->link, FRAME_WELCOME, 0, NULL, 0) < 0) {
        link_fini(&serving->link);
        free(serving);
        return NULL;
    }
    serving->party = party;
    serving->door = door;
    serving->job_port = port;
    serving->reserved = serving->result_fd = -1;
    serving->worker.output[0] = serving->worker.output[1] = -1;
    serving->since = time(NULL);
    for (int i = 0; i < REMOTE_FILES; i++)
        serving->files[i] = -1;
    snprintf(serving->from, sizeof serving->from, "%s", from);
    return serving;
}

static void close_files(struct serving *serving)
{
    for (int i = 0; i < REMOTE_FILES; i++) {
        if (serving->files[i] >= 0)
            close(serving->files[i]);
        serving->files[i] = -1;
    }
    if (serving->result_fd >= 0)
        close(serving->result_fd);
    serving->result_fd = -1;
}

void serving_free(struct serving *serving)
{
    if (!serving)
        return;
    worker_fini(&serving->worker);
    link_fini(&serving->link);
    close_files(serving);
    if (serving->reserved >= 0)
        close(serving->reserved);
    remote_description_fini(&serving->description);
    folder_remove(&serving->folder);
    free(serving);
}

void serving_abandon(struct serving *serving, const char *why)
{
    if (serving->stage == ENDING)
        return;
    if (serving->stage != LAST || link_waiting(&serving->link) > 0)
        log_line("the training for %s ends: %s", serving->from, why);
    serving->stage = ENDING;
    link_fini(&serving->link);
    worker_kill(&serving->worker);
}

bool serving_has_client(const struct serving *serving)
{
    return serving->stage != ENDING && serving->stage != LAST;
}

void serving_describe(const struct serving *serving, char *text, size_t size)
{
    snprintf(text, size, "%s since %lld s", serving->from,
             (long long)(time(NULL) - serving->since));
}

/* Tells the client why it gets no training; that is the last that it hears. */
static int refuse(struct serving *serving)
{
    const char *why = problem_text();

    log_line("the training for %s ends: %s", serving->from, why);
    serving->stage = LAST;
    return link_send(&serving->link, FRAME_REFUSAL, 0, why, strlen(why));
}

/* ------------------------------------------------------ what a client sends */

static int open_file(struct serving *serving, const char *name, int flags)
{
    char path[FOLDER_BYTES + 32];

    snprintf(path, sizeof path, "%s/%s", serving->folder.path, name);
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static int take_description(struct serving *serving, const struct frame *frame)
{
    struct remote_description *d = &serving->description;

    if (serving->is_described)
        return problem_set("a second description came");
    if (remote_description_read(frame->data, frame->bytes, d) < 0 ||
        folder_make(&serving->folder) < 0)
        return refuse(serving);
    serving->is_described = true;
    for (int i = 0; i < REMOTE_FILES; i++) {
        if (d->files[i] < 0)
            continue;
        serving->files[i] = open_file(serving, remote_file_names[i],
                                      O_WRONLY | O_CREAT | O_EXCL);
        if (serving->files[i] < 0) {
            problem_set("%s: %s", serving->folder.path, strerror(errno));
            return refuse(serving);
        }
    }
    log_line("%s sends a training by %s", serving->from, d->program);
    return 0;
}

static bool has_all_files(const struct serving *serving)
{
    for (int i = 0; i < REMOTE_FILES; i++)
        if (serving->description.files[i] >= 0 &&
            serving->got[i] < serving->description.files[i])
            return false;
    return true;
}

static int take_file(struct serving *serving, const struct frame *frame)
{
    const unsigned file = frame->item;
    int status;

    if (!serving->is_described || file >= REMOTE_FILES ||
        serving->files[file] < 0 ||
        (int64_t)frame->bytes >
            serving->description.files[file] - serving->got[file])
        return problem_set("more of a file came than was announced");
    status = disk__write_at(serving->files[file], frame->data, frame->bytes,
                            (off_t)serving->got[file]);
    if (status < 0) {
        problem_set("%s: %s", serving->folder.path, disk__text(status));
        return refuse(serving);
    }
    serving->got[file] += (int64_t)frame->bytes;
    return 0;
}

/* Says that the training can begin, and on which port the worker will be. */
static int get_ready(struct serving *serving)
{
    uint32_t port;

    close_files(serving);
    if (door_reserve_port(serving->door, serving->job_port, &serving->reserved,
                          &port) < 0)
        return refuse(serving);
    serving->stage = READY;
    return link_send(&serving->link, FRAME_READY, 0, &port, sizeof port);
}

static int take_start(struct serving *serving, const struct frame *frame)
{
    const size_t size = (size_t)party_size(serving->party);
    uint32_t *ports;
    int status;

    if (serving->stage != READY || frame->bytes != size * sizeof *ports)
        return problem_set("a start came that does not belong there");
    ports = malloc(frame->bytes);
    if (!ports)
        return problem_set("no memory for a training");
    memcpy(ports, frame->data, frame->bytes);
    status = worker_start(&serving->worker, serving->party,
                          &serving->description, serving->folder.path, ports);
    free(ports);
    if (status < 0)
        return refuse(serving);
    serving->stage = TRAINING;
    return 0;
}

static int take_frame(void *context, const struct frame *frame)
{
    struct serving *serving = context;
    int status;

    if (serving->stage == LAST) /* on its way before the client heard the end */
        return 0;
    switch (frame->kind) {
    case FRAME_JOB: return take_description(serving, frame);
    case FRAME_FILE: status = take_file(serving, frame); break;
    case FRAME_START: return take_start(serving, frame);
    default: return problem_set("a frame came that no client sends");
    }
    if (status == 0 && serving->stage == RECEIVING && has_all_files(serving))
        status = get_ready(serving);
    return status;
}

/* ---------------------------------------------------- what the worker gives */

static bool has_room(const struct serving *serving)
{
    return link_waiting(&serving->link) < MOST_WAITING;
}

/* Relays what the worker has printed on one of its descriptors. */
static int relay(struct serving *serving, int which)
{
    char text[CHUNK];
    int *fd = &serving->worker.output[which];
    ssize_t got;

    if (*fd < 0 || !has_room(serving))
        return 0;
    if (poll(&(struct pollfd){*fd, POLLIN, 0}, 1, 0) <= 0)
        return 0;
    got = read(*fd, text, sizeof text);
    if (got > 0)
        return link_send(&serving->link, FRAME_OUTPUT, (unsigned)which + 1,
                         text, (size_t)got);
    if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
        close(*fd);
        *fd = -1;
    }
    return 0;
}

static int tend_worker(struct serving *serving)
{
    if (relay(serving, 0) < 0 || relay(serving, 1) < 0)
        return PROBLEM;
    /* All that it has printed comes before its end. */
    if (serving->worker.output[0] >= 0 || serving->worker.output[1] >= 0 ||
        !worker_has_ended(&serving->worker, &serving->status))
        return 0;
    serving->stage = SENDING;
    if (serving->status != 0)
        serving->result = REMOTE_RESULTS;
    return 0;
}

/* -------------------------------------------------------------- the results */

/* Sends a piece of the result that is open. */
static int send_piece(struct serving *serving)
{
    char piece[CHUNK];
    ssize_t got = read(serving->result_fd, piece, sizeof piece);

    if (got < 0)
        return problem_set("%s: %s", remote_result_names[serving->result],
                           strerror(errno));
    if (link_send(&serving->link, FRAME_RESULT, (unsigned)serving->result,
                  piece, (size_t)got) < 0)
        return PROBLEM;
    if (got == 0) {
        close(serving->result_fd);
        serving->result_fd = -1;
        serving->result++;
    }
    return 0;
}

static int send_end(struct serving *serving)
{
    char why[160] = "";

    if (serving->status > 128)
        snprintf(why, sizeof why, "the worker was ended by signal %d (%s)",
                 serving->status - 128, strsignal(serving->status - 128));
    else if (serving->status != 0)
        snprintf(why, sizeof why, "the worker ended with status %d",
                 serving->status);
    log_line("the training for %s is over%s%s", serving->from, *why ? ": " : "",
             why);
    serving->stage = LAST;
    return link_send(&serving->link, FRAME_END, (unsigned)serving->status, why,
                     strlen(why));
}

/* Only the server of rank 0 has results; they are those of all ranks. */
static int send_results(struct serving *serving)
{
    while (has_room(serving) && serving->stage == SENDING) {
        if (serving->result_fd >= 0) {
            if (send_piece(serving) < 0)
                return PROBLEM;
        } else if (serving->result == REMOTE_RESULTS) {
            return send_end(serving);
        } else {
            if (serving->description.results[serving->result])
                serving->result_fd = open_file(
                    serving, remote_result_names[serving->result], O_RDONLY);
            serving->result += serving->result_fd < 0;
        }
    }
    return 0;
}

/* ----------------------------------------------------------------- the loop */

int serving_wait(const struct serving *serving, struct pollfd *fds)
{
    int n = 0;

    if (serving->link.fd >= 0)
        fds[n++] = (struct pollfd){
            serving->link.fd,
            (short)(POLLIN | (link_waiting(&serving->link) > 0 ? POLLOUT : 0)),
            0};
    for (int i = 0; i < 2 && has_room(serving); i++)
        if (serving->worker.output[i] >= 0 && serving->stage == TRAINING)
            fds[n++] = (struct pollfd){serving->worker.output[i], POLLIN, 0};
    return n;
}

static int tend_client(struct serving *serving)
{
    if (link_read(&serving->link, take_frame, serving) < 0)
        return PROBLEM;
    if (serving->stage == TRAINING && tend_worker(serving) < 0)
        return PROBLEM;
    if (serving->stage == SENDING && send_results(serving) < 0)
        return PROBLEM;
    if (link_tend(&serving->link, false) < 0 || link_write(&serving->link) < 0)
        return PROBLEM;
    if (serving->stage == LAST && link_waiting(&serving->link) == 0)
        link_finish(&serving->link);
    return 0;
}

bool serving_tend(struct serving *serving)
{
    int status;

    if (serving->stage != ENDING && tend_client(serving) < 0)
        serving_abandon(serving, problem_text());
    if (serving->stage != ENDING)
        return false;
    worker_kill(&serving->worker);
    return worker_has_ended(&serving->worker, &status);
}
