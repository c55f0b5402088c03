/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_events.c - lets a thread of Open MPI 4 finish what MPI_Init gave it.
 *
 * Open MPI 4 has a thread that handles events of the launcher. Each MPI_Init
 * makes one: the process declares that its programming model is MPI, and PMIx
 * tells it so. MPI_Finalize unloads the component whose function handles that
 * event, and does not ask whether the event is still to be handled. In a short
 * program on a busy machine it may be: the thread then calls a function that is
 * no longer there, and the process, which had done all its work, dies of
 * SIGSEGV.
 *
 * So hvd_init puts an event of its own behind it, and waits for that one.
 */
#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <sys/time.h>
#include <time.h>

#include "transport/transport.h"

enum { WAIT_SECONDS = 10, EV_TIMEOUT = 1 };

struct event_base;
/* This is event_base_once of libevent 2, which takes calls of any thread: its
 * event is due at once if no time is given. It returns 0, or -1. */
typedef int (*add_event)(struct event_base *base, int fd, short what,
                         void (*fn)(int fd, short what, void *argument),
                         void *argument, const struct timeval *time);

static void is_handled(int fd, short what, void *handled)
{
    (void)fd, (void)what;
    sem_post(handled);
}

/* Open MPI may bring a libevent of its own, whose names begin otherwise. */
static add_event find_add_event(void)
{
    add_event add;

    *(void **)&add = dlsym(RTLD_DEFAULT, "opal_libevent2022_event_base_once");
    if (!add)
        *(void **)&add = dlsym(RTLD_DEFAULT, "event_base_once");
    return add;
}

void hvd__mpi_settle(void)
{
    static sem_t handled; /* the event may come after the wait is over */
    struct event_base **base, **others;
    add_event add = find_add_event();
    struct timespec end;

    *(void **)&base = dlsym(RTLD_DEFAULT, "orte_event_base");
    /* No thread handles these: they wait until the program calls MPI. */
    *(void **)&others = dlsym(RTLD_DEFAULT, "opal_sync_event_base");
    if (!add || !base || !*base || !others || *base == *others ||
        sem_init(&handled, 0, 0) != 0 ||
        add(*base, -1, EV_TIMEOUT, is_handled, &handled, NULL) != 0)
        return;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += WAIT_SECONDS;
    while (sem_clockwait(&handled, CLOCK_MONOTONIC, &end) != 0 &&
           errno == EINTR)
        ;
}
