/* SPDX-License-Identifier: Apache-2.0 */
#include "core/world/trace_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/thread.h"
#include "core/api/submit.h"

/* How often the timeline is written: what an abort may lose. */
#define FLUSH_NS INT64_C(500000000)

void hvd__trace_writer_init(struct hvd__trace_writer *writer)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

void hvd__trace_writer_fini(struct hvd__trace_writer *writer)
{
    pthread_cond_destroy(&writer->wake);
    pthread_mutex_destroy(&writer->lock);
}

/* ------------------------------------------------------------------ the thread
 */

static void write_metrics(struct hvd__trace_writer *s)
{
    hvd_metrics copy = {.size = sizeof copy};

    if (!s->metrics_path[0])
        return;
    hvd__metrics_read(s->metrics, &copy);
    if (hvd__metrics_write(&copy, s->rank, s->metrics_path,
                           !s->metrics_written) == HVD_OK) {
        s->metrics_written = true;
        return;
    }
    hvd__log(HVD__LOG_WARNING, "%s; no more of them", hvd_last_error());
    s->metrics_path[0] = '\0';
}

static void sleep_for(struct hvd__trace_writer *s, int64_t ns)
{
    int64_t until = hvd__now_ns() + ns;
    struct timespec t = {.tv_sec = until / 1000000000,
                         .tv_nsec = until % 1000000000};

    pthread_cond_timedwait(&s->wake, &s->lock, &t);
}

static void *run(void *argument)
{
    struct hvd__trace_writer *s = argument;
    int64_t written_ns = hvd__now_ns();

    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        sleep_for(s, s->timeline || s->metrics_interval_ns > FLUSH_NS
                         ? FLUSH_NS
                         : s->metrics_interval_ns);
        /* Under the lock: the timeline may be stopped by others. Recording
         * meets it only for the exchange of two pointers. */
        if (s->timeline)
            hvd__timeline_flush(s->timeline);
        if (hvd__now_ns() - written_ns < s->metrics_interval_ns && !s->stop)
            continue;
        written_ns = hvd__now_ns();
        pthread_mutex_unlock(&s->lock);
        write_metrics(s);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int start_thread(struct hvd__trace_writer *s)
{
    if (s->has_thread)
        return HVD_OK;
    HVD_TRY(hvd__thread_start(&s->thread, "hvd-scribe", run, s));
    s->has_thread = true;
    return HVD_OK;
}

static void close_timeline(struct hvd__trace_writer *s)
{
    struct hvd__timeline *timeline;

    atomic_store(&s->listens, false);
    pthread_mutex_lock(&s->lock);
    timeline = s->timeline;
    s->timeline = NULL;
    pthread_mutex_unlock(&s->lock);
    hvd__timeline_close(timeline);
}

void hvd__trace_writer_stop(struct hvd__trace_writer *s)
{
    if (s->has_thread) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
        s->has_thread = false;
        write_metrics(s);
    }
    close_timeline(s);
}

void hvd__trace_writer_record(struct hvd__trace_writer *s,
                              const struct hvd__request *request,
                              const struct hvd__times *times)
{
    const struct hvd__signature *signature = &request->signature;
    struct hvd__span span = {
        .kind = signature->kind,
        .status = request->status,
        .batch = request->batched,
        .packed = request->packed,
        .shared = request->shared,
        .bytes = (int64_t)request->bytes,
        .times = *times,
    };

    if (request->label)
        snprintf(span.name, sizeof span.name, "%.40s/%.40s",
                 request->submission->name, request->label);
    else if (request->submission->name[0] < ' ')
        snprintf(span.name, sizeof span.name, "unnamed");
    else
        snprintf(span.name, sizeof span.name, "%.*s", (int)sizeof span.name - 1,
                 request->submission->name);
    hvd__signature_print(signature, span.shape, sizeof span.shape);
    pthread_mutex_lock(&s->lock);
    if (s->timeline)
        hvd__timeline_record(s->timeline, &span);
    pthread_mutex_unlock(&s->lock);
}

/* ------------------------------------------------------------------ timeline
 */

enum { CLOCK_SAMPLES = 9 };

/* A meeting of all ranks before the world can be used, and after; *stamp
 * becomes rank 0's. */
typedef int meet_function(struct hvd__world *world, int64_t *stamp);

static int meet_early(struct hvd__world *world, int64_t *stamp)
{
    struct hvd__transport *t = world->transport;
    int64_t *all = calloc((size_t)t->size, sizeof *all);
    int status;

    if (!all)
        return hvd__fail_memory((size_t)t->size * sizeof *all);
    status = t->exchange(t, stamp, all, sizeof *stamp);
    *stamp = all[0];
    free(all);
    return status;
}

static int meet_later(struct hvd__world *world, int64_t *stamp)
{
    (void)world;
    HVD_TRY(hvd_barrier());
    return hvd_broadcast(stamp, 1, HVD_INT64, 0);
}

/*
 * What to add to our clock to get rank 0's. All ranks of a host read the same
 * one. Else: rank 0 reads its clock between two meetings, so after we came to
 * the first and before we leave the second.
 */
static int measure_offset(struct hvd__world *world, meet_function *meet,
                          int64_t *offset)
{
    int64_t before[CLOCK_SAMPLES], theirs[CLOCK_SAMPLES], after[CLOCK_SAMPLES];

    *offset = 0;
    if (world->topology.local_size == world->transport->size)
        return HVD_OK;
    for (int i = 0; i < CLOCK_SAMPLES; i++) {
        int64_t nothing = 0;

        before[i] = hvd__now_ns();
        HVD_TRY(meet(world, &nothing));
        theirs[i] = hvd__now_ns();
        HVD_TRY(meet(world, &theirs[i]));
        after[i] = hvd__now_ns();
    }
    *offset = hvd__clock_offset(before, theirs, after, CLOCK_SAMPLES);
    return HVD_OK;
}

