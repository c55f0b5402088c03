/* SPDX-License-Identifier: Apache-2.0 */
/* crew.h - threads that do the parts of a task together. */
#ifndef MODELS_CREW_H
#define MODELS_CREW_H

#include <pthread.h>
#include <stdint.h>

struct crew;

/* Does part number index; thread is 0 to n - 1. Returns 0 or a failure. */
typedef int crew_task(void *context, int thread, int64_t index);

/* Starts a thread that gets no signals. HVD_ERR_MEMORY if that fails. */
int thread_start(pthread_t *thread, void *(*serve)(void *), void *context);

/* Starts n - 1 threads beside the caller. */
int crew_new(int n, struct crew **crew);
void crew_free(struct crew *crew);      /* NULL is accepted */
int crew_size(const struct crew *crew); /* 1 for NULL */

/* Does the parts 0 to count - 1. After a failure begins no more, and returns it
 * with its text kept; of several, that of the first part. crew NULL: alone. */
int crew_run(struct crew *crew, int64_t count, crew_task *task, void *context);

#endif
