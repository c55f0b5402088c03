/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - checks what is logged, and hands it to each format. Scalars are kept
 * in a queue first, since most calls are for them: then a call costs a look-up
 * of the tag and of the time. Everything else goes through the queue's end, so
 * that order is kept.
 *
 * Numbers are printed in the C locale, whatever that of the program is.
 */
#include "log/sink.h"

#include "files/protobuf.h"
#include "output/clock.h"
#include "output/problem.h"

#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const struct log_sink *const sinks[] = {&log_events, &log_csv,
                                               &log_jsonl};
enum { SINKS = sizeof sinks / sizeof *sinks, QUEUE = 1024, TAG_MAX = 255 };

struct scalar {
    const struct log_tag *tag; /* borrowed from the log */
    int64_t step;
    double time, value;
};

struct hvd_log {
    void *states[SINKS]; /* NULL: not this format */
    struct scalar queue[QUEUE];
    int queued;
    struct log_tag **tags; /* [places], owned; by hash, NULL: free */
    int ntags, places;     /* places: a power of two */
    double flush_seconds, flushed;
    locale_t plain;
};

void hvd_log_options_init(hvd_log_options *options, size_t size)
{
    const hvd_log_options all = {
        .size = (uint32_t)size, .formats = HVD_LOG_ALL, .flush_seconds = 120};

    memcpy(options, &all, size < sizeof all ? size : sizeof all);
}

int hvd_log_read_formats(const char *text, uint32_t *formats)
{
    uint32_t found = 0;
    size_t length;

    for (const char *at = text;; at += length + 1) {
        uint32_t one = 0;

        length = strcspn(at, ",");
        if (length == 3 && strncmp(at, "all", 3) == 0)
            one = HVD_LOG_ALL;
        for (int i = 0; i < SINKS; i++)
            if (strlen(sinks[i]->name) == length &&
                strncmp(at, sinks[i]->name, length) == 0)
                one = sinks[i]->format;
        if (one == 0)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "'%.*s' is no format of logs: there are "
                                "tensorboard, csv, jsonl and all",
                                (int)(length < 100 ? length : 100), at);
        found |= one;
        if (at[length] == '\0')
            break;
    }
    *formats = found;
    return 0;
}

static double wall_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* --------------------------------------------------------------------- tags */

static void free_tag(struct log_tag *tag)
{
    if (!tag)
        return;
    free(tag->name);
    free(tag->json);
    free(tag);
}

static struct log_tag **find_place(struct log_tag **tags, int places,
                                   const char *name)
{
    uint32_t hash = 2166136261U;
    int at;

    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619U;
    at = (int)(hash & (uint32_t)(places - 1));
    while (tags[at] && strcmp(tags[at]->name, name) != 0)
        at = (at + 1) & (places - 1);
    return &tags[at];
}

/* Keeps at least half of the places free. */
static int make_places(hvd_log *log)
{
    int places = log->places ? 2 * log->places : 64;
    struct log_tag **tags;

    if (2 * (log->ntags + 1) <= log->places)
        return 0;
    tags = calloc((size_t)places, sizeof(struct log_tag *));
    if (!tags)
        return log_no_memory();
    for (int i = 0; i < log->places; i++)
        if (log->tags[i])
            *find_place(tags, places, log->tags[i]->name) = log->tags[i];
    free(log->tags);
    log->tags = tags;
    log->places = places;
    return 0;
}

static int check_name(const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || length > TAG_MAX)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "a log: the tag '%.40s' has %zu bytes, not 1 to %d",
                            name, length, TAG_MAX);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "a log: the tag '%s' has a control character "
                                "at byte %zu",
                                name, i);
    return 0;
}

static int add_tag(hvd_log *log, const char *name, struct log_tag **place)
{
    struct log_tag *tag;
    json_t *json;
    int status = check_name(name);

    if (status < 0)
        return status;
    json = json_string(name);
    if (!json)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "a log: the tag '%s' is no valid UTF-8", name);
    tag = calloc(1, sizeof *tag);
    if (tag) {
        tag->name = strdup(name);
        tag->json = json_dumps(json, JSON_ENCODE_ANY);
        tag->column = log->ntags;
    }
    json_decref(json);
    if (!tag || !tag->name || !tag->json) {
        free_tag(tag);
        return log_no_memory();
    }
    log->ntags++;
    *place = tag;
    return 0;
}

