/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_folder.h - the log of a program in the folder of --log-dir, of which a
 * page is made at the end, also if the training fails or is interrupted.
 *
 * Statuses are 0 or PROBLEM, with the text kept behind "--log-dir". What is
 * logged between opening and closing is logged between log_folder_hold and
 * log_folder_release, so that an interruption finds the log whole.
 */
#ifndef MODELS_LOG_FOLDER_H
#define MODELS_LOG_FOLDER_H

#include "command/interrupt.h"

#include <hvd_log.h>
#include <hvd_progress.h>

struct log_folder {
    const char *path; /* borrowed; NULL: nothing is logged */
    uint32_t formats; /* of hvd_log.h */
    hvd_log *log;     /* owned; NULL: it is not open here */
};

/* Opens the log, if there is a path. The struct must not move until it is
 * closed; one is open at a time. */
int log_folder_open(struct log_folder *folder);

/* Closes the log, if it is open, makes a page of it, and tells of the page. */
int log_folder_close(struct log_folder *folder, hvd_progress *progress);

/* Does the same at the end of a run: the text of a failure that has ended it
 * stays. */
void log_folder_fini(struct log_folder *folder, hvd_progress *progress);

static inline void log_folder_hold(void)
{
    interrupt_hold();
}

static inline void log_folder_release(void)
{
    interrupt_release();
}

#endif
