/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.c - the events of a step (step.h).
 *
 * Between two events everything goes on evenly: the backward pass computes at
 * some rate, a round is on its way, and up to two batches share the network. An
 * event is the next gradient, the end of a round or cycle, or the end of a part
 * of a batch. After each, what may start does start:
 *
 *     gradients     They become ready in the order of the workload.
 *     rounds        One at a time takes all tensors in order that are ready
 *                   then, as far as they fit, and up to the first that needs a
 *                   lane while none is free (core/agree/speaker.c). Small
 *                   tensors are done with it. The others are fused with each
 *                   other (core/agree/ordered_run.c).
 *     batches       They move one after another, or two at once
 *                   (core/run/execute.c).
 *
 * With Horovod's rules a cycle takes the place of a round, and batches move one
 * after another.
 *
 * If hosts share cores, the ranks' computing gets what communication leaves of
 * them, in equal parts. A step waits for the slowest rank, whose computing is
 * the expected maximum of that of all ranks: normal, with a deviation that the
 * workload tells.
 */
#include "project/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A difference of times that is none. */
#define NOTHING 1e-12

enum { MOST_LANES = 4 };

/* A batch under way. */
struct lane {
    int batch; /* -1: free */
    double fixed_left, shared_left, cores;
};

struct play {
    const struct step_task *task;
    const struct workload *workload;
    struct step_result *result;
    struct library *library; /* owned */
    double now;
    double progress; /* seconds of the backward pass, of a rank alone */
    double turns;    /* ranks that share a core, at least 1 */
    double
        slowness; /* computing of the slowest rank, in times the workload's */
    double evenness; /* computing of the mean rank, in times the slowest's */
    double rate;     /* of its computing, undisturbed */
    int nready;      /* tensors that are ready, */
    int nagreed;     /* agreed on */
    double *ready;   /* owned, [tensors] */
    double *done;    /* owned, [tensors] */
    bool in_round;
    double round_end, round_start;
    int round_to; /* the first tensor that it leaves */
    int nstarted; /* batches that have a lane or had one */
    int nunfinished;
    double tokens; /* bytes that may pass the link at once */
    struct lane lanes[MOST_LANES];
    int nlanes; /* batches that move at once */
    bool lacks_memory;
};

/* ------------------------------------------------------------------ batches */

static struct step_batch *add_batch(struct play *p, int ntensors)
{
    struct step_result *r = p->result;
    struct step_batch *grown =
        realloc(r->batches, ((size_t)r->n + 1) * sizeof *grown);
    struct step_batch *batch;

    if (!grown) {
        p->lacks_memory = true;
        return NULL;
    }
    r->batches = grown;
    batch = &r->batches[r->n];
    *batch = (struct step_batch){
        .tensors = calloc((size_t)ntensors + 1, sizeof *batch->tensors),
        .agreed = p->now};
    if (!batch->tensors) {
        p->lacks_memory = true;
        return NULL;
    }
    r->n++;
    return batch;
}

static void put_tensor(const struct play *p, struct step_batch *batch,
                       int tensor)
{
    batch->tensors[batch->n++] = tensor;
    batch->bytes += p->workload->tensors[tensor].bytes;
    batch->ready = fmax(batch->ready, p->ready[tensor]);
}

/* Makes batches of n tensors that were agreed on together. */
static void fuse(struct play *p, int *tensors, int n)
{
    int64_t *bytes = calloc((size_t)n + 1, sizeof *bytes);
    bool *taken = calloc((size_t)n + 1, sizeof *taken);

    while (n > 0 && bytes && taken) {
        struct step_batch *batch;
        int left = 0, ntaken;

        for (int i = 0; i < n; i++)
            bytes[i] = p->workload->tensors[tensors[i]].bytes;
        ntaken = library_fuse(p->library, bytes, n, taken);
        batch = add_batch(p, ntaken);
        if (!batch) {
            p->lacks_memory = true;
            break;
        }
        for (int i = 0; i < n; i++)
            if (taken[i])
                put_tensor(p, batch, tensors[i]);
            else
                tensors[left++] = tensors[i];
        n = left;
        p->nunfinished++;
    }
    p->lacks_memory |= !bytes || !taken;
    free(bytes);
    free(taken);
}

