/* SPDX-License-Identifier: Apache-2.0 */
/*
 * joined.h - engines of one program, each on a thread, joined by a network that
 * moves bytes between the threads; for tests of device collectives.
 *
 * The last process to start a collective does its work. Each collective is
 * found by its name, as by a real network.
 */
#ifndef HVD_TESTS_JOINED_H
#define HVD_TESTS_JOINED_H

#include <pthread.h>
#include <stdbool.h>

#include "device.h"

enum { MOST_PROCESSES = 8, MOST_SLOTS = 16, NOBODY = -1 };

/* A collective that is under way. */
struct slot {
    char name[64];
    ipu_collective what;
    void *data[MOST_PROCESSES];
    char *gathered; /* owned */
    int here, left;
    bool complete;
};

struct cable {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int processes;
    struct slot slots[MOST_SLOTS];
    int done;      /* collectives in all */
    int most;      /* the most that were under way at once */
    int fails;     /* this process fails to start; or NOBODY */
    bool broken;   /* it has */
    int abandoned; /* calls of abandon */
};

struct joined_process {
    struct cable *cable;
    int rank;
    ipu_engine *engine;
    int under_way;
    int status;
    int callback_status;
    char text[512];
};

static struct cable cable;
static struct joined_process processes[MOST_PROCESSES];

static inline size_t joined_size(ipu_dtype dtype)
{
    return dtype == IPU_FLOAT32 || dtype == IPU_INT32 ? 4 : 2;
}

static inline float joined_load(ipu_dtype dtype, const void *data, int64_t i)
{
    uint32_t bits;
    float value;

    if (dtype == IPU_FLOAT32)
        return ((const float *)data)[i];
    bits = (uint32_t)((const uint16_t *)data)[i] << 16;
    memcpy(&value, &bits, 4);
    return value;
}

/* A bfloat16 is rounded to the nearest, ties to even. */
static inline void joined_store(ipu_dtype dtype, void *data, int64_t i,
                                float value)
{
    uint32_t bits;

    if (dtype == IPU_FLOAT32) {
        ((float *)data)[i] = value;
        return;
    }
    memcpy(&bits, &value, 4);
    bits += 0x7fff + (bits >> 16 & 1);
    ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
}

static inline void joined_reduce(const struct cable *c, const struct slot *s)
{
    for (int64_t i = 0; i < s->what.count; i++) {
        float sum = 0;

        for (int r = 0; r < c->processes; r++)
            sum += joined_load(s->what.dtype, s->data[r], i);
        if (s->what.mean)
            sum /= (float)c->processes;
        for (int r = 0; r < c->processes; r++)
            joined_store(s->what.dtype, s->data[r], i, sum);
    }
}

static inline void joined_work(const struct cable *c, struct slot *s)
{
    const size_t bytes = (size_t)s->what.count * joined_size(s->what.dtype);

    if (s->what.kind == IPU_COLLECTIVE_REDUCE)
        joined_reduce(c, s);
    if (s->what.kind == IPU_COLLECTIVE_GATHER)
        s->gathered = malloc(bytes * (size_t)c->processes + 1);
    for (int r = 0; r < c->processes; r++) {
        if (s->what.kind == IPU_COLLECTIVE_BROADCAST && r != s->what.root)
            memcpy(s->data[r], s->data[s->what.root], bytes);
        if (s->gathered)
            memcpy(s->gathered + (size_t)r * bytes, s->data[r], bytes);
    }
    s->complete = true;
}

static inline struct slot *joined_slot(struct cable *c, const char *name)
{
    struct slot *unused = NULL;

    for (int i = 0; i < MOST_SLOTS; i++) {
        if (c->slots[i].here > 0 && strcmp(c->slots[i].name, name) == 0)
            return &c->slots[i];
        if (c->slots[i].here == 0 && !unused)
            unused = &c->slots[i];
    }
    return unused;
}