/* Finds what a call is about, or adds a tag. */
static int find_tag(hvd_log *log, const char *name, int64_t step,
                    const struct log_tag **tag)
{
    struct log_tag **place;
    int status;

    if (!log || !name)
        return problem_fail(HVD_ERR_ARGUMENT, "a log: no %s was given",
                            log ? "tag" : "log");
    if (step < 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "a log: the step of '%.40s' is %lld, less than 0",
                            name, (long long)step);
    status = make_places(log);
    if (status < 0)
        return status;
    place = find_place(log->tags, log->places, name);
    if (!*place)
        status = add_tag(log, name, place);
    *tag = *place;
    return status;
}

/* ------------------------------------------------------------------ entries */

static void put(hvd_log *log, const struct log_entry *entry)
{
    for (int i = 0; i < SINKS; i++)
        if (log->states[i])
            sinks[i]->put(log->states[i], entry);
}

/* Hands on the scalars of the queue, and then an entry, which may be NULL. */
static void hand_on(hvd_log *log, const struct log_entry *entry)
{
    locale_t before = uselocale(log->plain);

    for (int i = 0; i < log->queued; i++) {
        const struct scalar *s = &log->queue[i];

        put(log, &(struct log_entry){.kind = LOG_SCALAR,
                                     .tag = s->tag,
                                     .step = s->step,
                                     .time = s->time,
                                     .value = s->value});
    }
    log->queued = 0;
    if (entry)
        put(log, entry);
    uselocale(before);
}

/* Writes if it is time. */
static int flush_if_due(hvd_log *log)
{
    if (clock_seconds() - log->flushed < log->flush_seconds)
        return 0;
    return hvd_log_flush(log);
}

int hvd_log_scalar(hvd_log *log, const char *tag, int64_t step, double value)
{
    struct scalar s = {.step = step, .value = value};
    int status = find_tag(log, tag, step, &s.tag);

    if (status < 0)
        return status;
    s.time = wall_seconds();
    if (log->queued == QUEUE)
        hand_on(log, NULL);
    log->queue[log->queued++] = s;
    return flush_if_due(log);
}

static int add_entry(hvd_log *log, struct log_entry *entry)
{
    entry->time = wall_seconds();
    hand_on(log, entry);
    return flush_if_due(log);
}

int hvd_log_histogram(hvd_log *log, const char *tag, int64_t step,
                      const float *values, size_t count)
{
    struct log_histogram histogram;
    struct log_entry entry = {
        .kind = LOG_HISTOGRAM, .step = step, .histogram = &histogram};
    int status = find_tag(log, tag, step, &entry.tag);

    if (!status && count > 0 && !values)
        status = problem_fail(HVD_ERR_ARGUMENT,
                              "a log: the histogram '%s' has no values", tag);
    if (!status)
        status = log_histogram_init(&histogram, values, count);
    if (status < 0)
        return status;
    status = add_entry(log, &entry);
    log_histogram_fini(&histogram);
    return status;
}

int hvd_log_image(hvd_log *log, const char *tag, int64_t step,
                  const uint8_t *pixels, int32_t height, int32_t width,
                  int32_t channels)
{
    enum { MOST = 16384 };
    struct bytes png = {0};
    struct log_entry entry = {.kind = LOG_IMAGE,
                              .step = step,
                              .height = height,
                              .width = width,
                              .channels = channels,
                              .png = &png};
    int status = find_tag(log, tag, step, &entry.tag);

    if (!status && (!pixels || height < 1 || height > MOST || width < 1 ||
                    width > MOST || channels < 1 || channels > 4))
        status = problem_fail(
            HVD_ERR_ARGUMENT,
            "a log: the image '%s' is [%d, %d, %d]%s; it must have pixels, "
            "sides of 1 to %d, and 1 to 4 channels",
            tag, (int)height, (int)width, (int)channels,
            pixels ? "" : ", without pixels", MOST);
    if (!status)
        status = log_png(&png, pixels, height, width, channels);
    if (!status)
        status = add_entry(log, &entry);
    bytes_fini(&png);
    return status;
}

/* Tells whether a text is there and is UTF-8. */
static bool is_text(const char *text)
{
    json_t *json = text ? json_string(text) : NULL;

    json_decref(json);
    return json;
}

int hvd_log_text(hvd_log *log, const char *tag, int64_t step, const char *text)
{
    struct log_entry entry = {.kind = LOG_TEXT, .step = step, .text = text};
    int status = find_tag(log, tag, step, &entry.tag);

    if (!status && !is_text(text))
        status = problem_fail(HVD_ERR_ARGUMENT, "a log: the text '%s' is %s",
                              tag, text ? "no valid UTF-8" : "NULL");
    return status < 0 ? status : add_entry(log, &entry);
}

