/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - prints on standard output while a training program runs.
 *
 * Only one rank prints. On a terminal a bar is redrawn in place, at most ten
 * times a second, and erased before any other line. Elsewhere every line stays,
 * and an update becomes a line if nothing was printed for ten seconds.
 *
 * HVD_TTY (1 or 0), which mpi-launch.sh sets, says whether there is a terminal,
 * and COLUMNS how wide it is. Under mpirun a rank's own output always looks
 * like a terminal, so without HVD_TTY there is none. TERM=dumb means no bar,
 * NO_COLOR no colour.
 */
#ifndef MODELS_PROGRESS_H
#define MODELS_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

struct progress {
    FILE *out; /* borrowed; NULL: this rank does not print */
    bool live; /* a terminal */
    bool colour;
    int width;
    bool drawn; /* a bar is on the screen */
    double last;
    /* Asked while something long is made: negative: stop, with that problem.
     * NULL: nothing stops it. */
    int (*ask)(void);
};

void progress_init(struct progress *progress, FILE *out, bool talks);

/* Prints a line that stays. format ends without a newline. */
__attribute__((format(printf, 2, 3))) void progress_line(
    struct progress *progress, const char *format, ...);

/* Prints "head [bar] percent tail"; part, 0 to 1, is done. */
void progress_update(struct progress *progress, const char *head, double part,
                     const char *tail);

/* Returns 0, or the problem for which what is being made is of no use any more.
 * progress may be NULL. */
int progress_ask(const struct progress *progress);

/* Erases the bar. */
void progress_clear(struct progress *progress);

#endif
