/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - what a training program does as a command: its name, its help,
 * its one line when it fails.
 */
#ifndef MODELS_COMMAND_H
#define MODELS_COMMAND_H

#include "common/options.h"

/*
 * Carry out what options_parse returned if it is not OPTIONS_RUN: help,
 * version, or a wrong command line. Every rank sees the same and settles it
 * alone, without a world; rank 0 prints. Returns the exit status.
 */
int command_settle(enum options_program program, int outcome);

/* The line of a failure (problem.h) on stderr, if this rank should say it. */
void command_complain(const char *program, int status, int rank, int size);

/* PROBLEM if what was printed went nowhere. */
int command_flush(void);

#endif
