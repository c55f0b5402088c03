/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meeting.c - the place where replicas meet that are within loops.
 *
 * A loop is one step of its program, so replicas cannot be stopped at a
 * collective op in its body and taken up again later: each is on a thread of
 * its own, and waits. The last to come adds up, in the order of the replicas. A
 * replica that fails, or is through with its part of the program, leaves; then
 * nobody waits for it, but fails too: replicas that go around a loop a
 * different number of times cannot meet. Replicas that come to different sums
 * cannot meet either: their tensors may differ in size.
 */
#include "replica/meeting.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"
#include "replica/replica.h"

struct ipu__meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int32_t replicas;
    /* The lock guards the rest: */
    int32_t here, left;
    bool astray; /* replicas have come to different steps: nobody meets any more
                  */
    const struct ipu__step *step; /* borrowed: that they have come to */
    int64_t met;
    void *tensors[IPU_MAX_IPUS];
};

int ipu__meeting_new(int32_t replicas, struct ipu__meeting **made)
{
    struct ipu__meeting *m;

    IPU_TRY(ipu__new(&m, sizeof *m));
    m->replicas = replicas;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    *made = m;
    return IPU_OK;
}

void ipu__meeting_free(struct ipu__meeting *m)
{
    if (!m)
        return;
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void ipu__meeting_open(struct ipu__meeting *m)
{
    pthread_mutex_lock(&m->lock);
    m->here = m->left = 0;
    m->astray = false;
    pthread_mutex_unlock(&m->lock);
}

void ipu__meeting_leave(struct ipu__meeting *m)
{
    pthread_mutex_lock(&m->lock);
    m->left++;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

static void add_up(struct ipu__meeting *m, const struct ipu__step *step,
                   const struct ipu__shape *shape)
{
    int32_t size = step->attributes.size ? step->attributes.size : m->replicas;
    float scale = step->attributes.keep ? 1 / (float)size : 1;

    for (int32_t first = 0; first < m->replicas; first += size)
        ipu__sum_replicas(shape->dtype, size, m->tensors + first,
                          ipu__shape_count(shape), scale);
    m->here = 0;
    m->met++;
    pthread_cond_broadcast(&m->changed);
}

static void arrive_at_step(struct ipu__meeting *m, int32_t replica,
                           const struct ipu__step *step, void *data)
{
    if (m->here++ == 0)
        m->step = step;
    m->tensors[replica] = data;
    if (m->step == step)
        return;
    m->astray = true;
    pthread_cond_broadcast(&m->changed);
}

int ipu__meeting_come(void *meeting, int32_t replica,
                      const struct ipu__step *step,
                      const struct ipu__shape *shape, void *data)
{
    struct ipu__meeting *m = meeting;
    int64_t met;
    bool done, astray;

    pthread_mutex_lock(&m->lock);
    met = m->met;
    arrive_at_step(m, replica, step, data);
    if (m->here == m->replicas && !m->astray)
        add_up(m, step, shape);
    while (m->met == met && m->left == 0 && !m->astray)
        pthread_cond_wait(&m->changed, &m->lock);
    done = m->met != met;
    astray = m->astray;
    pthread_mutex_unlock(&m->lock);
    if (done)
        return IPU_OK;
    return ipu__fail(IPU_ERR_STATE, "%s",
                     astray ? "replicas have come to different sums over "
                              "replicas: they must go around each loop equally "
                              "often"
                            : "another replica has failed, or gone around a "
                              "loop less often, and does not come to a sum "
                              "over replicas");
}

int64_t ipu__meeting_count(struct ipu__meeting *m)
{
    int64_t met;

    pthread_mutex_lock(&m->lock);
    met = m->met;
    pthread_mutex_unlock(&m->lock);
    return met;
}
