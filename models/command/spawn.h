/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.h - has a training program start its workers itself (--spawn).
 */
#ifndef MODELS_SPAWN_H
#define MODELS_SPAWN_H

struct command;

/* Starts as many workers as the command's options say, each of which calls
 * work with the command and exits with its status. Returns the exit status of
 * all of them. Called before libhvd is started. */
int spawn_workers(struct command *command,
                  int (*work)(struct command *command));

#endif
