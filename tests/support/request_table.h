/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_table.h - a request table with one process set, and the steps of the
 * engine and of hvd_wait on it, for the tests of the table.
 */
#ifndef HVD_TESTS_REQUEST_TABLE_H
#define HVD_TESTS_REQUEST_TABLE_H

#include <stdio.h>
#include <string.h>

#include "checks.h"
#include "core/table/set.h"
#include "core/table/table.h"

static struct hvd__table table;
static struct hvd__set set;

static inline void open_table(void)
{
    hvd__table_init(&table);
    memset(&set, 0, sizeof set);
}

static inline void close_table(void)
{
    while (hvd__table_take(&table))
        ;
    hvd__set_table_fini(&set.requests);
    hvd__table_fini(&table);
}

static inline struct hvd__submission *submission_of(int n, const char *name)
{
    struct hvd__submission *submission = hvd__submission_new(n);

    ck_assert(submission != NULL);
    submission->set = &set;
    snprintf(submission->name, sizeof submission->name, "%s", name);
    return submission;
}

/* Enters a submission, and queues it to be announced. */
static inline int enter(struct hvd__submission *submission, hvd_handle *handles)
{
    int status;

    hvd__mutex_lock(&table.lock);
    status = hvd__table_enter(&table, submission, handles);
    if (status == HVD_OK)
        hvd__table_queue(&table, submission);
    hvd__mutex_unlock(&table.lock);
    return status;
}

/* Submits; on failure the submission is freed. */
static inline int submit(const char *name, hvd_handle *handle,
                         struct hvd__submission **submission)
{
    int status;

    *submission = submission_of(1, name);
    status = enter(*submission, handle);
    if (status < 0)
        hvd__submission_free(*submission);
    return status;
}

/* Does what the engine does with a submission that is complete. */
static inline void complete(struct hvd__submission *submission)
{
    int n = submission->state.nrequests;

    for (int i = 0; i + 1 < n; i++)
        submission->requests[i].state.next = &submission->requests[i + 1];
    hvd__table_remove(&table, submission->requests);
    for (int i = 0; i < n; i++)
        hvd__table_finish(&table, &submission->requests[i]);
}

/* Does what hvd_wait does with a complete handle: returns 1, or an error. */
static inline int consume(hvd_handle handle)
{
    struct hvd__request *request;
    int status = hvd__table_claim(&table, handle, true, &request);

    if (status == 1)
        hvd__request_free(request);
    return status;
}

#endif
