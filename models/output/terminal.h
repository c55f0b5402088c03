/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal.h - whether what a program writes is seen on a terminal, and how
 * wide that is. HVD_TTY and COLUMNS, which mpi-launch.sh sets, have the first
 * word: under mpirun a rank's own output always looks like a terminal.
 */
#ifndef MODELS_TERMINAL_H
#define MODELS_TERMINAL_H

#include <stdbool.h>

/* Returns whether a bar can be drawn on a file; fd -1: HVD_TTY alone says. */
bool terminal_present(int fd);

/* Returns its columns at this moment, up to 500. */
int terminal_width(int fd);

/* Returns whether NO_COLOR is not set. */
bool terminal_has_colour(void);

#endif
