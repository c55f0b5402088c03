/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_progress.h - shows how far a long-running program is: a bar on a
 * terminal, plain lines elsewhere (libhvd-train).
 *
 *     hvd_progress *progress;
 *
 *     hvd_progress_new(NULL, &progress);
 *     hvd_progress_phase(progress, "training", 0, 1000, "steps");
 *     for (step = 1; step <= 1000; step++) {
 *         ...
 *         hvd_progress_update(progress, step, "loss 0.1234");
 *     }
 *     hvd_progress_line(progress, "accuracy %.2f %%", accuracy);
 *     hvd_progress_free(progress);
 *
 *     training [=======>            ]  36 %  361/1000 steps  41.3/s  ETA 15 s
 * loss 0.1234
 *
 * A program is in one phase at a time. On a terminal a phase appears as soon as
 * it begins, is redrawn at most ten times a second, as wide as the window is
 * then, and is erased before any other line. In a file or a pipe an update
 * becomes a line if nothing was printed for `interval` seconds; the first one,
 * before anything was printed, after 0.4 s of its phase.
 *
 * Only rank 0 prints; on other ranks, and with quiet, all functions do nothing.
 * HVD_TTY (1 or 0), which mpi-launch.sh sets, says whether there is a terminal,
 * and COLUMNS how wide it is. Under mpirun a rank's own output always looks
 * like a terminal, so without HVD_TTY there is none. TERM=dumb means no bar,
 * NO_COLOR no colour.
 *
 * There is no thread and no signal handler: an update draws. Functions are safe
 * to call from several threads, with texts that are borrowed for the call, and
 * accept a progress that is NULL. They need no hvd_init; this header includes
 * no other of libhvd.
 */
#ifndef HVD_PROGRESS_H
#define HVD_PROGRESS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#define HVD_PROGRESS_PRINTF __attribute__((format(printf, 2, 3)))
#else
#define HVD_PROGRESS_PRINTF
#endif

typedef struct hvd_progress hvd_progress;

typedef struct hvd_progress_options {
    uint32_t size; /* of the struct, as hvd_progress_options_init got it */
    int32_t rank;  /* hvd_rank(): 0 prints; -1 (default): the rank that
                      mpirun gave, 0 without it */
    int32_t quiet; /* 1: nothing is printed */
    int32_t reserved;
    FILE *out;       /* borrowed until free; stdout */
    double interval; /* seconds between lines where there is no terminal; 10 */
    /* Asked by hvd_progress_update and hvd_progress_check, on every rank: a
     * negative result tells the caller to stop what it does. NULL: 0. */
    int (*check)(void *context);
    void *check_context;
} hvd_progress_options;

/* Sets all members to their defaults; size is sizeof(hvd_progress_options). */
void hvd_progress_options_init(hvd_progress_options *options, size_t size);

/* Makes a progress. options may be NULL. HVD_ERR_MEMORY: *progress is NULL. */
int hvd_progress_new(const hvd_progress_options *options,
                     hvd_progress **progress);

/* Erases the bar, and frees. */
void hvd_progress_free(hvd_progress *progress);

/* Begins a phase, which is at `done` of `total` units. total 0: how much there
 * is to do is not known. unit is a plural, such as "steps"; NULL: the numbers
 * mean nothing to people, who see the percentage alone. */
void hvd_progress_phase(hvd_progress *progress, const char *name, int64_t done,
                        int64_t total, const char *unit);

/* Gives the phase another name; its numbers and its time go on. */
void hvd_progress_rename(hvd_progress *progress, const char *name);

/* Tells how far the phase is. note is shown behind the numbers; NULL: the last
 * one stays. Returns hvd_progress_check. Cheap enough for every step: some 50
 * ns unless it prints. */
int hvd_progress_update(hvd_progress *progress, int64_t done, const char *note);

/* Returns what options.check returns, or 0. */
int hvd_progress_check(const hvd_progress *progress);

/* Ends the phase, and erases the bar. */
void hvd_progress_end(hvd_progress *progress);

/* Prints a line that stays; the bar is then drawn anew behind it. format is
 * printf's, and ends without a newline. */
HVD_PROGRESS_PRINTF void hvd_progress_line(hvd_progress *progress,
                                           const char *format, ...);

/* Erases the bar of this process. Async-signal-safe: for a handler of SIGINT
 * that ends the program. */
void hvd_progress_interrupt(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
