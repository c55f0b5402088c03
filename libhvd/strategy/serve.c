/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - a parameter server: hears what the workers want, and answers.
 *
 * Everything is done by callbacks. The thread that serves moves the engine
 * until all workers have ended, and sleeps in between as any waiting thread
 * does. From each worker one command is expected at a time; a step's pushes are
 * expected as soon as it is announced, and its pulls are sent when rounds.c
 * says so. When all parts are answered, the next command is expected. So both
 * sides submit in the same order, which is the fastest to agree on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/api/refuse.h"
#include "strategy/optimizer.h"
#include "strategy/server.h"

static void listen_to(struct hvd__client *client);

/* Ends the service; the first reason counts. */
void hvd__server_fail(struct hvd__server *server, int status)
{
    if (server->status < 0 || atomic_load(&server->done))
        return;
    server->status = status;
    snprintf(server->reason, sizeof server->reason, "%s", hvd_last_error());
    atomic_store(&server->done, true);
}

/* ----------------------------------------------------------------- requests */

/* Submits a broadcast between this server and a worker, of which only the
 * callback tells the end. */
static void submit(struct hvd__client *client, hvd_request *request,
                   hvd_callback callback, void *context)
{
    struct hvd__server *server = client->server;
    int status;

    request->callback = callback;
    request->callback_context = context;
    server->in_flight++;
    status = hvd_submit(request, NULL);
    if (status < 0) {
        server->in_flight--;
        hvd__server_fail(server, status);
    }
}

void hvd__server_submit(struct hvd__slot *slot, const char *word, void *data,
                        int64_t count, hvd_dtype dtype, bool push,
                        hvd_callback callback)
{
    struct hvd__client *client = slot->client;
    char name[HVD__PART_NAME];
    hvd_request request;

    hvd__part_name(client->server->strategy, slot->shelf->part, word, name);
    hvd__pair_request(&request, client->pair, name, data, &count, dtype,
                      push ? client->rank : hvd_rank());
    submit(client, &request, callback, slot);
}

/* A worker that refuses a pull has a reason that it tells itself; all else ends
 * the service. */
void hvd__server_note(struct hvd__server *server, int status)
{
    server->in_flight--;
    if (status < 0 && status != HVD_ERR_PEER)
        hvd__server_fail(server, status);
}

/* ------------------------------------------------------------------ answers */

static void send_value(struct hvd__slot *slot);

static void sent(void *context, int status)
{
    struct hvd__slot *slot = context;
    struct hvd__server *server = slot->client->server;

    hvd__server_note(server, status);
    slot->is_sending = false;
    if (slot->is_due && !atomic_load(&server->done))
        send_value(slot);
}

void hvd__answered(struct hvd__client *client)
{
    if (--client->unanswered == 0)
        listen_to(client);
}

/* Sends the value to a worker. Where another update may come while the value is
 * under way, a copy is sent, from the place of the worker's gradient, which is
 * free then. */
static void send_value(struct hvd__slot *slot)
{
    const struct hvd__shelf *shelf = slot->shelf;
    float *data = shelf->value;

    if (shelf->is_sparse) {
        hvd__server_rows_send(slot, true);
        return;
    }
    slot->is_due = slot->is_sending;
    if (slot->is_due)
        return;
    slot->is_sending = true;
    if (!shelf->server->keeps_still) {
        memcpy(slot->gradient, data, (size_t)shelf->part->count * sizeof *data);
        data = slot->gradient;
    }
    slot->version = shelf->version;
    hvd__server_submit(slot, "pull", data, shelf->part->count, HVD_FLOAT32,
                       false, sent);
}

void hvd__answer(struct hvd__slot *slot)
{
    if (slot->shelf->is_sparse)
        hvd__server_rows_send(slot, false);
    else
        send_value(slot);
    hvd__answered(slot->client);
}

