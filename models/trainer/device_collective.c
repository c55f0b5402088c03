/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_collective.c - moves the collectives of a device's program by libhvd.
 *
 * Each is a request of libhvd with the collective's name, submitted when the
 * device starts it and waited for when the device needs the result. Requests
 * work on the device's memory in place, but for gathers, whose result libhvd
 * hands over. The bytes go as those of any request, by MPI, UCX or shared
 * memory; only the time in the report is that of a device's network.
 *
 * Replicas come to each collective with the same tensor, on threads of their
 * own. The first that starts it submits a copy, the first that finishes it
 * waits for the result, and all take theirs from the copy; so none of them
 * waits for another. The last removes it.
 */
#include "trainer/device_collective.h"

#include "output/clock.h"
#include "output/problem.h"
#include "trainer/agree.h"
#include "trainer/program.h"

#include <hvd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A collective that is under way. */
struct flight {
    char name[80];
    hvd_handle handle;
    /* Of replicas: */
    void *copy; /* owned */
    int left;   /* replicas that have the result */
    bool waited;
    int status; /* after that */
};

struct device_collective {
    ipu_network model;
    ipu_bf16_recipe *recipe; /* owned; NULL: there is none */
    struct flight *flights;  /* owned */
    int count, capacity;
    int problem; /* the first of the current run; 0: none */
    double waited;
    int replicas;         /* that share the network; 0: an engine has it */
    pthread_mutex_t lock; /* of replicas; guards what is above it, and text */
    char text[512];       /* of the first failure of the current run */
};

static const hvd_dtype dtypes[] = {[IPU_FLOAT32] = HVD_FLOAT32,
                                   [IPU_INT32] = HVD_INT32,
                                   [IPU_FLOAT16] = HVD_FLOAT16,
                                   [IPU_BFLOAT16] = HVD_BFLOAT16};

/* Keeps the first failure: libhvd reports those that follow differently. */
static int keep_problem(struct device_collective *n, int status)
{
    if (status >= 0 || n->problem)
        return status;
    snprintf(n->text, sizeof n->text, "%s", hvd_last_error());
    n->problem = agree_hvd_problem(status);
    return status;
}

static size_t bytes_of(const ipu_collective *c)
{
    const bool wide = c->dtype == IPU_FLOAT32 || c->dtype == IPU_INT32;

    return (size_t)c->count * (wide ? 4 : 2);
}

static int submit(const struct flight *f, const ipu_collective *c, void *data,
                  hvd_handle *handle)
{
    const hvd_dtype dtype = dtypes[c->dtype];

    switch (c->kind) {
    case IPU_COLLECTIVE_REDUCE:
        return hvd_allreduce_async(f->name, data, data, c->count, dtype,
                                   c->mean ? HVD_AVERAGE : HVD_SUM, handle);
    case IPU_COLLECTIVE_BROADCAST:
        return hvd_broadcast_async(f->name, data, c->count, dtype, c->root,
                                   handle);
    default: return hvd_allgather_async(f->name, data, c->count, dtype, handle);
    }
}

static struct flight *add_flight(struct device_collective *n)
{
    int capacity = 2 * n->capacity + 8;
    struct flight *grown;

    if (n->count < n->capacity)
        return &n->flights[n->count];
    grown = realloc(n->flights, (size_t)capacity * sizeof *grown);
    if (!grown)
        return NULL;
    n->flights = grown;
    n->capacity = capacity;
    return &n->flights[n->count];
}

static int keep_no_memory(struct device_collective *n)
{
    if (n->problem == 0) {
        snprintf(n->text, sizeof n->text, "no memory for a collective");
        n->problem = problem_set("%s", n->text);
    }
    return HVD_ERR_MEMORY;
}

static void name_flight(struct flight *f, const ipu_collective *c)
{
    /* cppcheck-suppress ctuuninitvar; it is written here */
    snprintf(f->name, sizeof f->name, "device/%.70s", c->name);
}

static int start(void *context, const ipu_collective *c, void *data)
{
    struct device_collective *n = context;
    struct flight *f = add_flight(n);
    int status;

    if (!f)
        return keep_no_memory(n);
    name_flight(f, c);
    status = keep_problem(n, submit(f, c, data, &f->handle));
    n->count += status >= 0;
    return status;
}

/* Takes the flight of that name off the list. */
static hvd_handle take_flight(struct device_collective *n,
                              const ipu_collective *c)
{
    struct flight wanted;
    int i = 0;

    name_flight(&wanted, c);
    while (i < n->count - 1 && strcmp(n->flights[i].name, wanted.name) != 0)
        i++;
    wanted = n->flights[i];
    n->count--;
    memmove(&n->flights[i], &n->flights[i + 1],
            (size_t)(n->count - i) * sizeof *n->flights);
    return wanted.handle;
}

static int finish(void *context, const ipu_collective *c, void *data)
{
    struct device_collective *n = context;
    hvd_handle handle = take_flight(n, c);
    hvd_tensor gathered = {.size = sizeof gathered};
    double start_seconds = clock_seconds();
    int status;

    if (c->kind != IPU_COLLECTIVE_GATHER) {
        status = hvd_wait(handle);
    } else {
        status = hvd_wait_output(handle, &gathered);
        if (status >= 0)
            memcpy(data, gathered.data,
                   bytes_of(c) * (size_t)n->model.processes);
        hvd_free(gathered.data);
    }
    n->waited += clock_seconds() - start_seconds;
    return keep_problem(n, status);
}

/* The others have started what this rank has, or fail with it. */
static void abandon(void *context)
{
    struct device_collective *n = context;

    while (n->count > 0)
        keep_problem(n, hvd_wait(n->flights[--n->count].handle));
}

