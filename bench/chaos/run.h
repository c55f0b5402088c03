/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - runs the command, hurts its ranks, and looks at what is left.
 */
#ifndef BENCH_CHAOS_RUN_H
#define BENCH_CHAOS_RUN_H

#include "chaos/chaos.h"

struct run_result {
    struct chaos_record record; /* owned */
    int status;                 /* of the command; 128 + N: signal N */
    bool hung;                  /* it took longer than the limit */
    bool interrupted;           /* a signal asked for the end */
    double seconds;             /* from its start to its end */
    char **left; /* owned, [nleft]: "process 12 (mnist)", files */
    int nleft;
};

/* Runs the command, words that NULL ends, to its end. Returns 0, or -1 after a
 * line on standard error if it could not be started. */
int run_command(const struct chaos_settings *settings, char **words,
                struct run_result *result);

void run_result_fini(struct run_result *result);

#endif