void hvd__answer_refuse(struct hvd__slot *slot, const char *reason)
{
    char name[HVD__PART_NAME];

    hvd__part_name(slot->client->server->strategy, slot->shelf->part, "pull",
                   name);
    hvd__fail_text(HVD_ERR_PEER, reason);
    hvd__refuse(slot->client->pair, name, HVD_ERR_PEER);
    hvd__answered(slot->client);
}

/* ------------------------------------------------------------------ a step */

static void pushed(void *context, int status)
{
    struct hvd__slot *slot = context;
    struct hvd__server *server = slot->client->server;
    char reason[HVD__MESSAGE_MAX];

    snprintf(reason, sizeof reason, "%s", hvd_last_error());
    hvd__server_note(server, status);
    if (atomic_load(&server->done))
        return;
    if (status >= 0) {
        server->gradients++;
        server->bytes += slot->shelf->part->count * (int64_t)sizeof(float);
    }
    hvd__round_take(slot, status < 0 ? reason : NULL);
}

static struct hvd__slot *slot_of(struct hvd__client *client, int32_t shelf)
{
    struct hvd__server *server = client->server;

    return &server->shelves[shelf].slots[client - server->clients];
}

static void expect_step(struct hvd__client *client)
{
    struct hvd__server *server = client->server;

    for (int32_t i = 0; i < server->nshelves; i++) {
        struct hvd__slot *slot = slot_of(client, i);

        if (slot->shelf->is_sparse) {
            hvd__server_rows_expect(slot);
            continue;
        }
        hvd__server_submit(slot, "push", slot->gradient,
                           slot->shelf->part->count, HVD_FLOAT32, true, pushed);
    }
}

static void expect_reads(struct hvd__client *client)
{
    const struct hvd__server *server = client->server;
    int32_t variable = client->command.variable;

    client->unanswered = 0;
    for (int32_t i = 0; i < server->nshelves; i++)
        client->unanswered += server->shelves[i].is_sparse &&
                              server->shelves[i].part->variable == variable;
    if (client->unanswered == 0)
        listen_to(client);
    for (int32_t i = 0; i < server->nshelves; i++)
        if (server->shelves[i].is_sparse &&
            server->shelves[i].part->variable == variable)
            hvd__server_rows_lend(slot_of(client, i));
}

/* --------------------------------------------------- values, state, joining */

static void send_values(struct hvd__client *client)
{
    for (int32_t i = 0; i < client->server->nshelves; i++)
        send_value(slot_of(client, i));
}

/* A copy of an array under way, so that updates may go on. */
struct parcel {
    struct hvd__client *client;
    float data[];
};

static void obey(struct hvd__client *client);

/* A parcel has arrived: a command that would send another one of the same name
 * may go on. */
static void count_parcel(struct hvd__client *client, int status)
{
    hvd__server_note(client->server, status);
    if (--client->parcels == 0 && client->is_waiting &&
        !atomic_load(&client->server->done)) {
        client->is_waiting = false;
        obey(client);
    }
}

static void parcel_sent(void *context, int status)
{
    struct parcel *parcel = context;
    struct hvd__client *client = parcel->client;

    free(parcel);
    count_parcel(client, status);
}

static void send_copy(struct hvd__slot *slot, const char *word,
                      const void *data, int64_t count, hvd_dtype dtype)
{
    struct hvd__client *client = slot->client;
    size_t bytes = (size_t)count * (size_t)hvd_dtype_size(dtype);
    struct parcel *parcel = malloc(sizeof *parcel + bytes);
    char name[HVD__PART_NAME];
    hvd_request request;
    int64_t before = client->server->in_flight;

    if (!parcel) {
        hvd__server_fail(client->server, hvd__fail_memory(bytes));
        return;
    }
    parcel->client = client;
    client->parcels++;
    memcpy(parcel->data, data, bytes);
    hvd__part_name(client->server->strategy, slot->shelf->part, word, name);
    hvd__pair_request(&request, client->pair, name, parcel->data, &count, dtype,
                      hvd_rank());
    submit(client, &request, parcel_sent, parcel);
    if (client->server->in_flight == before)
        free(parcel);
}

