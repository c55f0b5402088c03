/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h - what log.c hands to the formats, and the formats. */
#ifndef MODELS_LOG_SINK_H
#define MODELS_LOG_SINK_H

#include "files/bytes.h"

#include <hvd_log.h>
#include <sys/types.h>

/* A file that grows by whole pieces. */
struct log_file {
    int fd;
    char *path;           /* owned */
    off_t end;            /* what is written, and whole */
    struct bytes pending; /* what is to be written behind it */
    struct bytes tail;    /* what is written behind that for now: the next flush
                             writes over it */
};

/* Opens a file for appending; exclusive: one that is not there yet. Bytes
 * behind the last newline of an old one are cut off: a killed writer left them.
 */
int log_file_open(struct log_file *file, const char *folder, const char *name,
                  int exclusive);
/* Writes what is pending, and the tail. On failure the file is whole up to the
 * last flush, and everything stays pending; but without memory it is lost. */
int log_file_flush(struct log_file *file);
void log_file_close(struct log_file *file);

struct log_tag {
    char *name, *json; /* owned; json: quoted as JSON has it */
    int column;        /* its number, from 0, in order of appearance */
};

struct log_histogram {
    double min, max, sum, sum_squares;
    int64_t count;
    double *limits, *counts; /* [buckets], owned */
    int buckets;
};

enum log_kind {
    LOG_SCALAR,
    LOG_HISTOGRAM,
    LOG_IMAGE,
    LOG_TEXT,
    LOG_GRAPH,
    LOG_START
};

/* One thing that is logged; all pointers are borrowed. */
struct log_entry {
    enum log_kind kind;
    const struct log_tag *tag; /* not of LOG_GRAPH, LOG_START */
    int64_t step;
    double time; /* seconds since 1970 */
    double value;
    const char *text;
    const struct log_histogram *histogram;
    const struct bytes *png;
    int32_t height, width, channels;
    const struct bytes *graph; /* a GraphDef */
};

/* A format. */
struct log_sink {
    const char *name;
    uint32_t format;
    int (*open)(const char *folder, const hvd_log_options *options,
                void **state);
    /* Adds to what is pending; what fails for lack of memory is told by
     * flush. */
    void (*put)(void *state, const struct log_entry *entry);
    int (*flush)(void *state);
    void (*close)(void *state); /* accepts NULL */
};

extern const struct log_sink log_events, log_csv, log_jsonl;

/* Fills in the buckets of values; log_histogram_fini frees them. */
int log_histogram_init(struct log_histogram *histogram, const float *values,
                       size_t count);
void log_histogram_fini(struct log_histogram *histogram);

/* Adds an image as a PNG file. */
int log_png(struct bytes *png, const uint8_t *pixels, int32_t height,
            int32_t width, int32_t channels);

/* Returns HVD_ERR_MEMORY, with the text kept. */
int log_no_memory(void);

#endif
