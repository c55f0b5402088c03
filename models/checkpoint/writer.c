/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - writes checkpoints beside a training. The caller's thread copies
 * values into one block of memory, which is kept from save to save; the
 * writer's thread makes a file of it. The block is the caller's while busy is
 * false, and the thread's while it is true; the mutex passes it from one to the
 * other.
 *
 * What the folder holds is read again from the files after each save, so that
 * nothing depends on what an earlier process knew.
 */
#include "checkpoint/file.h"
#include "checkpoint/keep.h"
#include "output/problem.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A writer asks for a folder's lock so often, and so long apart. */
enum { LOCK_TURNS = 300, LOCK_TURN_NS = 10000000 };

/* A checkpoint to be written: tensors with names, shapes and data in the
 * block. */
struct work {
    struct checkpoint_record record;
    struct safetensors_tensor *tensors; /* [count], owned, with the block: */
    int count;
    char *block; /* shapes, names and data, [room] bytes; owned */
    size_t room;
};

struct hvd_checkpoint_writer {
    char *folder; /* owned */
    hvd_checkpoint_options options;
    int lock; /* descriptor of the folder, locked; owned */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* busy or closing */
    bool busy, closing;
    struct work work;
    int64_t newest; /* step that was saved last; -1: none */
    int status;     /* failure of a save that nothing has returned yet */
    char problem[1024];
};

void hvd_checkpoint_info_init(hvd_checkpoint_info *info, size_t size)
{
    const hvd_checkpoint_info fresh = {.size = (uint32_t)size, .metric = NAN};

    memcpy(info, &fresh, size < sizeof fresh ? size : sizeof fresh);
}

void hvd_checkpoint_options_init(hvd_checkpoint_options *options, size_t size)
{
    const hvd_checkpoint_options fresh = {.size = (uint32_t)size,
                                          .keep_max = 5};

    memcpy(options, &fresh, size < sizeof fresh ? size : sizeof fresh);
}

/* -------------------------------------------------------- what is to remain */

/* Removes the checkpoints that need not be kept. Those whose header cannot be
 * read count as none, and go when they are older than the newest. */
static int remove_old(const hvd_checkpoint_writer *w)
{
    int count, status = 0;
    int64_t *steps = checkpoint_steps(w->folder, &count);
    struct checkpoint_entry *entries =
        steps ? calloc((size_t)count + 1, sizeof *entries) : NULL;
    int n = 0;

    if (!entries) {
        free(steps);
        return steps ? problem_fail(HVD_ERR_MEMORY, "%s: out of memory",
                                    w->folder)
                     : HVD_ERR_FILE;
    }
    for (int i = 0; i < count; i++) {
        struct checkpoint_record record;
        struct safetensors *file = NULL;
        char path[PATH_MAX];
        bool is_checkpoint = false;

        if (checkpoint_path(path, w->folder, steps[i], CHECKPOINT_TENSORS) == 0)
            checkpoint_open_file(path, &file, &record, &is_checkpoint);
        if (is_checkpoint && file) {
            entries[n++] = (struct checkpoint_entry){
                .step = steps[i], .time = record.time, .metric = record.metric};
            checkpoint_record_fini(&record);
        } else if (!file && steps[i] < w->newest && w->options.keep_max > 0) {
            status = checkpoint_remove(w->folder, steps[i]);
        }
        safetensors_close(file);
    }
    checkpoint_decide(entries, n, &w->options, w->newest);
    for (int i = 0; i < n && status == 0; i++)
        if (!entries[i].stays)
            status = checkpoint_remove(w->folder, entries[i].step);
    free(entries);
    free(steps);
    return status;
}

/* --------------------------------------------------------------- the thread */

