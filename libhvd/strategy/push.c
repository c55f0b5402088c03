/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push.c - a worker's step under parameter servers: gradients go to the servers
 * as they become ready, and in the step new values come back.
 *
 * The first gradient of a step announces the step, so that the servers listen.
 * Pulls are submitted only inside the step: until then the program reads the
 * variables for its backward pass.
 */
#include <stdio.h>

#include "base/status.h"
#include "core/api/refuse.h"
#include "strategy/optimizer.h"
#include "strategy/servers.h"

/* ----------------------------------------------------------------- commands */

static int submit_command(struct hvd_strategy *s, enum hvd__command_code code,
                          int32_t variable)
{
    struct hvd__servers *servers = s->servers;
    const double *momentum = hvd__optimizer_momentum(&s->options);
    const int64_t count = sizeof servers->command;
    char name[32];
    int status = HVD_OK;

    servers->command =
        (struct hvd__command){.code = code,
                              .variable = variable,
                              .learning_rate = s->options.learning_rate,
                              .momentum = momentum ? *momentum : 0};
    snprintf(name, sizeof name, "command %d", (int)s->id);
    for (int32_t k = 0; k < servers->n; k++) {
        hvd_request request;
        int one;

        hvd__pair_request(&request, hvd__servers_pair(servers, hvd_rank(), k),
                          name, &servers->command, &count, HVD_UINT8,
                          hvd_rank());
        one = hvd__send(&request, &servers->commands[k]);
        status = status < 0 ? status : one;
    }
    return status;
}

static int wait_command(struct hvd_strategy *s)
{
    int status = HVD_OK;

    for (int32_t k = 0; k < s->servers->n; k++) {
        int one = hvd__sent_wait(&s->servers->commands[k]);

        status = status < 0 ? status : one;
    }
    return status;
}

static int command(struct hvd_strategy *s, enum hvd__command_code code,
                   int32_t variable)
{
    int status = submit_command(s, code, variable);
    int waited = wait_command(s);

    return status < 0 ? status : waited;
}

int hvd__command(struct hvd_strategy *s, enum hvd__command_code code)
{
    return command(s, code, 0);
}

int hvd__command_read(struct hvd_strategy *s, int32_t variable)
{
    return command(s, HVD__COMMAND_READ, variable);
}

/* Tells the servers of a step, if this is its first gradient. A failure shows
 * when the step waits for the command. */
static void announce(struct hvd_strategy *s)
{
    struct hvd__servers *servers = s->servers;

    pthread_mutex_lock(&servers->lock);
    if (!servers->announced) {
        servers->announced = true;
        submit_command(s, HVD__COMMAND_STEP, 0);
    }
    pthread_mutex_unlock(&servers->lock);
}

/* ------------------------------------------------------------- a part's way */

int hvd__push(struct hvd_strategy *s, struct hvd__variable *v)
{
    struct hvd__servers *servers = s->servers;
    int32_t number = (int32_t)(v - s->variables);

    if (v->is_sparse) {
        int status = hvd__part_rows_cut(s, v);

        if (status < 0) {
            hvd__push_refuse(s, v, status);
            return v->status = status;
        }
    }
    if (servers->first[number] < servers->first[number + 1])
        announce(s);
    for (int32_t i = servers->first[number]; i < servers->first[number + 1];
         i++) {
        const struct hvd__part *p = &servers->parts[i];
        int one = v->is_sparse
                      ? hvd__part_rows_push(s, i)
                      : hvd__part_send(s, i, "push", v->gradient + p->offset,
                                       p->count, HVD_FLOAT32, false,
                                       &servers->pushes[i]);

        if (v->status >= 0)
            v->status = one;
    }
    return v->status;
}

void hvd__push_refuse(struct hvd_strategy *s, struct hvd__variable *v,
                      int status)
{
    struct hvd__servers *servers = s->servers;
    int32_t number = (int32_t)(v - s->variables);
    char name[HVD__PART_NAME], reason[HVD__MESSAGE_MAX];

    snprintf(reason, sizeof reason, "%s", hvd_last_error());
    if (servers->first[number] < servers->first[number + 1])
        announce(s);
    for (int32_t i = servers->first[number]; i < servers->first[number + 1];
         i++) {
        const struct hvd__part *p = &servers->parts[i];

        hvd__part_name(s, p, "push", name);
        servers->pushes[i].status = hvd__fail_text(status, reason);
        hvd__refuse(hvd__servers_pair(servers, hvd_rank(), p->server), name,
                    status);
    }
}

void hvd__pull(struct hvd_strategy *s)
{
    struct hvd__servers *servers = s->servers;

    for (int32_t i = 0; i < servers->nparts; i++) {
        const struct hvd__part *p = &servers->parts[i];
        const struct hvd__variable *v = &s->variables[p->variable];

        if (servers->pushes[i].status < 0)
            continue;
        if (v->is_sparse)
            hvd__part_rows_pull(s, i, &servers->pulls[i]);
        else
            hvd__part_send(s, i, "pull", v->value + p->offset, p->count,
                           HVD_FLOAT32, true, &servers->pulls[i]);
    }
}

bool hvd__push_done(struct hvd_strategy *s, const struct hvd__variable *v)
{
    struct hvd__servers *servers = s->servers;
    int32_t number = (int32_t)(v - s->variables);

    for (int32_t i = servers->first[number]; i < servers->first[number + 1];
         i++)
        if ((servers->pushes[i].handle &&
             hvd_poll(servers->pushes[i].handle) != 1) ||
            (v->is_sparse && servers->rows[i].sent.handle &&
             hvd_poll(servers->rows[i].sent.handle) != 1))
            return false;
    return true;
}

int hvd__pull_wait(struct hvd_strategy *s, struct hvd__variable *v)
{
    struct hvd__servers *servers = s->servers;
    int32_t number = (int32_t)(v - s->variables);
    int status = v->status;
    char reason[HVD__MESSAGE_MAX] = "";

    for (int32_t i = servers->first[number]; i < servers->first[number + 1];
         i++) {
        int one = hvd__sent_wait(&servers->pushes[i]);
        bool pulls = servers->pulls[i].handle != 0;
        int two = hvd__sent_wait(&servers->pulls[i]);

        if (v->is_sparse) {
            int sent = hvd__part_rows_end(s, i);

            one = one < 0 ? one : sent;
            if (pulls && two >= 0)
                two = hvd__part_rows_receive(s, i);
        }
        /* The last error is that of the pull, which has the reason. */
        one = two < 0 ? two : one;
        if (one < 0 && status >= 0) {
            status = one;
            snprintf(reason, sizeof reason, "%s", hvd_last_error());
        }
    }
    return reason[0] ? hvd__fail_text(status, reason) : status;
}

int hvd__push_end(struct hvd_strategy *s)
{
    bool announced = s->servers->announced;

    s->servers->announced = false;
    return announced ? wait_command(s) : HVD_OK;
}