static void send_state(struct hvd__client *client)
{
    struct hvd__server *server = client->server;
    int nstates = hvd__optimizer_states(&server->strategy->options);

    send_values(client);
    for (int k = 0; k < nstates; k++)
        for (int32_t i = 0; i < server->nshelves; i++)
            send_copy(slot_of(client, i), hvd__state_words[k],
                      server->shelves[i].states[k],
                      server->shelves[i].part->count, HVD_FLOAT32);
    for (int32_t i = 0; i < server->nshelves; i++)
        send_copy(slot_of(client, i), "count", &server->shelves[i].updates, 1,
                  HVD_INT64);
}

static void loaded(void *context, int status)
{
    struct hvd__slot *slot = context;

    hvd__server_note(slot->client->server, status);
    if (!atomic_load(&slot->client->server->done))
        hvd__answered(slot->client);
}

static void loaded_value(void *context, int status)
{
    struct hvd__slot *slot = context;

    if (status >= 0 && slot->shelf->is_sparse)
        hvd__server_rows_loaded(slot->shelf);
    loaded(context, status);
}

/* While one worker loads, the others wait for it (hvd_strategy_load), so
 * nothing else touches values and states. */
static void expect_state(struct hvd__client *client)
{
    struct hvd__server *server = client->server;
    int nstates = hvd__optimizer_states(&server->strategy->options);

    client->unanswered = (int64_t)server->nshelves * (2 + nstates);
    for (int32_t i = 0; i < server->nshelves; i++)
        hvd__server_submit(slot_of(client, i), "push", server->shelves[i].value,
                           server->shelves[i].part->count, HVD_FLOAT32, true,
                           loaded_value);
    for (int k = 0; k < nstates; k++)
        for (int32_t i = 0; i < server->nshelves; i++)
            hvd__server_submit(slot_of(client, i), hvd__state_words[k],
                               server->shelves[i].states[k],
                               server->shelves[i].part->count, HVD_FLOAT32,
                               true, loaded);
    for (int32_t i = 0; i < server->nshelves; i++)
        hvd__server_submit(slot_of(client, i), "count",
                           &server->shelves[i].updates, 1, HVD_INT64, true,
                           loaded);
}

static void said_last(void *context, int status)
{
    count_parcel(context, status);
}

static bool all_joined(const struct hvd__server *server)
{
    for (int w = 0; w < server->nclients; w++)
        if (server->clients[w].state == HVD__CLIENT_ACTIVE)
            return false;
    return true;
}

/* When nobody is left who makes steps, those who have joined get what the last
 * of them has. */
static void join_if_all(struct hvd__server *server)
{
    static const int64_t one = 1;
    char name[32];

    if (!all_joined(server))
        return;
    snprintf(name, sizeof name, "last %d", (int)server->strategy->id);
    hvd__round_restart(server);
    for (int w = 0; w < server->nclients; w++) {
        struct hvd__client *client = &server->clients[w];
        hvd_request request;

        if (client->state != HVD__CLIENT_JOINED)
            continue;
        client->state = HVD__CLIENT_ACTIVE;
        hvd__pair_request(&request, client->pair, name, &server->last, &one,
                          HVD_INT32, hvd_rank());
        client->parcels++;
        submit(client, &request, said_last, client);
        send_values(client);
        listen_to(client);
    }
}

/* ----------------------------------------------------------------- commands */

static void leave(struct hvd__client *client, enum hvd__client_state state)
{
    struct hvd__server *server = client->server;

    client->state = state;
    if (state == HVD__CLIENT_JOINED)
        server->last = client->rank;
    else
        server->nended++;
    hvd__round_leave(server);
    join_if_all(server);
    if (server->nended == server->nclients)
        atomic_store(&server->done, true);
}

