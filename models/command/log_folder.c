/* SPDX-License-Identifier: Apache-2.0 */
#include "command/log_folder.h"

#include "output/problem.h"

#include <stdbool.h>
#include <stdio.h>

static int set_failed(const struct log_folder *folder)
{
    return problem_set("--log-dir %s: %s", folder->path, problem_text());
}

/* Writes what was logged, and the page, in the thread of an interruption. */
static void finish(void *context)
{
    const struct log_folder *folder = context;

    if (folder->log && hvd_log_flush(folder->log) >= 0 &&
        folder->formats & HVD_LOG_JSONL)
        hvd_log_page(folder->path);
}

int log_folder_open(struct log_folder *folder)
{
    hvd_log_options options;

    if (!folder->path)
        return 0;
    hvd_log_options_init(&options, sizeof options);
    options.formats = folder->formats;
    options.flush_seconds = 10;
    if (hvd_log_open(folder->path, &options, &folder->log) < 0)
        return set_failed(folder);
    return interrupt_finish_by(finish, folder);
}

int log_folder_close(struct log_folder *folder, hvd_progress *progress)
{
    const bool has_page = folder->formats & HVD_LOG_JSONL;
    int status;

    if (!folder->log)
        return 0;
    log_folder_hold();
    status = hvd_log_close(folder->log);
    folder->log = NULL;
    if (status >= 0 && has_page)
        status = hvd_log_page(folder->path);
    log_folder_release();
    interrupt_finish_by(NULL, NULL);
    if (status < 0)
        return set_failed(folder);
    if (has_page)
        hvd_progress_line(progress, "log            %s/log.html", folder->path);
    return 0;
}

void log_folder_fini(struct log_folder *folder, hvd_progress *progress)
{
    char why[4096]; /* as problem_text has */

    snprintf(why, sizeof why, "%s", problem_text());
    log_folder_close(folder, progress);
    problem_set("%s", why);
}
