/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rounds.c - when a parameter server applies a gradient, and when the worker
 * that sent it gets the new value and goes on.
 *
 * Synchronous: the gradients of a part wait until all workers have sent theirs.
 * Their average, summed in the order of ranks so that the same numbers give the
 * same bits, is one update; then all get the value. If a worker refuses its
 * gradient, the round fails for all.
 *
 * With backups: an update is made as soon as all but that many have come. Each
 * of the others belongs to a value that is then out of date: when it comes, it
 * is dropped, and its worker gets the newest value at once. A refused gradient
 * is one more that is not waited for. Parts decide for themselves, so one step
 * may be of different workers in different parts.
 *
 * Asynchronous: each gradient is an update, and its worker goes on.
 *
 * Bounded: so too, but the worker, whose steps are its clock, waits for its
 * value while it is more than `staleness` steps ahead of the slowest. So the
 * value has every update of clocks up to its own less staleness. A refused
 * gradient counts as a step.
 *
 * Workers that have joined or ended are not waited for.
 */
#include <stdio.h>

#include "base/status.h"
#include "strategy/optimizer.h"
#include "strategy/server.h"

static bool is_active(const struct hvd__slot *slot)
{
    return slot->client->state == HVD__CLIENT_ACTIVE;
}

static int count_active(const struct hvd__server *server)
{
    int n = 0;

    for (int w = 0; w < server->nclients; w++)
        n += server->clients[w].state == HVD__CLIENT_ACTIVE;
    return n;
}

static int count_slots(const struct hvd__shelf *shelf,
                       enum hvd__slot_state state)
{
    int n = 0;

    for (int w = 0; w < shelf->server->nclients; w++)
        n += shelf->slots[w].state == state;
    return n;
}

/* Makes an update with the learning rate and the momentum of the worker that a
 * gradient is from. */
static void update(struct hvd__shelf *shelf, struct hvd__slot *from)
{
    struct hvd__server *server = shelf->server;
    hvd_strategy_options *options = &server->strategy->options;
    double *momentum = hvd__optimizer_momentum(options);

    options->learning_rate = from->client->command.learning_rate;
    if (momentum)
        *momentum = from->client->command.momentum;
    shelf->updates++;
    shelf->version++;
    server->updates++;
    if (shelf->is_sparse)
        hvd__server_rows_update(from);
    else
        hvd__optimizer_apply(
            options, shelf->updates,
            hvd__optimizer_spares(
                server->strategy->variables[shelf->part->variable].ndim),
            shelf->value, from->gradient, shelf->states, shelf->part->count);
}

/* -------------------------------------------------------------- synchronous */

static void add(float *restrict sum, const float *restrict term, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] += term[i];
}

static void divide(float *sum, int divisor, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] /= (float)divisor;
}

/* Adds all gradients that are here to the first of them, which is returned. */
static struct hvd__slot *add_up(struct hvd__shelf *shelf)
{
    struct hvd__slot *sum = NULL;

    for (int w = 0; w < shelf->server->nclients; w++) {
        struct hvd__slot *slot = &shelf->slots[w];

        if (slot->state != HVD__SLOT_PUSHED)
            continue;
        if (sum)
            add(sum->gradient, slot->gradient, shelf->part->count);
        else
            sum = slot;
    }
    return sum;
}

/* Returns the slot that has the average of all gradients that are here, or
 * their sum. NULL: the service ends. */
static struct hvd__slot *reduce(struct hvd__shelf *shelf)
{
    const hvd_strategy_options *o = &shelf->server->strategy->options;
    bool of_those = o->backups > 0 || o->flags & HVD_AVERAGE_CONTRIBUTORS;
    int n = of_those ? count_slots(shelf, HVD__SLOT_PUSHED)
                     : shelf->server->nclients;
    struct hvd__slot *sum =
        shelf->is_sparse ? hvd__server_rows_add_up(shelf) : add_up(shelf);

    if (sum && o->op == HVD_AVERAGE && shelf->is_sparse)
        divide(sum->pushed.values, n, sum->pushed.n * shelf->width);
    else if (sum && o->op == HVD_AVERAGE)
        divide(sum->gradient, n, shelf->part->count);
    return sum;
}

/* Answers all workers that wait for this part: with its value or, if a worker
 * refused its gradient, with the reason. */