static void write_work(hvd_checkpoint_writer *w)
{
    int status = checkpoint_write(w->folder, &w->work.record, w->work.tensors,
                                  w->work.count);

    if (status == 0)
        status = remove_old(w);
    pthread_mutex_lock(&w->mutex);
    if (status < 0) {
        w->status = status;
        snprintf(w->problem, sizeof w->problem, "%s", problem_text());
    }
    w->busy = false;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

static void *run(void *context)
{
    hvd_checkpoint_writer *w = context;

    pthread_mutex_lock(&w->mutex);
    while (w->busy || !w->closing) {
        if (!w->busy) {
            pthread_cond_wait(&w->changed, &w->mutex);
            continue;
        }
        pthread_mutex_unlock(&w->mutex);
        write_work(w);
        pthread_mutex_lock(&w->mutex);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

/* Starts the thread, which gets no signals: they are the program's. */
static int start(hvd_checkpoint_writer *w)
{
    sigset_t all, before;
    int failure;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failure = pthread_create(&w->thread, NULL, run, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    w->has_thread = failure == 0;
    return failure == 0 ? 0
                        : problem_fail(HVD_ERR_MEMORY,
                                       "%s: no thread for the checkpoints: %s",
                                       w->folder, strerror(failure));
}

/* --------------------------------------------------------- opening, closing */

/* Locks the folder against other writers. One that was killed keeps its lock
   until the system has ended it, and the next one may be there sooner. */
static bool lock_folder(int folder)
{
    const struct timespec turn = {.tv_nsec = LOCK_TURN_NS};

    for (int turns = 0; flock(folder, LOCK_EX | LOCK_NB) != 0; turns++) {
        if (errno != EWOULDBLOCK)
            return true; /* a file system without locks */
        if (turns == LOCK_TURNS)
            return false;
        nanosleep(&turn, NULL);
    }
    return true;
}

/* Makes the folder, and locks it. */
static int take_folder(hvd_checkpoint_writer *w)
{
    if (mkdir(w->folder, 0777) != 0 && errno != EEXIST)
        return problem_fail(HVD_ERR_FILE, "%s: cannot be made: %s", w->folder,
                            strerror(errno));
    w->lock = open(w->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->lock < 0 || access(w->folder, W_OK) != 0)
        return problem_fail(HVD_ERR_FILE, "%s: cannot be written to: %s",
                            w->folder, strerror(errno));
    if (!lock_folder(w->lock) && !w->options.inherits)
        return problem_fail(HVD_ERR_FILE,
                            "%s: another training writes its checkpoints "
                            "there: name another folder",
                            w->folder);
    checkpoint_sweep(w->folder);
    return 0;
}

static int take_options(hvd_checkpoint_writer *w,
                        const hvd_checkpoint_options *options)
{
    hvd_checkpoint_options *o = &w->options;

    hvd_checkpoint_options_init(o, sizeof *o);
    if (options)
        memcpy(o, options,
               options->size < sizeof *o ? options->size : sizeof *o);
    if (o->keep_max < 0 || o->keep_best < 0 || !(o->keep_every_hours >= 0) ||
        (o->busy != HVD_CHECKPOINT_WAIT && o->busy != HVD_CHECKPOINT_SKIP))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "options of checkpoints: keep_max %d, keep_best "
                            "%d, keep_every_hours %g and busy %d: each must be "
                            "0 or more, and busy 0 or 1",
                            o->keep_max, o->keep_best, o->keep_every_hours,
                            o->busy);
    return 0;
}

int hvd_checkpoint_writer_open(const char *folder,
                               const hvd_checkpoint_options *options,
                               hvd_checkpoint_writer **writer)
{
    hvd_checkpoint_writer *w = calloc(1, sizeof *w);
    int status;

    *writer = NULL;
    if (!w)
        return problem_fail(HVD_ERR_MEMORY, "out of memory for checkpoints");
    w->lock = -1;
    w->newest = -1;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->folder = strdup(folder && *folder ? folder : ".");
    status = w->folder ? take_options(w, options)
                       : problem_fail(HVD_ERR_MEMORY,
                                      "out of memory for checkpoints");
    if (status == 0 && w->folder)
        status = take_folder(w);
    if (status == 0)
        status = start(w);
    if (status == 0)
        *writer = w;
    else
        hvd_checkpoint_writer_close(w);
    return status;
}

/* Waits for the thread with the mutex held, and returns what failed. */
static int settle(hvd_checkpoint_writer *w)
{
    int status;

    while (w->busy)
        pthread_cond_wait(&w->changed, &w->mutex);
    status = w->status;
    w->status = 0;
    return status < 0 ? problem_fail(status, "%s", w->problem) : 0;
}

int hvd_checkpoint_wait(hvd_checkpoint_writer *w)
{
    int status;

    pthread_mutex_lock(&w->mutex);
    status = settle(w);
    pthread_mutex_unlock(&w->mutex);
    return status;
}

int hvd_checkpoint_writer_close(hvd_checkpoint_writer *w)
{
    int status = 0;

    if (!w)
        return 0;
    if (w->has_thread) {
        pthread_mutex_lock(&w->mutex);
        w->closing = true;
        pthread_cond_broadcast(&w->changed);
        status = settle(w);
        pthread_mutex_unlock(&w->mutex);
        pthread_join(w->thread, NULL);
    }
    if (w->lock >= 0)
        close(w->lock);
    checkpoint_record_fini(&w->work.record);
    free(w->work.tensors);
    free(w->work.block);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    free(w->folder);
    free(w);
    return status;
}

/* ------------------------------------------------------------------- saving */

/* Describes the caller's tensors in the work, with their own data. */
static int describe(struct work *work, const hvd_checkpoint_tensor *tensors,
                    int32_t count)
{
    free(work->tensors);
    work->count = 0;
    work->tensors = calloc((size_t)count + 1, sizeof *work->tensors);
    if (!work->tensors)
        return problem_fail(HVD_ERR_MEMORY, "out of memory for a checkpoint");
    for (int32_t i = 0; i < count; i++) {
        const hvd_checkpoint_tensor *from = &tensors[i];
        const int dtype = safetensors_from_hvd(from->dtype);
        struct safetensors_tensor *t = &work->tensors[i];

        if (!from->name || dtype < 0)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "tensor %d, '%.80s', has no name, or dtype %d, "
                                "which is none",
                                i, from->name ? from->name : "", from->dtype);
        *t = (struct safetensors_tensor){.name = from->name,
                                         .dtype = (enum safetensors_dtype)dtype,
                                         .ndim = from->ndim,
                                         .shape = from->shape,
                                         .data = from->data};
        if (safetensors_measure(t) < 0)
            return HVD_ERR_ARGUMENT;
        if (t->bytes > 0 && !t->data)
            return problem_fail(HVD_ERR_ARGUMENT, "tensor '%.80s' has no data",
                                t->name);
    }
    work->count = count;
    return 0;
}

/* Copies what the tensors point to into the block. */
static int copy(struct work *work)
{
    size_t bytes = 0;
    char *at;

    for (int i = 0; i < work->count; i++)
        bytes += work->tensors[i].bytes + strlen(work->tensors[i].name) + 1 +
                 (size_t)work->tensors[i].ndim * sizeof(int64_t);
    if (bytes > work->room) {
        free(work->block);
        work->block = malloc(bytes);
        work->room = work->block ? bytes : 0;
        if (!work->block)
            return problem_fail(HVD_ERR_MEMORY,
                                "no memory for the copy of a checkpoint of "
                                "%zu bytes",
                                bytes);
    }
    at = work->block;
    for (int i = 0; i < work->count; i++) { /* first, so that it is aligned */
        struct safetensors_tensor *t = &work->tensors[i];
        const size_t n = (size_t)t->ndim * sizeof *t->shape;

        if (n > 0)
            t->shape = memcpy(at, t->shape, n);
        at += n;
    }
    for (int i = 0; i < work->count; i++) {
        struct safetensors_tensor *t = &work->tensors[i];
        const size_t n = strlen(t->name) + 1;

        if (t->bytes > 0)
            t->data = memcpy(at, t->data, t->bytes);
        at += t->bytes;
        t->name = memcpy(at, t->name, n);
        at += n;
    }
    return 0;
}

static int take_record(struct checkpoint_record *r,
                       const hvd_checkpoint_info *given)
{
    hvd_checkpoint_info info;
    struct timespec now;
    json_error_t error;

    hvd_checkpoint_info_init(&info, sizeof info);
    memcpy(&info, given, given->size < sizeof info ? given->size : sizeof info);
    clock_gettime(CLOCK_REALTIME, &now);
    checkpoint_record_fini(r);
    r->step = info.step;
    r->final = info.final != 0;
    r->metric = isfinite(info.metric) ? info.metric : NAN;
    r->time = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    if (info.step < 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "a checkpoint of step %lld: steps count from 0",
                            (long long)info.step);
    r->state = info.json ? json_loads(info.json, JSON_REJECT_DUPLICATES, &error)
                         : json_object();
    if (!json_is_object(r->state))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "the JSON of a checkpoint is no object%s%s",
                            info.json && !r->state ? ": " : "",
                            info.json && !r->state ? error.text : "");
    return 0;
}

/* Checks that a header can be made of the tensors, whose names may be wrong. */
static int check_header(const struct work *work)
{
    size_t bytes;
    char *header = safetensors_header(work->tensors, work->count, NULL, &bytes);

    free(header);
    return header ? 0 : HVD_ERR_ARGUMENT;
}

/* Called with the mutex held, and the thread idle. */
static int prepare(struct work *work, const hvd_checkpoint_info *info,
                   const hvd_checkpoint_tensor *tensors, int32_t count)
{
    int status = take_record(&work->record, info);

    if (status == 0)
        status = describe(work, tensors, count);
    if (status == 0)
        status = check_header(work);
    if (status == 0)
        status = safetensors_order(work->tensors, work->count);
    return status < 0 ? status : copy(work);
}

int hvd_checkpoint_save(hvd_checkpoint_writer *w,
                        const hvd_checkpoint_info *info,
                        const hvd_checkpoint_tensor *tensors, int32_t count)
{
    int status;

    pthread_mutex_lock(&w->mutex);
    if (w->busy && w->options.busy == HVD_CHECKPOINT_SKIP) {
        pthread_mutex_unlock(&w->mutex);
        return 1;
    }
    status = settle(w);
    if (status == 0)
        status = prepare(&w->work, info, tensors, count);
    if (status == 0) {
        w->newest = w->work.record.step;
        w->busy = true;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->mutex);
    return status;
}

int hvd_checkpoint_set_metric(hvd_checkpoint_writer *w, int64_t step,
                              double metric)
{
    struct checkpoint_record record;
    struct safetensors *file = NULL;
    bool is_checkpoint = false;
    char path[PATH_MAX];
    int status = hvd_checkpoint_wait(w);

    if (status == 0)
        status = checkpoint_path(path, w->folder, step, CHECKPOINT_TENSORS);
    if (status < 0)
        return status;
    status = checkpoint_open_file(path, &file, &record, &is_checkpoint);
    if (status == 0 && !is_checkpoint)
        status = problem_fail(HVD_ERR_FILE, "%s: this is no checkpoint", path);
    if (status == 0) {
        record.metric = isfinite(metric) ? metric : NAN;
        status = checkpoint_write_json(w->folder, &record, file->tensors,
                                       file->count);
    }
    checkpoint_record_fini(&record);
    safetensors_close(file);
    return status < 0 ? status : remove_old(w);
}