static int open_timeline(struct hvd__world *world, const char *path,
                         int64_t offset)
{
    struct hvd__trace_writer *s = &world->writer;
    char host[64] = "";
    struct hvd__timeline *timeline;

    gethostname(host, sizeof host - 1);
    HVD_TRY(hvd__timeline_open(path, world->transport->rank, host, offset,
                               &timeline));
    pthread_mutex_lock(&s->lock);
    s->timeline = timeline;
    pthread_mutex_unlock(&s->lock);
    atomic_store(&s->listens, true);
    return start_thread(s);
}

int hvd_start_timeline(const char *path)
{
    int status;
    struct hvd__world *world = hvd__world_get(&status);
    char shared[HVD__SETTING_TEXT] = "";
    int32_t could[2];
    int64_t offset;

    if (!world)
        return status;
    could[0] = HVD_OK;
    if (hvd__trace_writer_listens(&world->writer))
        could[0] = hvd__fail(HVD_ERR_ARGUMENT,
                             "a timeline is being written already: stop it "
                             "first");
    else if (world->transport->rank == 0 &&
             (!path || !path[0] || strlen(path) >= sizeof shared))
        could[0] = hvd__fail(HVD_ERR_ARGUMENT,
                             "the path of the timeline is NULL, empty or "
                             "longer than %zu bytes",
                             sizeof shared - 1);
    else if (world->transport->rank == 0)
        could[0] =
            hvd__timeline_create(strcpy(shared, path), world->transport->size);
    HVD_TRY(hvd_broadcast(shared, sizeof shared, HVD_UINT8, 0));
    HVD_TRY(hvd_allreduce(could, could + 1, 1, HVD_INT32, HVD_MIN));
    HVD_TRY(measure_offset(world, meet_later, &offset));
    if (could[1] == HVD_OK)
        could[0] = open_timeline(world, shared, offset);
    HVD_TRY(hvd_allreduce(could, could + 1, 1, HVD_INT32, HVD_MIN));
    if (could[1] == HVD_OK)
        return HVD_OK;
    if (could[0] == HVD_OK) {
        close_timeline(&world->writer);
        hvd__fail(could[1], "another rank cannot write the timeline '%s'",
                  shared);
    }
    return could[1];
}

int hvd_stop_timeline(void)
{
    int status;
    struct hvd__world *world = hvd__world_get(&status);

    if (!world)
        return status;
    close_timeline(&world->writer);
    return HVD_OK;
}

/* ------------------------------------------------------------------- metrics
 */

/* %r in the path becomes the rank; without it only rank 0 writes. */
static void name_metrics(struct hvd__trace_writer *s, const char *setting)
{
    const char *mark = strstr(setting, "%r");

    if (mark)
        snprintf(s->metrics_path, sizeof s->metrics_path, "%.*s%d%s",
                 (int)(mark - setting), setting, s->rank, mark + 2);
    else if (s->rank == 0)
        snprintf(s->metrics_path, sizeof s->metrics_path, "%s", setting);
}

int hvd_get_metrics(hvd_metrics *metrics)
{
    int status;
    const struct hvd__world *world = hvd__world_get(&status);
    hvd_metrics copy = {0};

    if (!world)
        return status;
    if (!metrics || metrics->size < sizeof copy)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "metrics is %s: set its size to sizeof(hvd_metrics)",
                         metrics ? "of an unknown version" : "NULL");
    copy.size = metrics->size;
    hvd__metrics_read(&world->metrics, &copy);
    memset(metrics, 0, metrics->size);
    memcpy(metrics, &copy, sizeof copy);
    return HVD_OK;
}

int hvd_metrics_text(char *text, int64_t size)
{
    hvd_metrics metrics = {.size = sizeof metrics};

    if (size < 0 || (size > 0 && !text))
        return hvd__fail(HVD_ERR_ARGUMENT, "no room for text: size is %lld%s",
                         (long long)size, text ? "" : ", text is NULL");
    HVD_TRY(hvd_get_metrics(&metrics));
    return (int)hvd__metrics_print(&metrics, hvd_rank(), text, (size_t)size);
}

/* ------------------------------------------------------------------ settings
 */

/* A file that a setting names, and that cannot be used, is a wrong setting. */
static int as_setting(int status)
{
    char text[HVD__MESSAGE_MAX];

    if (status != HVD_ERR_FILE)
        return status;
    snprintf(text, sizeof text, "%s", hvd_last_error());
    return hvd__fail_text(HVD_ERR_CONFIG, text);
}

/* Before the world can be used: ranks agree by the transport. */
static int start_timeline(struct hvd__world *world)
{
    struct hvd__transport *t = world->transport;
    const char *path = world->settings.timeline_file;
    int status = t->rank == 0 ? hvd__timeline_create(path, t->size) : HVD_OK;
    int64_t offset;

    HVD_TRY(hvd__world_meet(world, as_setting(status)));
    HVD_TRY(measure_offset(world, meet_early, &offset));
    return hvd__world_meet(world,
                           as_setting(open_timeline(world, path, offset)));
}

int hvd__trace_writer_start(struct hvd__world *world)
{
    struct hvd__trace_writer *s = &world->writer;
    const struct hvd__settings *settings = &world->settings;

    s->metrics = &world->metrics;
    s->rank = world->transport->rank;
    s->metrics_interval_ns = settings->metrics_interval_ns;
    if (settings->metrics_file[0])
        name_metrics(s, settings->metrics_file);
    if (settings->timeline_file[0])
        HVD_TRY(start_timeline(world));
    return s->metrics_path[0] ? start_thread(s) : HVD_OK;
}
