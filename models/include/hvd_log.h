/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_log.h - what a training tells people while it runs: scalars, histograms,
 * images, texts and a graph, in one folder and in several formats at once
 * (libhvd-train).
 *
 *     events.out.tfevents.*   HVD_LOG_TENSORBOARD: everything, for TensorBoard.
 *                             Each session has a file of its own
 *     scalars.csv             HVD_LOG_CSV: scalars; a line for each step, and a
 *                             column for each tag
 *     log.jsonl               HVD_LOG_JSONL: a JSON object in each line;
 *                             everything but pixels and graphs. hvd_log_page
 *                             makes a page of it
 *
 * A log is of one process. Under several ranks one of them logs, and what it
 * logs is the program's affair: a mean over all ranks, for example.
 *
 * Nothing here has a thread. What is logged is kept in memory, and written when
 * flush_seconds have passed, by the call that notices it, or by hvd_log_flush
 * and hvd_log_close. The files of a program that was killed are whole up to
 * there.
 *
 * Functions return 0 (HVD_OK) or a negative HVD_ERR_*; the text is
 * hvd_last_error(). They need no hvd_init. A log belongs to one thread at a
 * time; different ones are independent. Pointers are borrowed for the duration
 * of a call. Tags and texts are UTF-8; a tag is 1 to 255 bytes without control
 * characters, and "/" in it makes groups. A step is 0 or more. Returned is
 * HVD_ERR_ARGUMENT for anything else, HVD_ERR_MEMORY for no memory, and
 * HVD_ERR_FILE for what a call could not write: the log stays open, and the
 * next call tries again.
 */
#ifndef HVD_LOG_H
#define HVD_LOG_H

#include <hvd.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Formats, to be combined by |. */
enum {
    HVD_LOG_TENSORBOARD = 1,
    HVD_LOG_CSV = 2,
    HVD_LOG_JSONL = 4,
    HVD_LOG_ALL = 7
};

typedef struct hvd_log hvd_log;

typedef struct hvd_log_options {
    uint32_t size;        /* of the struct, as hvd_log_options_init got it */
    uint32_t formats;     /* HVD_LOG_ALL */
    int64_t step;         /* 0: a new training. Otherwise that of a training
                             which goes on: later steps that an earlier session
                             logged did not happen. They leave scalars.csv, and
                             TensorBoard forgets them */
    double flush_seconds; /* 120; 0: every call writes */
} hvd_log_options;

/* Sets all members to their defaults; size is sizeof(hvd_log_options). */
void hvd_log_options_init(hvd_log_options *options, size_t size);

/* Reads a list such as "tensorboard,csv,jsonl", or "all". */
int hvd_log_read_formats(const char *text, uint32_t *formats);

/* Opens a log in a folder, which is made if there is none (but not the folder
 * that it lies in). options may be NULL. */
int hvd_log_open(const char *folder, const hvd_log_options *options,
                 hvd_log **log);

/* Logs a number, which may be NaN or infinite. TensorBoard rounds it to a
 * float32. */
int hvd_log_scalar(hvd_log *log, const char *tag, int64_t step, double value);

/* Logs how the values [count] are distributed, in the buckets that TensorFlow
 * has: 10 % wide. Values that are not finite are left out. */
int hvd_log_histogram(hvd_log *log, const char *tag, int64_t step,
                      const float *values, size_t count);

/* Logs an image: pixels [height, width, channels], with 1 (grey), 2 (grey,
 * alpha), 3 (RGB) or 4 (RGBA) channels; sides of 1 to 16,384 pixels. */
int hvd_log_image(hvd_log *log, const char *tag, int64_t step,
                  const uint8_t *pixels, int32_t height, int32_t width,
                  int32_t channels);

/* Logs a text, which TensorBoard shows as Markdown. */
int hvd_log_text(hvd_log *log, const char *tag, int64_t step, const char *text);

/* A node of a graph. "/" in names makes boxes in boxes. */
typedef struct hvd_log_node {
    const char *name;
    const char *op;
    const char *const *inputs; /* names of nodes, [ninputs] */
    int32_t ninputs;
} hvd_log_node;

/* Logs the graph of the program, for TensorBoard alone. */
int hvd_log_graph(hvd_log *log, const hvd_log_node *nodes, int32_t count);

/* Writes everything that was logged. */
int hvd_log_flush(hvd_log *log);

/* Flushes, and frees the log, also if that fails. log may be NULL. */
int hvd_log_close(hvd_log *log);

/* Makes log.html in a folder from its log.jsonl: a page that needs nothing
 * but itself, with curves, what the time went to, ranks, slow steps and
 * settings (docs/LOGS.md says by which tags). The log may be open; what was not
 * flushed is missing. */
int hvd_log_page(const char *folder);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
