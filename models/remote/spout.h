/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spout.h - what is to be written to a descriptor of this process, standard
 * output or standard error, which may take it slowly or not at all for a while.
 * The descriptor is not changed: it may be shared with other processes.
 */
#ifndef MODELS_REMOTE_SPOUT_H
#define MODELS_REMOTE_SPOUT_H

#include <stdbool.h>
#include <stddef.h>

struct spout {
    int fd;     /* borrowed */
    char *text; /* owned, [count], of which done bytes are written */
    size_t count, done, room;
};

/* Keeps text to be written. PROBLEM with the text kept: no memory. */
int spout_add(struct spout *spout, const char *text, size_t bytes);

size_t spout_waiting(const struct spout *spout);

/* Writes a little, if the descriptor takes it now. PROBLEM with the text kept
 * if it takes no more for ever. */
int spout_write(struct spout *spout);

/* Writes all, and waits for that. */
int spout_drain(struct spout *spout);

void spout_fini(struct spout *spout);

/* The lines that a process prints, to be marked with its name. */
struct spout_lines {
    char *text; /* owned: a line that has not ended */
    size_t count;
};

/* Adds every line that has ended to the spout, behind "name: ". */
int spout_add_lines(struct spout *spout, struct spout_lines *lines,
                    const char *name, const char *text, size_t bytes);

#endif