static int joined_start(void *context, const ipu_collective *what, void *data)
{
    struct joined_process *p = context;
    struct cable *c = p->cable;
    struct slot *s;

    pthread_mutex_lock(&c->lock);
    if (p->rank == c->fails || c->broken) {
        c->broken = true;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock);
        return p->rank == c->fails ? -77 : -55;
    }
    /* In a loop, somebody may still be at the last iteration's. */
    while ((s = joined_slot(c, what->name))->complete)
        pthread_cond_wait(&c->changed, &c->lock);
    snprintf(s->name, sizeof s->name, "%s", what->name);
    s->what = *what;
    s->data[p->rank] = data;
    if (++s->here == c->processes)
        joined_work(c, s);
    if (++p->under_way > c->most)
        c->most = p->under_way;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static int joined_finish(void *context, const ipu_collective *what, void *data)
{
    struct joined_process *p = context;
    struct cable *c = p->cable;
    struct slot *s;
    bool complete;

    pthread_mutex_lock(&c->lock);
    s = joined_slot(c, what->name);
    while (!s->complete && !c->broken)
        pthread_cond_wait(&c->changed, &c->lock);
    complete = s->complete;
    if (complete && s->gathered)
        memcpy(data, s->gathered, /* of all, in their order */
               (size_t)what->count * joined_size(what->dtype) *
                   (size_t)c->processes);
    p->under_way--;
    if (complete && ++s->left == c->processes) {
        free(s->gathered);
        memset(s, 0, sizeof *s);
        c->done++;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    return complete ? 0 : -55;
}

static void joined_abandon(void *context)
{
    struct joined_process *p = context;

    pthread_mutex_lock(&p->cable->lock);
    p->cable->abandoned++;
    p->under_way = 0;
    pthread_mutex_unlock(&p->cable->lock);
}

static const char *joined_text(void *context)
{
    const struct joined_process *p = context;

    return p->rank == p->cable->fails ? "the port is down"
                                      : "process 1 has gone";
}

static const ipu_network_functions joined_functions = {
    sizeof joined_functions, joined_start, joined_finish, joined_abandon,
    joined_text};

/* Compiles d's graph, and makes an engine for each of count processes. */
static inline void joined_load_all(struct device *d, int count)
{
    if (!d->executable)
        MUST(ipu_compile(d->graph, NULL, &d->executable));
    memset(&cable, 0, sizeof cable);
    pthread_mutex_init(&cable.lock, NULL);
    pthread_cond_init(&cable.changed, NULL);
    cable.processes = count;
    cable.fails = NOBODY;
    for (int r = 0; r < count; r++) {
        processes[r] = (struct joined_process){.cable = &cable, .rank = r};
        MUST(ipu_engine_new(d->executable, &processes[r].engine));
        MUST(ipu_engine_network(processes[r].engine, &joined_functions,
                                &processes[r], count));
    }
}

/* Frees the engines. */
static inline void joined_end(void)
{
    for (int r = 0; r < MOST_PROCESSES; r++) {
        ipu_engine_free(processes[r].engine);
        processes[r].engine = NULL;
    }
    for (int i = 0; i < MOST_SLOTS; i++)
        free(cable.slots[i].gathered);
}

/* Connects each engine to its part of data, bytes of it. */
static inline void joined_connect(const char *name, void *data, size_t bytes)
{
    for (int r = 0; r < cable.processes; r++)
        MUST(ipu_engine_connect(processes[r].engine, name,
                                (char *)data + (size_t)r * bytes, bytes));
}

static void *joined_thread(void *context)
{
    struct joined_process *p = context;

    p->status = ipu_engine_run(p->engine);
    p->callback_status = ipu_engine_callback_status(p->engine);
    snprintf(p->text, sizeof p->text, "%s",
             p->status < 0 ? ipu_last_error() : "");
    return NULL;
}

/* Runs all once. Their statuses are in processes. */
static inline void joined_try(void)
{
    pthread_t threads[MOST_PROCESSES];

    for (int r = 0; r < cable.processes; r++)
        ck_assert_int_eq(
            pthread_create(&threads[r], NULL, joined_thread, &processes[r]), 0);
    for (int r = 0; r < cable.processes; r++)
        pthread_join(threads[r], NULL);
}

static inline void joined_run(void)
{
    joined_try();
    for (int r = 0; r < cable.processes; r++)
        ck_assert_msg(processes[r].status >= 0, "process %d: %s", r,
                      processes[r].text);
}

#endif