/* Returns the time that a batch saves because the link has been idle before. */
static double take_tokens(struct play *p, const struct duration *time)
{
    double bandwidth = p->task->network.bandwidth;
    double saved = fmin(time->waiting, p->tokens / bandwidth);

    p->tokens -= saved * bandwidth;
    return saved;
}

static void start_batches(struct play *p)
{
    const struct step_task *t = p->task;

    for (int i = 0; i < p->nlanes; i++) {
        struct step_batch *batch;
        struct plan plan;

        /* Batches that went along with a round need no lane. */
        while (p->nstarted < p->result->n &&
               p->result->batches[p->nstarted].algorithm)
            p->nstarted++;
        if (p->lanes[i].batch >= 0 || p->nstarted == p->result->n)
            continue;
        p->lanes[i].batch = p->nstarted;
        batch = &p->result->batches[p->nstarted++];
        plan = t->rules == STEP_RING
                   ? plan_ring((double)batch->bytes, t->shape.nhosts,
                               t->shape.nranks)
                   : library_plan(p->library, batch->bytes);
        batch->algorithm = plan.algorithm;
        batch->start = p->now;
        batch->alone =
            network_time(&t->network, &plan, t->shape.nhosts, t->shape.nranks);
        p->lanes[i].fixed_left = batch->alone.fixed;
        p->lanes[i].shared_left =
            batch->alone.shared - take_tokens(p, &batch->alone);
        p->lanes[i].cores = batch->alone.shared > 0
                                ? batch->alone.cores / batch->alone.shared
                                : 0;
        p->result->link_bytes += plan.link_bytes;
    }
}

static void finish_batches(struct play *p)
{
    for (int i = 0; i < p->nlanes; i++) {
        struct lane *lane = &p->lanes[i];
        struct step_batch *batch;

        if (lane->batch < 0 || lane->fixed_left > NOTHING ||
            lane->shared_left > NOTHING)
            continue;
        batch = &p->result->batches[lane->batch];
        batch->end = p->now;
        for (int k = 0; k < batch->n; k++)
            p->done[batch->tensors[k]] = p->now;
        lane->batch = -1;
        p->nunfinished--;
    }
}

/* ------------------------------------------------------------------- rounds */

static bool goes_along(const struct play *p, int tensor)
{
    return p->task->rules == STEP_HVD &&
           library_goes_along(p->library, p->workload->tensors[tensor].bytes);
}

static bool computes(const struct play *p)
{
    return p->progress < p->workload->backward - NOTHING;
}

/* Returns how long libhvd's thread takes to look. If ranks share cores, it
 * waits for its turn among them. */
static double attention(const struct play *p)
{
    return computes(p) ? p->task->network.attention * p->turns : 0;
}

/* A cycle ends at the next multiple of its length, whatever it takes. */
static void start_cycle(struct play *p)
{
    double cycle = p->task->cycle;

    if (p->nunfinished > 0)
        return;
    p->in_round = true;
    p->round_start = p->now;
    p->round_end =
        cycle > 0 ? (floor(p->now / cycle + 1e-9) + 1) * cycle : p->now;
    p->round_to = -1; /* whatever is ready at its end */
}

static void start_round(struct play *p)
{
    int to = p->nagreed, most = library_round_slots();
    struct library_data data = {0};
    struct plan plan;
    struct duration time;
    bool has_room;

    if (p->in_round || p->nagreed == p->nready)
        return;
    if (p->task->rules == STEP_RING) {
        start_cycle(p);
        return;
    }
    has_room = library_has_room(p->library, p->nunfinished);
    while (to < p->nready && to - p->nagreed < most &&
           (has_room || goes_along(p, to)) &&
           library_add(p->library, p->workload->tensors[to].bytes, &data))
        to++;
    if (to == p->nagreed)
        return;
    plan = library_round(p->library, &data);
    time = network_time(&p->task->network, &plan, p->task->shape.nhosts,
                        p->task->shape.nranks);
    p->in_round = true;
    p->round_start = p->now;
    p->round_end = p->now + duration_all(time) + attention(p);
    p->round_to = to;
    p->result->link_bytes += plan.link_bytes;
}

