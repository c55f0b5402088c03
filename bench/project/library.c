/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.c - asks libhvd what it does (library.h), and describes what its
 * algorithms then do as plans.
 *
 * A collective of a world of this shape is made up, as core/run makes one, and
 * algo.c chooses for it. What the algorithms send, step by step, is known here
 * by their names; of one that is not, the plan is its own cost.
 *
 * The ranks of a host have consecutive numbers. Ranks at distance d, a power of
 * two, are on different hosts if d is not less than the ranks of a host; if
 * these are no power of two, some are even for smaller distances, and a step
 * counts as one between hosts if any pair of it is.
 */
#include "project/library.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/agree/batch.h"
#include "core/agree/offer.h"
#include "core/agree/ordered.h"
#include "core/run/engine.h"
#include "core/run/execute.h"
#include "core/table/set.h"
#include "disk/disk.h"
#include "transport/algo/algo.h"
#include "transport/costs.h"

enum { ELEMENT = sizeof(float) };

struct library {
    struct library_shape shape;
    struct hvd__costs costs;
    struct hvd__engine engine; /* only its settings */
    struct hvd__set set;
    struct hvd__executor executor; /* only its count */
    struct hvd__hosts hosts;
    struct hvd__shm shm;
    struct hvd__workspace workspace;
    struct hvd__collective collective; /* the last that was made up */
    int *first, *members;              /* owned: of hosts */
};

/* ------------------------------------------------------------------ a world */

static int64_t nanoseconds(double seconds)
{
    return (int64_t)llround(1e9 * seconds);
}

/* The costs as a world would measure them. */
static struct hvd__costs costs_of(const struct network *n)
{
    struct hvd__costs costs = hvd__default_costs;
    double moved = 1 / n->bandwidth;

    if (n->stream > 0 && n->stream < n->bandwidth)
        moved = 1 / n->stream;
    if (2 * n->handling > moved)
        moved = 2 * n->handling;
    costs.between = (struct hvd__link_costs){
        .step = nanoseconds(n->latency),
        .message = nanoseconds(2 * n->overhead),
        .kib_moved = nanoseconds(1024 * moved),
    };
    costs.kib_reduced = nanoseconds(1024 * n->reducing);
    return costs;
}

