/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>
#include <string.h>

#include "base/status.h"

int hvd__thread_start(pthread_t *thread, const char *name, void *(*run)(void *),
                      void *argument)
{
    sigset_t all, before;
    int code;

    /* A thread begins with the signal mask of the thread that makes it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return hvd__fail(HVD_ERR_MEMORY, "the thread %s cannot be made: %s",
                         name, strerror(code));
    pthread_setname_np(*thread, name);
    return HVD_OK;
}
