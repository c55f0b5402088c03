/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/worker.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Sums before the clock runs; the first also waits for the other ranks. */
enum { WARM_UPS = 2 };

struct worker {
    const struct backend *backend;
    const struct backend_place *place;
    void *state;
    float *values;
    int64_t count;
    struct worker_answer answer;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(struct worker *worker, const char *error)
{
    snprintf(worker->answer.error, sizeof worker->answer.error, "%s", error);
    return -1;
}

static int open_backend(struct worker *worker, int64_t bytes)
{
    const struct backend *backend = worker->backend;

    worker->state = backend->open(backend, worker->place, worker->answer.error,
                                  sizeof worker->answer.error);
    if (!worker->state)
        return -1;
    worker->values = backend->memory(worker->state, (size_t)bytes);
    if (!worker->values)
        return fail(worker, "there is no memory for so many bytes");
    /* Every page is there before the clock runs. */
    memset(worker->values, 0, (size_t)bytes);
    return 0;
}

static int sum(struct worker *worker, int niters)
{
    int status = 0;

    for (int i = 0; i < niters && status == 0; i++)
        status = worker->backend->run(worker->state, worker->answer.error,
                                      sizeof worker->answer.error);
    return status;
}

/* Sums small whole numbers, which are exact in any order. Leaves zeros, which
 * stay zeros however often they are summed. */
static int check(struct worker *worker)
{
    int nranks = worker->place->nranks, rank = worker->place->rank;
    int64_t nwrong = 0, all = nranks * (nranks + 1) / 2;

    for (int64_t i = 0; i < worker->count; i++)
        worker->values[i] = (float)((i % 1009 + 1) * (rank + 1));
    if (sum(worker, 1) < 0)
        return -1;
    for (int64_t i = 0; i < worker->count; i++)
        nwrong += worker->values[i] != (float)((i % 1009 + 1) * all);
    memset(worker->values, 0, (size_t)worker->count * sizeof(float));
    if (nwrong) {
        snprintf(worker->answer.error, sizeof worker->answer.error,
                 "%lld of %lld sums are wrong", (long long)nwrong,
                 (long long)worker->count);
        return -1;
    }
    return 0;
}

static int prepare(struct worker *worker, int64_t count)
{
    worker->count = count;
    if (worker->backend->prepare(worker->state, (size_t)count,
                                 worker->answer.error,
                                 sizeof worker->answer.error) < 0)
        return -1;
    return check(worker);
}

static int run(struct worker *worker, int niters)
{
    double start;

    if (sum(worker, WARM_UPS) < 0)
        return -1;
    start = now();
    if (sum(worker, niters) < 0)
        return -1;
    worker->answer.seconds = now() - start;
    return 0;
}

static int answer(struct worker *worker, int status, int socket)
{
    worker->answer.status = status;
    return send(socket, &worker->answer, sizeof worker->answer, MSG_NOSIGNAL) ==
                       (ssize_t)sizeof worker->answer &&
                   status == 0
               ? 0
               : -1;
}

_Noreturn void worker_run(const struct backend *backend,
                          const struct backend_place *place, int64_t most_bytes,
                          int socket)
{
    struct worker worker = {.backend = backend, .place = place};
    struct worker_order order;
    int status = answer(&worker, open_backend(&worker, most_bytes), socket);

    while (status == 0 && recv(socket, &order, sizeof order, MSG_WAITALL) ==
                              (ssize_t)sizeof order)
        status = answer(&worker,
                        order.count ? prepare(&worker, order.count)
                                    : run(&worker, order.niters),
                        socket);
    /* After a failure the others may wait for ever. */
    if (status == 0)
        backend->close(worker.state);
    _exit(status != 0);
}