int library_read_network(const char *path, struct network *network, char *error,
                         size_t size)
{
    struct hvd__costs costs;
    char text[HVD__COSTS_TEXT] = "";
    int status = 0;
    FILE *file = disk__read_stream(path, &status);

    if (!file) {
        snprintf(error, size, "%s: %s", path, disk__text(status));
        return -1;
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    if (hvd__costs_parse(path, text, &costs) < 0) {
        snprintf(error, size, "%s", hvd_last_error());
        return -1;
    }
    *network = (struct network){
        .latency = 1e-9 * (double)costs.between.step,
        .overhead = 0.5e-9 * (double)costs.between.message,
        .bandwidth = 1024e9 / fmax((double)costs.between.kib_moved, 1),
        .local = 1e-9 * (double)(costs.within.step + costs.within.message),
        .copying = 1e-9 / 1024 * (double)costs.within.kib_moved,
        .reducing = 1e-9 / 1024 * (double)costs.kib_reduced,
    };
    return 0;
}

static void group_by_host(struct library *l)
{
    int n = l->shape.nhosts, m = l->shape.nranks;

    l->hosts = (struct hvd__hosts){.shm = m > 1 ? &l->shm : NULL,
                                   .n = n,
                                   .widest = m,
                                   .narrowest = m,
                                   .group = 1,
                                   .first = l->first,
                                   .members = l->members,
                                   .places = l->members};
    for (int i = 0; i <= n; i++)
        l->first[i] = i * m;
    for (int i = 0; i < n * m; i++)
        l->members[i] = i;
}

struct library *library_new(const struct library_shape *shape,
                            const struct network *network)
{
    struct library *l = calloc(1, sizeof *l);
    int n = shape->nhosts * shape->nranks;

    if (!l)
        return NULL;
    l->shape = *shape;
    l->costs = costs_of(network);
    if (!shape->by_network)
        l->costs = hvd__costs_at_rate(l->costs.between.kib_moved);
    hvd__settings_read(&l->engine.settings);
    l->first = calloc((size_t)shape->nhosts + 1, sizeof *l->first);
    l->members = calloc((size_t)n, sizeof *l->members);
    if (!l->first || !l->members || hvd__workspace_init(&l->workspace, n) < 0) {
        library_free(l);
        return NULL;
    }
    group_by_host(l);
    l->shm.size = shape->nranks;
    l->shm.bounce_bytes = hvd__shm_bounce_bytes(l->engine.settings.shm_block, n,
                                                shape->nhosts > 1);
    l->set.team = (struct hvd__team){.world = l->members,
                                     .size = n,
                                     .costs = &l->costs,
                                     .is_near = shape->nhosts == 1};
    l->set.engine = &l->engine;
    l->set.executor = &l->executor;
    l->set.shm = shape->nranks > 1 ? &l->shm : NULL;
    if (shape->nhosts == 1)
        l->set.team.shm = shape->nranks > 1 ? &l->shm : NULL;
    else
        l->set.hosts = &l->hosts;
    if (shape->nhosts > 1 && shape->nranks > 1)
        l->set.team.hosts = &l->hosts;
    return l;
}

void library_free(struct library *l)
{
    if (!l)
        return;
    hvd__workspace_fini(&l->workspace);
    free(l->first);
    free(l->members);
    free(l);
}

/* ------------------------------------------------------------------- rounds */

/* Returns the way of an averaging allreduce in a round. */
static enum hvd__way way_of(struct library *l, int64_t bytes)
{
    const struct hvd__request request = {
        .bytes = (size_t)bytes,
        .count = bytes / ELEMENT,
        .rows = bytes / ELEMENT,
        .signature = {.kind = HVD_ALLREDUCE,
                      .dtype = HVD_FLOAT32,
                      .op = HVD_AVERAGE,
                      .ndim = 1,
                      .prescale = 1,
                      .postscale = 1,
                      .shape = {bytes / ELEMENT}},
    };

    return l->set.hosts ? hvd__way_of(&l->set, &request) : HVD__WAY_NONE;
}

bool library_goes_along(struct library *l, int64_t bytes)
{
    return way_of(l, bytes) != HVD__WAY_NONE;
}

/* Returns the most bytes of data that a message of a round has. */
static int64_t largest_message(const struct library_data *data)
{
    return data->sums + data->all + data->halves / 2;
}

bool library_add(struct library *l, int64_t bytes, struct library_data *data)
{
    struct library_data more = {0};

    switch (way_of(l, bytes)) {
    case HVD__WAY_NONE: return true;
    case HVD__WAY_ALL: more.all = bytes * l->set.team.size; break;
    case HVD__WAY_HALVES: more.halves = bytes; break;
    default: more.sums = bytes;
    }
    if (largest_message(data) + largest_message(&more) > HVD__OFFER_RESULTS)
        return false;
    data->sums += more.sums;
    data->all += more.all;
    data->halves += more.halves;
    return true;
}

int library_round_slots(void)
{
    return HVD__OFFER_SLOTS;
}

bool library_has_room(struct library *l, int nunfinished)
{
    l->executor.nunfinished = nunfinished;
    return hvd__executor_room(&l->set) > 0;
}

/* Returns how many batches move at the same time. Ranks that share memory move
 * them one after another (core/run/execute.c). */
int library_moving(const struct library *l)
{
    return l->shape.nranks > 1 ? 1 : HVD__LANES;
}

/* Returns log2 of n, rounded down. */
static int log2_of(int n)
{
    int steps = 0;

    while (2 << steps <= n)
        steps++;
    return steps;
}

/* A message has a head and entries; the sums, as they are in each step; the
 * data of the hosts that its sender has heard of: twice as many in each step;
 * and of sums in halves half as much in each step, which then comes back.
 */
struct plan library_round(const struct library *l,
                          const struct library_data *data)
{
    enum { HEAD = 64 };
    int p = l->shape.nhosts, steps = log2_of(p);
    int extra = p - (1 << steps);
    double folds = extra > 0, there = steps + folds;
    double back = data->halves ? steps : 0, messages = there + back;
    double halves = (double)data->halves * (p - 1) / p;
    double sent = messages * HEAD + there * (double)data->sums + 2 * halves +
                  (double)data->all * ((1 << steps) - 1 + folds) / p;

    if (p == 1)
        return (struct plan){.algorithm = "slots", .local_steps = 1};
    return (struct plan){
        .algorithm = "round",
        /* If one host is folded in, its partner has heard the others by then.
         */
        .steps = messages + (extra > 1),
        .local_steps = l->shape.nranks > 1 ? 2 : 0,
        .messages = messages,
        .link_bytes = sent,
        .rank_bytes = sent,
        .reduced = there * (double)data->sums + halves,
        .copied = 2 * (double)(data->sums + data->all + data->halves),
        .pieces = 1,
        .speaks = true,
    };
}

int library_fuse(const struct library *l, const int64_t *bytes, int n,
                 bool *taken)
{
    static const struct hvd__signature signature = {.kind = HVD_ALLREDUCE,
                                                    .dtype = HVD_FLOAT32,
                                                    .op = HVD_AVERAGE,
                                                    .prescale = 1,
                                                    .postscale = 1};
    struct hvd__fusion fusion = {.threshold = (size_t)l->shape.threshold};
    int ntaken = 0;

    for (int i = 0; i < n; i++) {
        taken[i] = hvd__fuse(&fusion, &signature, (size_t)bytes[i]);
        ntaken += taken[i];
    }
    return ntaken;
}

/* --------------------------------------------------------------- algorithms */

/* Makes up the allreduce, for which algo.c then chooses. */
static const struct hvd__collective *choose(struct library *l, int64_t bytes)
{
    l->collective = (struct hvd__collective){
        .motion = HVD__REDUCE_TO_ALL,
        .reduction = {.dtype = HVD_FLOAT32,
                      .op = HVD_AVERAGE,
                      .prescale = 1,
                      .postscale = 1},
        .count = bytes / ELEMENT > 0 ? bytes / ELEMENT : 1,
        .same_order = l->engine.settings.deterministic || !l->set.hosts,
        .team = &l->set.team,
        .workspace = &l->workspace,
    };
    hvd__collective_start(&l->collective);
    return &l->collective;
}

/* Splits steps by powers of two of distance into those on hosts and those
 * between them. */
static void split_steps(const struct library *l, int steps, int *near)
{
    int m = l->shape.nranks;

    *near = m > 1 && (m & (m - 1)) == 0 ? log2_of(m) : 0;
    *near = *near < steps ? *near : steps;
}

/* All sums with one partner after another, or halves of them and back. */
static struct plan plan_halving(const struct library *l, double bytes,
                                bool halves)
{
    int p = l->set.team.size, steps = log2_of(p), near;
    double m = l->shape.nranks, folds = p > 1 << steps, sent = 0, local = 0;
    double part = bytes;
    struct plan plan = {0};

    split_steps(l, steps, &near);
    for (int i = 0; i < steps; i++) {
        if (halves)
            part /= 2;
        *(i < near ? &local : &sent) += part;
    }
    plan.reduced = sent + local + folds * bytes;
    if (halves) {
        sent *= 2;
        local *= 2;
    }
    plan.rank_bytes = sent + folds * bytes;
    plan.link_bytes = m * sent + folds * bytes;
    plan.steps = (halves ? 2 : 1) * (steps - near) + 2 * folds;
    plan.local_steps = (halves ? 2 : 1) * near;
    plan.copied = local;
    plan.pieces = ceil(bytes / (1 << 20));
    plan.messages = (plan.steps - folds) * plan.pieces;
    plan.under_way = HVD__SEGMENTS;
    return plan;
}

/* Everything to all, in one step. */
static struct plan plan_direct(const struct library *l, double bytes)
{
    double p = l->set.team.size, m = l->shape.nranks;

    return (struct plan){
        .steps = 1,
        .local_steps = m > 1,
        .messages = p - m,
        .link_bytes = m * (p - m) * bytes,
        .rank_bytes = (p - m) * bytes,
        .reduced = (p - 1) * bytes,
        .copied = (m - 1) * bytes,
        .pieces = 1,
        .under_way = 1,
    };
}

/* A slice of it from all to each, and back. */
static struct plan plan_scatter(const struct library *l, double bytes)
{
    double p = l->set.team.size, m = l->shape.nranks, slice = bytes / p;
    double most = fmin((double)l->workspace.segment_bytes / (p - 1), 256 << 10);
    double pieces = ceil(slice / most);

    return (struct plan){
        .steps = 2,
        .local_steps = m > 1 ? 2 : 0,
        .messages = 2 * (p - m) * pieces,
        .link_bytes = 2 * m * (p - m) * slice,
        .rank_bytes = 2 * (p - m) * slice,
        .reduced = (p - 1) * slice,
        .copied = 2 * (m - 1) * slice,
        .pieces = pieces,
        .under_way = HVD__SEGMENTS,
    };
}

/* Plans a sum in shared memory on each host, with every rank carrying a slice
 * between them, in so many steps, messages, and times the slice. */
static struct plan plan_hosts(const struct library *l, double bytes,
                              double steps, double messages, double times)
{
    double h = l->shape.nhosts, m = l->shape.nranks, slice = bytes / m;
    double chunk =
        fmin((double)l->shm.bounce_bytes / HVD__BUFFERS / l->shape.nranks,
             (double)l->workspace.segment_bytes);
    double pieces = ceil(slice / chunk);

    return (struct plan){
        .steps = steps,
        .local_steps = 3,
        .messages = messages * pieces,
        .link_bytes = times * bytes,
        .rank_bytes = times * slice,
        .reduced = bytes + (h - 1) / h * slice,
        .copied = 2 * bytes,
        .pieces = pieces,
        .under_way = HVD__SEGMENTS,
    };
}

/* Each carrier meets all others at once, or one after another with all of its
 * slice or with halves. A fold takes two steps more, of all of it. */
static struct plan plan_carriers(const struct library *l, double bytes,
                                 const char *how)
{
    double h = l->shape.nhosts;
    int steps = log2_of(l->shape.nhosts);
    double power = 1 << steps, folds = h > power;

    if (strcmp(how, "-doubling") == 0)
        return plan_hosts(l, bytes, steps + 2 * folds, steps + folds,
                          steps + folds);
    if (strcmp(how, "-halving") == 0)
        return plan_hosts(l, bytes, 2 * steps + 2 * folds, 2 * steps + folds,
                          2 * (power - 1) / power + folds);
    return plan_hosts(l, bytes, 2, 2 * (h - 1), 2 * (h - 1) / h);
}

/* Plans a sum on one host, in shared memory. */
static struct plan plan_shared(const struct library *l, double bytes)
{
    return (struct plan){.local_steps = 2,
                         .reduced = bytes,
                         .copied = bytes * l->shape.nranks / 2,
                         .pieces = 1};
}

struct plan library_plan(struct library *l, int64_t bytes)
{
    const struct hvd__collective *c = choose(l, bytes);
    const char *name = c->algorithm->name;
    double n = (double)bytes;
    struct plan plan = {0};

    if (strcmp(name, "direct") == 0)
        plan = plan_direct(l, n);
    else if (strcmp(name, "doubling") == 0 || strcmp(name, "halving") == 0)
        plan = plan_halving(l, n, name[0] == 'h');
    else if (strcmp(name, "scatter-gather") == 0)
        plan = plan_scatter(l, n);
    else if (strncmp(name, "hosts", 5) == 0)
        plan = plan_carriers(l, n, name + 5);
    else if (strcmp(name, "shared") == 0)
        plan = plan_shared(l, n);
    else if (c->algorithm->cost)
        plan.seconds = 1e-9 * (double)c->algorithm->cost(c);
    plan.algorithm = name;
    return plan;
}
