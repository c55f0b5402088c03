/* SPDX-License-Identifier: Apache-2.0 */
/* starved - starts libhvd and stops it, while the thread that handles events of
 * Open MPI gets no processor, as on a machine that is busy. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hvd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int PMIx_Finalize(const void *info, size_t n);

static pthread_t handler;
static int has_handler;

static void hold(int signal)
{
    (void)signal;
    usleep(600000);
}

/* Open MPI calls this one, since the program stands before the libraries. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*run)(void *), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                  void *);
    Dl_info where;
    int code;

    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    code = create(thread, attributes, run, argument);
    if (code == 0 && dladdr(*(void **)&run, &where) &&
        strstr(where.dli_fname, "libopen-pal")) {
        handler = *thread;
        has_handler = 1;
    }
    return code;
}

/* MPI_Init calls it, too: it has declared that this process is one of MPI. */
int PMIx_Finalize(const void *info, size_t n)
{
    void *library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_NOLOAD);
    int (*finalize)(const void *, size_t);
    int code;

    if (!library)
        return -1;
    if (has_handler && pthread_kill(handler, SIGUSR2) == 0)
        puts("held");
    has_handler = 0;
    *(void **)&finalize = dlsym(library, "PMIx_Finalize");
    code = finalize(info, n);
    dlclose(library);
    return code;
}

int main(void)
{
    signal(SIGUSR2, hold);
    return hvd_init() < 0 || hvd_shutdown() < 0;
}