/* Adds a node to a GraphDef. */
static int add_node(struct bytes *graph, const hvd_log_node *node)
{
    struct bytes part = {0};
    bool whole = is_text(node->name) && *node->name && is_text(node->op) &&
                 node->ninputs >= 0 && (node->inputs || node->ninputs == 0);

    for (int32_t i = 0; whole && i < node->ninputs; i++)
        whole = is_text(node->inputs[i]);
    if (!whole)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "a log: the node '%.40s' of a graph has no name, "
                            "op or inputs, or one that is no valid UTF-8",
                            node->name ? node->name : "");
    protobuf_add_text(&part, 1, node->name);
    protobuf_add_text(&part, 2, node->op);
    for (int32_t i = 0; i < node->ninputs; i++)
        protobuf_add_text(&part, 3, node->inputs[i]);
    protobuf_add_message(graph, 1, &part);
    return 0;
}

int hvd_log_graph(hvd_log *log, const hvd_log_node *nodes, int32_t count)
{
    struct bytes graph = {0};
    struct log_entry entry = {.kind = LOG_GRAPH, .graph = &graph};
    int status = 0;

    if (!log || !nodes || count < 1)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "a log: no log, or a graph without nodes");
    for (int32_t i = 0; !status && i < count; i++)
        status = add_node(&graph, &nodes[i]);
    if (!status && graph.failed)
        status = log_no_memory();
    if (!status)
        status = add_entry(log, &entry);
    bytes_fini(&graph);
    return status;
}

/* ---------------------------------------------------------- opening, ending */

int hvd_log_flush(hvd_log *log)
{
    locale_t before;
    int status = 0;

    if (!log)
        return problem_fail(HVD_ERR_ARGUMENT, "a log: no log was given");
    hand_on(log, NULL);
    before = uselocale(log->plain);
    for (int i = 0; i < SINKS; i++) {
        int failed = log->states[i] ? sinks[i]->flush(log->states[i]) : 0;

        if (!status)
            status = failed;
    }
    uselocale(before);
    log->flushed = clock_seconds();
    return status;
}

static void free_log(hvd_log *log)
{
    for (int i = 0; i < SINKS; i++)
        sinks[i]->close(log->states[i]);
    for (int i = 0; i < log->places; i++)
        free_tag(log->tags[i]);
    free(log->tags);
    if (log->plain)
        freelocale(log->plain);
    free(log);
}

int hvd_log_close(hvd_log *log)
{
    int status = log ? hvd_log_flush(log) : 0;

    if (log)
        free_log(log);
    return status;
}

static int check_options(const char *folder, const hvd_log_options *o)
{
    if (!folder || *folder == '\0')
        return problem_fail(HVD_ERR_ARGUMENT, "a log: no folder was given");
    if (o->formats == 0 || o->formats & ~(uint32_t)HVD_LOG_ALL)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "a log: formats is 0x%x, none of hvd_log.h",
                            (unsigned)o->formats);
    if (o->step < 0 || !(o->flush_seconds >= 0))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "a log: step is %lld and flush_seconds %g; neither "
                            "may be less than 0",
                            (long long)o->step, o->flush_seconds);
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return problem_fail(HVD_ERR_FILE, "%s: cannot be made: %s", folder,
                            strerror(errno));
    return 0;
}

static int open_sinks(hvd_log *log, const char *folder,
                      const hvd_log_options *options)
{
    int status = 0;

    for (int i = 0; i < SINKS && !status; i++)
        if (options->formats & sinks[i]->format)
            status = sinks[i]->open(folder, options, &log->states[i]);
    if (status < 0)
        return status;
    hand_on(log, &(struct log_entry){.kind = LOG_START,
                                     .step = options->step,
                                     .time = wall_seconds()});
    return hvd_log_flush(log);
}

int hvd_log_open(const char *folder, const hvd_log_options *options,
                 hvd_log **log)
{
    hvd_log_options all;
    hvd_log *made;
    int status;

    hvd_log_options_init(&all, sizeof all);
    if (options)
        memcpy(&all, options,
               options->size < sizeof all ? options->size : sizeof all);
    status = log ? check_options(folder, &all)
                 : problem_fail(HVD_ERR_ARGUMENT, "a log: log is NULL");
    if (status < 0)
        return status;
    made = calloc(1, sizeof *made);
    if (!made)
        return log_no_memory();
    made->flush_seconds = all.flush_seconds;
    made->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    status = made->plain ? open_sinks(made, folder, &all) : log_no_memory();
    if (status < 0)
        free_log(made);
    else
        *log = made;
    return status;
}