/* Notes the tensors whose data went along with the round. */
static void note_small(struct play *p, int from, int to)
{
    struct step_batch *batch = NULL;

    for (int i = from; i < to; i++) {
        if (!goes_along(p, i))
            continue;
        if (!batch)
            batch = add_batch(p, to - from);
        if (!batch)
            return;
        put_tensor(p, batch, i);
        p->done[i] = p->now;
        batch->algorithm = "round";
        batch->start = p->round_start;
        batch->end = p->now;
        batch->alone.fixed = batch->end - batch->start;
    }
}

static void end_round(struct play *p)
{
    int from = p->nagreed, to = p->round_to < 0 ? p->nready : p->round_to;
    int *large = calloc((size_t)(to - from) + 1, sizeof *large), n = 0;

    p->in_round = false;
    p->nagreed = to;
    p->result->nrounds++;
    if (!large) {
        p->lacks_memory = true;
        return;
    }
    note_small(p, from, to);
    for (int i = from; i < to; i++)
        if (!goes_along(p, i))
            large[n++] = i;
    fuse(p, large, n);
    free(large);
}

/* --------------------------------------------------------------------- time */

/* Returns the rate at which the ranks compute now. */
static double computing_rate(const struct play *p)
{
    double cores = p->task->network.cores, used = 0, moving = 0, left;
    double nranks = (double)p->task->shape.nhosts * p->task->shape.nranks;

    if (cores <= 0)
        return p->rate;
    for (int i = 0; i < p->nlanes; i++)
        if (p->lanes[i].batch >= 0 && p->lanes[i].fixed_left <= NOTHING)
            moving++;
    for (int i = 0; i < p->nlanes; i++)
        if (p->lanes[i].batch >= 0 && p->lanes[i].fixed_left <= NOTHING)
            used += p->lanes[i].cores / moving;
    left = fmax(cores - used, cores / 10);
    return fmin(1, left / nranks) / p->slowness;
}

static int count_moving(const struct play *p)
{
    int n = 0;

    for (int i = 0; i < p->nlanes; i++)
        n += p->lanes[i].batch >= 0 && p->lanes[i].fixed_left <= NOTHING;
    return n;
}

/* Returns the time until the next event; INFINITY: there is none. */
static double until_next(const struct play *p, double rate)
{
    double dt = INFINITY, moving = count_moving(p);

    if (p->nready < p->workload->n)
        dt = (p->workload->tensors[p->nready].ready - p->progress) / rate;
    else if (computes(p))
        dt = (p->workload->backward - p->progress) / rate;
    if (p->in_round)
        dt = fmin(dt, p->round_end - p->now);
    for (int i = 0; i < p->nlanes; i++) {
        const struct lane *lane = &p->lanes[i];

        if (lane->batch < 0)
            continue;
        dt = fmin(dt, lane->fixed_left > NOTHING ? lane->fixed_left
                                                 : lane->shared_left * moving);
    }
    return fmax(dt, 0);
}

static void pass(struct play *p, double dt, double rate)
{
    double moving = count_moving(p);
    bool is_computing = computes(p);
    bool busy = p->in_round && p->task->rules == STEP_HVD;

    for (int i = 0; i < p->nlanes; i++) {
        struct lane *lane = &p->lanes[i];

        if (lane->batch < 0)
            continue;
        busy = true;
        if (lane->fixed_left > NOTHING)
            lane->fixed_left -= dt;
        else
            lane->shared_left -= dt / moving;
    }
    if (moving == 0)
        p->tokens = fmin(p->task->network.burst,
                         p->tokens + dt * p->task->network.bandwidth);
    p->result->busy += busy ? dt : 0;
    p->result->hidden += busy && is_computing ? dt : 0;
    p->now += dt;
    if (is_computing)
        p->progress += dt * rate;
    if (is_computing && p->progress >= p->workload->backward - NOTHING)
        p->result->computed = p->now;
}

static void see_ready(struct play *p)
{
    while (p->nready < p->workload->n &&
           p->workload->tensors[p->nready].ready <= p->progress + NOTHING)
        p->ready[p->nready++] = p->now;
}

static bool is_over(const struct play *p)
{
    return p->nagreed == p->workload->n && p->nunfinished == 0 &&
           p->progress >= p->workload->backward - NOTHING;
}