/* ------------------------------------------------------- shared by replicas */

/* Returns NULL if it has not started in this run. */
static struct flight *find_flight(const struct device_collective *n,
                                  const ipu_collective *c)
{
    struct flight wanted;

    name_flight(&wanted, c);
    for (int i = 0; i < n->count; i++)
        if (strcmp(n->flights[i].name, wanted.name) == 0)
            return &n->flights[i];
    return NULL;
}

static void remove_flight(struct device_collective *n, struct flight *f)
{
    struct flight *last = &n->flights[n->count - 1];

    free(f->copy);
    if (f != last)
        *f = *last;
    last->copy = NULL;
    n->count--;
}

/* Starts what the first of the replicas has come to. */
static int start_copy(struct device_collective *n, const ipu_collective *c,
                      const void *data)
{
    struct flight *f = add_flight(n);
    int status;

    if (!f)
        return keep_no_memory(n);
    *f = (struct flight){.copy = malloc(bytes_of(c) + 1)};
    if (!f->copy)
        return keep_no_memory(n);
    name_flight(f, c);
    memcpy(f->copy, data, bytes_of(c));
    status = keep_problem(n, submit(f, c, f->copy, &f->handle));
    if (status < 0)
        free(f->copy);
    else
        n->count++;
    return status;
}

/* The result of a gather is larger than the copy. No program has one. */
static int refuse_gather(struct device_collective *n, const ipu_collective *c)
{
    snprintf(n->text, sizeof n->text,
             "replicas of several ranks cannot gather '%s'", c->name);
    n->problem = problem_set("%s", n->text);
    return HVD_ERR_UNSUPPORTED;
}

static int shared_start(void *context, const ipu_collective *c, void *data)
{
    struct device_collective *n = context;
    int status = 0;

    pthread_mutex_lock(&n->lock);
    if (n->problem)
        status = HVD_ERR_PEER; /* the text says what has failed */
    else if (c->kind == IPU_COLLECTIVE_GATHER)
        status = refuse_gather(n, c);
    else if (!find_flight(n, c))
        status = start_copy(n, c, data);
    pthread_mutex_unlock(&n->lock);
    return status;
}

static void wait_for(struct device_collective *n, struct flight *f)
{
    double start_seconds = clock_seconds();

    if (f->waited)
        return;
    f->status = keep_problem(n, hvd_wait(f->handle));
    f->waited = true;
    n->waited += clock_seconds() - start_seconds;
}

static int shared_finish(void *context, const ipu_collective *c, void *data)
{
    struct device_collective *n = context;
    struct flight *f;
    int status = HVD_ERR_PEER;

    pthread_mutex_lock(&n->lock);
    f = find_flight(n, c);
    if (f) {
        wait_for(n, f);
        status = f->status;
        if (status >= 0)
            memcpy(data, f->copy, bytes_of(c));
        if (++f->left == n->replicas)
            remove_flight(n, f);
    }
    pthread_mutex_unlock(&n->lock);
    return status;
}

static void shared_abandon(void *context)
{
    struct device_collective *n = context;

    pthread_mutex_lock(&n->lock);
    while (n->count > 0) {
        wait_for(n, &n->flights[0]);
        remove_flight(n, &n->flights[0]);
    }
    pthread_mutex_unlock(&n->lock);
}

static const char *text(void *context)
{
    return ((const struct device_collective *)context)->text;
}

/* ----------------------------------------------------------------- the door */

int device_collective_new(const char *recipe, int64_t pack_bytes,
                          struct device_collective **network)
{
    struct device_collective *n = calloc(1, sizeof *n);

    if (!n)
        return problem_set("no memory for the devices' network");
    pthread_mutex_init(&n->lock, NULL);
    ipu_network_init(&n->model, sizeof n->model);
    n->model.processes = hvd_size();
    if (pack_bytes >= 0)
        n->model.pack_bytes = pack_bytes;
    if (recipe && ipu_bf16_recipe_new(recipe, &n->recipe) < 0) {
        device_collective_free(n);
        return program_device_problem();
    }
    n->model.recipe = n->recipe;
    *network = n;
    return 0;
}

void device_collective_free(struct device_collective *n)
{
    if (!n)
        return;
    ipu_bf16_recipe_free(n->recipe);
    pthread_mutex_destroy(&n->lock);
    free(n->flights);
    free(n);
}

const ipu_network *device_collective_model(const struct device_collective *n)
{
    return n->model.processes > 1 ? &n->model : NULL;
}

int device_collective_connect(struct device_collective *n, ipu_engine *engine)
{
    const ipu_network_functions functions = {
        .size = sizeof functions,
        .start = start,
        .finish = finish,
        .abandon = abandon,
        .text = text,
    };

    if (ipu_engine_network(engine, &functions, n, n->model.processes) < 0)
        return program_device_problem();
    return 0;
}

int device_collective_connect_replicas(struct device_collective *n,
                                       ipu_replicas *replicas)
{
    const ipu_network_functions functions = {
        .size = sizeof functions,
        .start = shared_start,
        .finish = shared_finish,
        .abandon = shared_abandon,
        .text = text,
    };

    n->replicas = ipu_replicas_count(replicas);
    if (ipu_replicas_network(replicas, &functions, n, n->model.processes) < 0)
        return program_device_problem();
    return 0;
}

void device_collective_begin(struct device_collective *n)
{
    n->problem = 0;
    n->waited = 0;
}

int device_collective_problem(const struct device_collective *n)
{
    return n->problem;
}

double device_collective_waited(const struct device_collective *n)
{
    return n->waited;
}