static void obey(struct hvd__client *client)
{
    struct hvd__server *server = client->server;

    client->is_waiting =
        client->parcels > 0 && (client->command.code == HVD__COMMAND_STATE ||
                                client->command.code == HVD__COMMAND_JOIN);
    if (client->is_waiting)
        return;
    switch (client->command.code) {
    case HVD__COMMAND_STEP:
        client->unanswered = server->nshelves;
        expect_step(client);
        break;
    case HVD__COMMAND_VALUES: send_values(client); break;
    case HVD__COMMAND_STATE: send_state(client); break;
    case HVD__COMMAND_LOAD: expect_state(client); break;
    case HVD__COMMAND_JOIN: leave(client, HVD__CLIENT_JOINED); return;
    case HVD__COMMAND_READ: expect_reads(client); return;
    case HVD__COMMAND_END: leave(client, HVD__CLIENT_ENDED); return;
    default:
        hvd__server_fail(server,
                         hvd__fail(HVD_ERR_MISMATCH,
                                   "rank %d sent command %d, which parameter "
                                   "servers of version %s do not know",
                                   client->rank, (int)client->command.code,
                                   HVD_VERSION_STRING));
        return;
    }
    if (server->nshelves == 0 || client->command.code == HVD__COMMAND_VALUES ||
        client->command.code == HVD__COMMAND_STATE)
        listen_to(client);
}

static void heard(void *context, int status)
{
    struct hvd__client *client = context;
    struct hvd__server *server = client->server;

    server->in_flight--;
    if (status < 0)
        hvd__server_fail(
            server, hvd__fail(status, "worker %d did not end its strategy: %s",
                              client->rank, hvd_last_error()));
    else if (!atomic_load(&server->done))
        obey(client);
}

static void listen_to(struct hvd__client *client)
{
    static const int64_t count = sizeof client->command;
    char name[32];
    hvd_request request;

    snprintf(name, sizeof name, "command %d",
             (int)client->server->strategy->id);
    hvd__pair_request(&request, client->pair, name, &client->command, &count,
                      HVD_UINT8, client->rank);
    submit(client, &request, heard, client);
}

/* ------------------------------------------------------------------ service */

static int fill_shelf(struct hvd__server *server, struct hvd__shelf *shelf,
                      const struct hvd__part *part, float **arena)
{
    const struct hvd_strategy *s = server->strategy;
    const struct hvd__variable *v = &s->variables[part->variable];
    int nstates = hvd__optimizer_states(&s->options);

    *shelf = (struct hvd__shelf){
        .server = server,
        .part = part,
        .value = v->value + part->offset,
        .is_sparse = v->is_sparse,
        .slots = server->slots +
                 (shelf - server->shelves) * (ptrdiff_t)server->nclients,
    };
    for (int w = 0; w < server->nclients; w++) {
        shelf->slots[w] =
            (struct hvd__slot){.shelf = shelf,
                               .client = &server->clients[w],
                               .gradient = v->is_sparse ? NULL : *arena};
        *arena += v->is_sparse ? 0 : part->count;
    }
    if (v->is_sparse) {
        shelf->width = hvd__variable_width(v);
        shelf->first = hvd__part_first_row(s, part);
        shelf->nrows = hvd__part_nrows(s, part);
        HVD_TRY(hvd__changes_init(&shelf->changes, shelf->nrows));
    }
    for (int k = 0; k < nstates; k++)
        if (!(shelf->states[k] = calloc((size_t)part->count, sizeof(float))))
            return hvd__fail_memory((size_t)part->count * sizeof(float));
    return HVD_OK;
}