static void play_backward(struct play *p)
{
    while (!p->lacks_memory) {
        double rate, dt;

        see_ready(p);
        finish_batches(p);
        if (p->in_round && p->round_end <= p->now + NOTHING)
            end_round(p);
        start_batches(p);
        start_round(p);
        if (is_over(p))
            return;
        rate = computing_rate(p);
        dt = until_next(p, rate);
        if (!(dt < INFINITY))
            return;
        pass(p, dt, rate);
    }
}

/* The weights are updated in the order of their gradients, each when its
 * average is there. */
static double end_of_update(const struct play *p)
{
    double all = (double)workload_bytes(p->workload), at = p->result->computed;

    for (int i = 0; i < p->workload->n; i++)
        at = fmax(at, p->done[i]) +
             p->workload->update / p->rate *
                 ((double)p->workload->tensors[i].bytes / all);
    return at;
}

static void sum_up(struct play *p)
{
    struct step_result *r = p->result;

    for (int i = 0; i < p->workload->n; i++)
        r->reduced = fmax(r->reduced, p->done[i]);
    r->forward = p->workload->forward / p->rate;
    r->backward = p->workload->backward / p->rate;
    r->update = p->workload->update / p->rate;
    r->uneven = (r->forward + r->backward + r->update) * (1 - p->evenness);
    r->total = r->forward + end_of_update(p);
}

/* The integral of 1 - F(x)^n over x > 0, less that of F(x)^n below, where F is
 * the normal distribution. */
double step_slowest(double n)
{
    const double width = 1e-3;
    double sum = 0;

    if (n <= 1)
        return 0;
    for (int i = 0; i < 8000; i++) {
        double x = (i + 0.5) * width;

        sum += 1 - pow(0.5 * erfc(-x / sqrt(2)), n) -
               pow(0.5 * erfc(x / sqrt(2)), n);
    }
    return sum * width;
}

int step_run(const struct step_task *task, struct step_result *result)
{
    size_t n = (size_t)task->workload->n;
    double nranks = (double)task->shape.nhosts * task->shape.nranks;
    double deviation = task->workload->deviation;
    double slowest = 1 + deviation * step_slowest(nranks);
    struct play p = {.task = task,
                     .workload = task->workload,
                     .result = result,
                     .turns = 1,
                     .slowness =
                         slowest /
                         (1 + deviation * step_slowest(task->workload->nranks)),
                     .evenness = 1 / slowest};

    *result = (struct step_result){0};
    p.library = library_new(&task->shape, &task->network);
    p.ready = calloc(n + 1, sizeof *p.ready);
    p.done = calloc(n + 1, sizeof *p.done);
    if (task->network.cores > 0 && nranks > task->network.cores)
        p.turns = nranks / task->network.cores;
    p.rate = 1 / p.turns / p.slowness;
    p.lacks_memory = !p.library || !p.ready || !p.done;
    if (!p.lacks_memory) {
        p.tokens = task->network.burst;
        p.nlanes = task->rules == STEP_RING ? 1 : library_moving(p.library);
        for (int i = 0; i < MOST_LANES; i++)
            p.lanes[i].batch = -1;
        if (nranks > 1)
            play_backward(&p);
        else
            result->computed = task->workload->backward / p.rate;
    }
    if (!p.lacks_memory)
        sum_up(&p);
    library_free(p.library);
    free(p.ready);
    free(p.done);
    return p.lacks_memory ? -1 : 0;
}

void step_result_fini(struct step_result *result)
{
    for (int i = 0; i < result->n; i++)
        free(result->batches[i].tensors);
    free(result->batches);
    *result = (struct step_result){0};
}

double step_computing(const struct step_result *r)
{
    return r->forward + r->backward + r->update - r->uneven;
}

double step_exposed(const struct step_result *r)
{
    return r->total - r->forward - r->backward - r->update;
}

double step_efficiency(const struct step_result *r)
{
    return r->total > 0 ? step_computing(r) / r->total : 1;
}

const struct step_batch *step_last(const struct step_result *r)
{
    const struct step_batch *last = NULL;

    for (int i = 0; i < r->n; i++)
        if (!last || r->batches[i].end >= last->end)
            last = &r->batches[i];
    return last;
}
