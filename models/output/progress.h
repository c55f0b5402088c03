/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - what a training program says on standard output while it runs.
 *
 * Only one rank talks. On a terminal a bar is redrawn in place, at most ten
 * times a second, and erased before any other line. Elsewhere every line
 * stays, and an update becomes a line when nothing was said for ten seconds.
 *
 * Whether there is a terminal: HVD_TTY (1 or 0) says so, as mpi-launch.sh
 * sets it, and COLUMNS how wide it is; under mpirun a rank's own output always
 * looks like one, so without HVD_TTY there is none. TERM=dumb has no bar,
 * NO_COLOR no colour.
 */
#ifndef MODELS_PROGRESS_H
#define MODELS_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

struct progress {
    FILE *out; /* borrowed; NULL: this rank is silent */
    bool live; /* a terminal */
    bool colour;
    int width;
    bool drawn; /* the bar is on the screen */
    double last;
};

/* The rank mpirun gave this process, before there is a world; 0 alone. */
int progress_launch_rank(void);

void progress_init(struct progress *progress, FILE *out, bool talks);

/* A line that stays. format ends without a newline. */
__attribute__((format(printf, 2, 3))) void progress_line(
    struct progress *progress, const char *format, ...);

/* head [bar] percent tail, of a part done, 0 to 1. */
void progress_update(struct progress *progress, const char *head, double part,
                     const char *tail);

/* Erase the bar. */
void progress_clear(struct progress *progress);

#endif
