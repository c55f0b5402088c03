/* SPDX-License-Identifier: Apache-2.0 */
/* jsonl.c - a JSON object in each line. A number that JSON has not is null. */
#include "log/sink.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static void add_real(struct bytes *out, double value)
{
    if (isfinite(value))
        bytes_print(out, "%.17g", value);
    else
        bytes_print(out, "null");
}

static void add_reals(struct bytes *out, const char *name, const double *values,
                      int count)
{
    bytes_print(out, ",\"%s\":[", name);
    for (int i = 0; i < count; i++) {
        if (i > 0)
            bytes_print(out, ",");
        add_real(out, values[i]);
    }
    bytes_print(out, "]");
}

static void add_histogram(struct bytes *out, const struct log_histogram *h)
{
    bytes_print(out,
                "{\"count\":%lld,\"min\":%.17g,\"max\":%.17g,\"sum\":%.17g,"
                "\"sum_squares\":%.17g",
                (long long)h->count, h->min, h->max, h->sum, h->sum_squares);
    add_reals(out, "limits", h->limits, h->buckets);
    add_reals(out, "counts", h->counts, h->buckets);
    bytes_print(out, "}");
}

static void add_text(struct bytes *out, const char *text)
{
    json_t *value = json_string(text);
    char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

    if (quoted)
        bytes_print(out, "%s", quoted);
    else
        out->failed = true;
    free(quoted);
    json_decref(value);
}

static void put(void *state, const struct log_entry *entry)
{
    struct bytes *out = &((struct log_file *)state)->pending;

    if (entry->kind == LOG_GRAPH)
        return;
    bytes_print(out, "{\"step\":%lld,\"time\":%.6f,", (long long)entry->step,
                entry->time);
    if (entry->tag)
        bytes_print(out, "\"tag\":%s,", entry->tag->json);
    switch (entry->kind) {
    case LOG_SCALAR:
        bytes_print(out, "\"value\":");
        add_real(out, entry->value);
        break;
    case LOG_HISTOGRAM:
        bytes_print(out, "\"histogram\":");
        add_histogram(out, entry->histogram);
        break;
    case LOG_IMAGE:
        bytes_print(out, "\"image\":[%d,%d,%d]", (int)entry->height,
                    (int)entry->width, (int)entry->channels);
        break;
    case LOG_TEXT:
        bytes_print(out, "\"text\":");
        add_text(out, entry->text);
        break;
    default: bytes_print(out, "\"session\":\"start\""); break;
    }
    bytes_print(out, "}\n");
}

static void jsonl_close(void *state)
{
    if (state)
        log_file_close(state);
    free(state);
}

static int jsonl_open(const char *folder, const hvd_log_options *options,
                      void **state)
{
    struct log_file *file = calloc(1, sizeof *file);
    int status =
        file ? log_file_open(file, folder, "log.jsonl", 0) : log_no_memory();

    (void)options;
    if (status < 0)
        jsonl_close(file);
    else
        *state = file;
    return status;
}

static int jsonl_flush(void *state)
{
    return log_file_flush(state);
}

const struct log_sink log_jsonl = {.name = "jsonl",
                                   .format = HVD_LOG_JSONL,
                                   .open = jsonl_open,
                                   .put = put,
                                   .flush = jsonl_flush,
                                   .close = jsonl_close};
