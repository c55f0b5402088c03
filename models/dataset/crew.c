/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.c - a lock guards everything but the number of the next part. The caller
 * sets a task, raises the round, works, and waits until no thread is busy; a
 * thread works in each round once.
 */
#include "dataset/crew.h"

#include "output/problem.h"

#include <hvd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct crew {
    pthread_mutex_t lock;
    pthread_cond_t begun, ended;
    pthread_t *threads; /* [size - 1], owned */
    int size, started, busy;
    bool stop;
    uint64_t round;
    crew_task *task;
    void *context;
    int64_t count;
    _Atomic int64_t next; /* relaxed: the lock publishes the task */
    int64_t failed;       /* part that failed, -1: none */
    int status;
    char *text; /* owned; of the failure */
};

int thread_start(pthread_t *thread, void *(*serve)(void *), void *context)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(thread, NULL, serve, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure ? problem_fail(HVD_ERR_MEMORY,
                                  "data set: a thread does not start: %s",
                                  strerror(failure))
                   : 0;
}

/* A thread's entry. */
struct member {
    struct crew *crew;
    int number;
};

static void keep_failure(struct crew *crew, int64_t part, int status)
{
    pthread_mutex_lock(&crew->lock);
    if (crew->failed < 0 || part < crew->failed) {
        crew->failed = part;
        crew->status = status;
        free(crew->text);
        crew->text = strdup(hvd_last_error());
    }
    pthread_mutex_unlock(&crew->lock);
}

static void work(struct crew *crew, int thread)
{
    for (;;) {
        int64_t part =
            atomic_fetch_add_explicit(&crew->next, 1, memory_order_relaxed);
        if (part >= crew->count)
            return;
        int status = crew->task(crew->context, thread, part);
        if (status < 0) {
            keep_failure(crew, part, status);
            /* The parts behind it are not begun. */
            atomic_store_explicit(&crew->next, crew->count,
                                  memory_order_relaxed);
        }
    }
}

static void *serve(void *argument)
{
    struct member member = *(struct member *)argument;
    struct crew *crew = member.crew;
    uint64_t seen = 0;

    free(argument);
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (crew->round == seen && !crew->stop)
            pthread_cond_wait(&crew->begun, &crew->lock);
        if (crew->stop)
            break;
        seen = crew->round;
        pthread_mutex_unlock(&crew->lock);
        work(crew, member.number);
        pthread_mutex_lock(&crew->lock);
        if (--crew->busy == 0)
            pthread_cond_signal(&crew->ended);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static int start_member(struct crew *crew)
{
    struct member *member = malloc(sizeof *member);

    if (!member)
        return problem_fail(HVD_ERR_MEMORY, "data set: no memory for threads");
    *member = (struct member){crew, crew->started + 1};
    int status = thread_start(&crew->threads[crew->started], serve, member);
    if (status < 0) {
        free(member);
        return status;
    }
    crew->started++;
    return 0;
}

int crew_new(int n, struct crew **made)
{
    struct crew *crew = calloc(1, sizeof *crew);
    int status = 0;

    if (!crew)
        return problem_fail(HVD_ERR_MEMORY, "data set: no memory for threads");
    crew->size = n;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->begun, NULL);
    pthread_cond_init(&crew->ended, NULL);
    crew->threads = calloc((size_t)n, sizeof *crew->threads);
    if (!crew->threads)
        status =
            problem_fail(HVD_ERR_MEMORY, "data set: no memory for threads");
    while (status == 0 && crew->started < n - 1)
        status = start_member(crew);
    if (status < 0) {
        crew_free(crew);
        return status;
    }
    *made = crew;
    return 0;
}

void crew_free(struct crew *crew)
{
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->stop = true;
    pthread_cond_broadcast(&crew->begun);
    pthread_mutex_unlock(&crew->lock);
    for (int i = 0; i < crew->started; i++)
        pthread_join(crew->threads[i], NULL);
    pthread_mutex_destroy(&crew->lock);
    pthread_cond_destroy(&crew->begun);
    pthread_cond_destroy(&crew->ended);
    free(crew->threads);
    free(crew->text);
    free(crew);
}

int crew_size(const struct crew *crew)
{
    return crew ? crew->size : 1;
}

int crew_run(struct crew *crew, int64_t count, crew_task *task, void *context)
{
    int status = 0;

    if (!crew) {
        for (int64_t i = 0; i < count && status == 0; i++)
            status = task(context, 0, i);
        return status;
    }
    pthread_mutex_lock(&crew->lock);
    crew->task = task;
    crew->context = context;
    crew->count = count;
    atomic_store_explicit(&crew->next, 0, memory_order_relaxed);
    crew->failed = -1;
    crew->busy = crew->started;
    crew->round++;
    pthread_cond_broadcast(&crew->begun);
    pthread_mutex_unlock(&crew->lock);
    work(crew, 0);
    pthread_mutex_lock(&crew->lock);
    while (crew->busy > 0)
        pthread_cond_wait(&crew->ended, &crew->lock);
    if (crew->failed >= 0)
        status = problem_fail(crew->status, "%s",
                              crew->text ? crew->text : "out of memory");
    pthread_mutex_unlock(&crew->lock);
    return status;
}
