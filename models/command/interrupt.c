/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.c - the handlers of signals, and the thread that finishes what they
 * interrupt.
 *
 * The mpirun of Open MPI 4.1 ends ranks by SIGCONT, a second later SIGTERM, and
 * SIGKILL some ten milliseconds after that, in which nothing can be finished.
 * So SIGCONT, which does no harm otherwise, has the thread finish what there
 * is; a signal that follows soon ends the process without doing it again.
 */
#include "command/interrupt.h"

#include "output/clock.h"
#include "output/outfile.h"
#include "output/problem.h"

#include <hvd_progress.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*finish)(void *context); /* guarded by the lock, as the next two */
static void *finish_context;
static bool is_waiting;       /* there is a thread */
static const double soon = 2; /* seconds */

/* What the handler shares with the thread. has_finish says whether the signal
 * is left to it; arrived, whose store pairs with its load behind the semaphore,
 * is the number of the signal, 0 before. */
static atomic_bool has_finish;
static atomic_int arrived;
static sem_t signalled;

/* Removes what must not be left. Async-signal-safe. */
static void clean(void)
{
    outfile_remove_pending();
    hvd_progress_interrupt();
}

/* Makes async-signal-safe calls only. The default action is already back
 * (SA_RESETHAND), and the raised signal arrives when the handler returns. */
static void end_by_signal(int number)
{
    int none = 0;

    clean();
    if (atomic_load(&has_finish) &&
        atomic_compare_exchange_strong(&arrived, &none, number))
        sem_post(&signalled);
    else
        raise(number);
}

void interrupt_install(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;
        struct sigaction action = {.sa_handler = end_by_signal,
                                   .sa_flags = (int)SA_RESETHAND};
        sigemptyset(&action.sa_mask);
        /* A signal that nohup or a shell had ignored stays ignored. */
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

static void wake_thread(int number)
{
    (void)number;
    sem_post(&signalled);
}

/* The thread. The program has gone on since the handler cleaned. */
static void *wait_for_signals(void *unused)
{
    double finished = -soon;

    for (;;) {
        while (sem_wait(&signalled) != 0)
            continue; /* a signal's handler ran here */
        pthread_mutex_lock(&lock);
        if (finish && clock_seconds() - finished >= soon) {
            finish(finish_context);
            finished = clock_seconds();
        }
        if (atomic_load(&arrived) != 0)
            break;
        pthread_mutex_unlock(&lock);
    }
    clean();
    kill(getpid(), atomic_load(&arrived));
    return unused;
}

static int start_thread(void)
{
    struct sigaction wake = {.sa_handler = wake_thread, .sa_flags = SA_RESTART};
    pthread_t thread;
    int error;

    if (is_waiting)
        return 0;
    sem_init(&signalled, 0, 0);
    error = pthread_create(&thread, NULL, wait_for_signals, NULL);
    if (error != 0)
        return problem_set("no thread that waits for signals: %s",
                           strerror(error));
    pthread_detach(thread);
    sigemptyset(&wake.sa_mask);
    sigaction(SIGCONT, &wake, NULL);
    is_waiting = true;
    return 0;
}

int interrupt_finish_by(void (*function)(void *context), void *context)
{
    int status;

    pthread_mutex_lock(&lock);
    status = function ? start_thread() : 0;
    finish = status == 0 ? function : NULL;
    finish_context = context;
    atomic_store(&has_finish, finish != NULL);
    pthread_mutex_unlock(&lock);
    return status;
}

void interrupt_hold(void)
{
    pthread_mutex_lock(&lock);
}

void interrupt_release(void)
{
    pthread_mutex_unlock(&lock);
}

void interrupt_wait(void)
{
    while (atomic_load(&arrived) != 0)
        pause();
}
