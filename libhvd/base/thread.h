/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - the threads of the library. */
#ifndef HVD_BASE_THREAD_H
#define HVD_BASE_THREAD_H

#include <pthread.h>

/* Starts a thread with all signals blocked, for the program's signals are for
 * the program's threads. name: at most 15 bytes, as debuggers show it. Returns
 * HVD_ERR_MEMORY on failure. */
int hvd__thread_start(pthread_t *thread, const char *name, void *(*run)(void *),
                      void *argument);

#endif