static int fill_shelves(struct hvd__server *server)
{
    const struct hvd__servers *servers = server->strategy->servers;
    int mine = hvd__servers_rank(servers);
    float *arena = server->arena;
    int32_t next = 0;

    for (int32_t i = 0; i < servers->nparts; i++)
        if (servers->parts[i].server == mine)
            HVD_TRY(fill_shelf(server, &server->shelves[next++],
                               &servers->parts[i], &arena));
    return HVD_OK;
}

static void fill_clients(struct hvd__server *server)
{
    const struct hvd__servers *servers = server->strategy->servers;

    for (int w = 0; w < server->nclients; w++)
        server->clients[w] = (struct hvd__client){
            .server = server,
            .rank = w,
            .pair = hvd__servers_pair(servers, w, hvd__servers_rank(servers)),
        };
}

int hvd__server_new(struct hvd_strategy *s)
{
    const struct hvd__servers *servers = s->servers;
    struct hvd__server *server = calloc(1, sizeof *server);
    size_t nclients = (size_t)servers->nworkers, elements = 0, nshelves = 0;

    if (!server)
        return hvd__fail_memory(sizeof *server);
    s->servers->server = server;
    server->strategy = s;
    server->nclients = servers->nworkers;
    server->keeps_still =
        s->options.mode == HVD_SERVER_SYNCHRONOUS && s->options.backups == 0;
    for (int32_t i = 0; i < servers->nparts; i++)
        if (servers->parts[i].server == hvd__servers_rank(servers)) {
            if (!s->variables[servers->parts[i].variable].is_sparse)
                elements += (size_t)servers->parts[i].count * nclients;
            nshelves++;
        }
    server->nshelves = (int32_t)nshelves;
    server->clients = calloc(nclients, sizeof *server->clients);
    server->shelves = calloc(nshelves + 1, sizeof *server->shelves);
    server->slots = calloc(nshelves * nclients + 1, sizeof *server->slots);
    if (!server->clients || !server->shelves || !server->slots)
        return hvd__fail_memory(nshelves * nclients * sizeof *server->slots);
    server->arena = hvd_malloc(elements * sizeof(float));
    if (!server->arena)
        return HVD_ERR_MEMORY;
    fill_clients(server);
    return fill_shelves(server);
}

/* The memory of requests that may still move, after a failure, stays. */
void hvd__server_free(struct hvd_strategy *s)
{
    struct hvd__server *server = s->servers->server;

    if (!server || (server->in_flight > 0 && hvd_is_initialized()))
        return;
    if (server->shelves)
        for (int32_t i = 0; i < server->nshelves; i++) {
            for (int k = 0; k < HVD__MOST_STATES; k++)
                free(server->shelves[i].states[k]);
            hvd__changes_fini(&server->shelves[i].changes);
        }
    if (server->slots)
        for (int32_t i = 0; i < server->nshelves * server->nclients; i++) {
            hvd__rows_free(&server->slots[i].pushed);
            hvd__rows_free(&server->slots[i].answer);
            hvd__rows_free(&server->slots[i].asked);
        }
    hvd_free(server->arena);
    free(server->clients);
    free(server->shelves);
    free(server->slots);
    free(server);
}

static bool is_done(const void *context)
{
    const struct hvd__server *server = context;

    return atomic_load(&server->done) &&
           (server->status < 0 || atomic_load(&server->in_flight) == 0);
}

int hvd_strategy_serve(hvd_strategy *strategy)
{
    struct hvd__server *server;

    HVD_TRY(hvd__strategy_check_started(strategy));
    if (!hvd_strategy_is_server(strategy))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "rank %d is no parameter server of this strategy",
                         hvd_rank());
    server = strategy->servers->server;
    if (server->served)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "hvd_strategy_serve was called before");
    server->served = true;
    for (int w = 0; w < server->nclients; w++)
        listen_to(&server->clients[w]);
    HVD_TRY(hvd__drive(is_done, server));
    return server->status < 0 ? hvd__fail_text(server->status, server->reason)
                              : HVD_OK;
}
