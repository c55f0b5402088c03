/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note.h - the mark of programs that are linked with libhvd.a.
 */
#ifndef BENCH_CHAOS_NOTE_H
#define BENCH_CHAOS_NOTE_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns whether the program file of a process has libhvd's note. */
bool note_is_in_program(pid_t pid);

#endif