static void answer_all(struct hvd__shelf *shelf, const char *reason)
{
    for (int w = 0; w < shelf->server->nclients; w++) {
        struct hvd__slot *slot = &shelf->slots[w];
        enum hvd__slot_state state = slot->state;

        if (state == HVD__SLOT_IDLE)
            continue;
        slot->state = HVD__SLOT_IDLE;
        if (state == HVD__SLOT_REFUSED)
            hvd__answered(slot->client);
        else if (reason)
            hvd__answer_refuse(slot, reason);
        else
            hvd__answer(slot);
    }
}

static void settle_synchronous(struct hvd__shelf *shelf)
{
    const hvd_strategy_options *o = &shelf->server->strategy->options;
    int npushed = count_slots(shelf, HVD__SLOT_PUSHED);
    int nrefused = count_slots(shelf, HVD__SLOT_REFUSED);
    int needed = count_active(shelf->server) - o->backups;
    struct hvd__slot *sum;

    if (npushed + nrefused == 0 || npushed + nrefused < needed)
        return;
    if (nrefused > 0) {
        answer_all(shelf, shelf->reason);
        return;
    }
    sum = reduce(shelf);
    if (!sum)
        return;
    update(shelf, sum);
    answer_all(shelf, NULL);
}

static void take_synchronous(struct hvd__slot *slot, const char *refused)
{
    struct hvd__shelf *shelf = slot->shelf;
    struct hvd__server *server = shelf->server;

    if (server->keeps_still && refused) {
        slot->state = HVD__SLOT_REFUSED;
        snprintf(shelf->reason, sizeof shelf->reason, "%s", refused);
    } else if (refused) {
        hvd__answered(slot->client);
    } else if (slot->version < shelf->version) {
        server->dropped++;
        hvd__answer(slot);
    } else {
        slot->state = HVD__SLOT_PUSHED;
    }
    settle_synchronous(shelf);
}

/* ----------------------------------------------- asynchronous, and bounded */

/* Returns the clock of the slowest worker. */
static int64_t least_clock(const struct hvd__shelf *shelf)
{
    int64_t least = INT64_MAX;

    for (int w = 0; w < shelf->server->nclients; w++)
        if (is_active(&shelf->slots[w]) && shelf->slots[w].clock < least)
            least = shelf->slots[w].clock;
    return least;
}

static void settle_bounded(struct hvd__shelf *shelf)
{
    struct hvd__server *server = shelf->server;
    const hvd_strategy_options *o = &server->strategy->options;
    int64_t least = least_clock(shelf);

    for (int w = 0; w < server->nclients; w++) {
        struct hvd__slot *slot = &shelf->slots[w];
        int64_t ahead = slot->clock - least;

        if (slot->state == HVD__SLOT_IDLE ||
            (o->mode == HVD_SERVER_BOUNDED && ahead > o->staleness))
            continue;
        if (ahead > server->ahead)
            server->ahead = ahead;
        if (slot->state == HVD__SLOT_REFUSED)
            hvd__answered(slot->client);
        else
            hvd__answer(slot);
        slot->state = HVD__SLOT_IDLE;
    }
}

static void take_each(struct hvd__slot *slot, const char *refused)
{
    slot->clock++;
    slot->state = refused ? HVD__SLOT_REFUSED : HVD__SLOT_PUSHED;
    if (!refused)
        update(slot->shelf, slot);
    settle_bounded(slot->shelf);
}

/* ------------------------------------------------------------------- events */

static void settle(struct hvd__shelf *shelf)
{
    if (shelf->server->strategy->options.mode == HVD_SERVER_SYNCHRONOUS)
        settle_synchronous(shelf);
    else
        settle_bounded(shelf);
}

void hvd__round_take(struct hvd__slot *slot, const char *refused)
{
    if (slot->shelf->server->strategy->options.mode == HVD_SERVER_SYNCHRONOUS)
        take_synchronous(slot, refused);
    else
        take_each(slot, refused);
}

void hvd__round_leave(struct hvd__server *server)
{
    for (int32_t i = 0; i < server->nshelves; i++)
        settle(&server->shelves[i]);
}

void hvd__round_restart(struct hvd__server *server)
{
    for (int32_t i = 0; i < server->nshelves * server->nclients; i++) {
        server->slots[i].clock = 0;
        if (!server->slots[i].shelf->is_sparse)
            server->slots[i].version = server->slots[i].shelf->version;
    }
}
