/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - threads of the library's own. */
#ifndef HVD_BASE_THREAD_H
#define HVD_BASE_THREAD_H

#include <pthread.h>

/* All signals are blocked in it: the program's are for the program's threads.
 * name: at most 15 bytes, as debuggers show it. HVD_ERR_MEMORY. */
int hvd__thread_start(pthread_t *thread, const char *name, void *(*run)(void *),
                      void *argument);

#endif
