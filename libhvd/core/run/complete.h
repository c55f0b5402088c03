/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete.h - completes requests.
 */
#ifndef HVD_CORE_COMPLETE_H
#define HVD_CORE_COMPLETE_H

#include <stdbool.h>

#include "core/request/request.h"

struct hvd__engine;

/*
 * Driver only. Completes a list of requests, whose states have status and
 * message. Frees the names of submissions that are then complete for reuse;
 * then calls each callback and lets the waiter return. hvd_last_error returns
 * the message for a negative status. The requests must not be used afterwards.
 */
void hvd__complete_all(struct hvd__engine *engine,
                       struct hvd__request *requests);
/* Completes one request, with a text that is copied and may be NULL. */
void hvd__complete(struct hvd__engine *engine, struct hvd__request *request,
                   int status, const char *text);

/* Counts a request that was never in the request table and is complete without
 * an error. */
void hvd__complete_quick(struct hvd__engine *engine,
                         const struct hvd__request *request,
                         int64_t latency_ns);

/* Completes all requests of a submission that are not complete yet. A text that
 * begins with a space or a colon is put behind the submission's name. */
void hvd__complete_submission(struct hvd__engine *engine,
                              struct hvd__submission *submission, int status,
                              const char *text);

/* Returns true if this thread is inside a callback, which must not wait. */
bool hvd__in_callback(void);

#endif
