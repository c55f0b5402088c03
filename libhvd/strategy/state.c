/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - brings what parameter servers hold to a worker and back: values and
 * the optimiser's state, for checkpoints and joins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "strategy/optimizer.h"
#include "strategy/servers.h"

/* The requests about the optimiser's state of a part, as many as it has arrays.
 * A server knows them by the same words. */
const char *const hvd__state_words[HVD__MOST_STATES] = {"slot0", "slot1",
                                                        "slot2"};

/* One array of every part: all requests of it are in flight at once. */
struct move {
    const char *word;
    int state;       /* -1: the value */
    bool pull;       /* to this worker */
    int64_t *counts; /* [parts]: the numbers of updates instead of an array */
};

/* Returns whether not the whole part is sent, but rows that have changed. */
static bool gets_rows(const struct hvd_strategy *s, const struct move *m,
                      int32_t i)
{
    return m->state < 0 && m->pull && !m->counts &&
           s->variables[s->servers->parts[i].variable].is_sparse;
}

static int move_part(struct hvd_strategy *s, const struct move *m, int32_t i,
                     struct hvd__sent *sent)
{
    const struct hvd__part *p = &s->servers->parts[i];
    struct hvd__variable *v = &s->variables[p->variable];
    float *data = m->state < 0 ? v->value : v->states[m->state];

    if (m->counts)
        return hvd__part_send(s, i, m->word, &m->counts[i], 1, HVD_INT64,
                              m->pull, sent);
    if (gets_rows(s, m, i))
        return hvd__part_rows_pull(s, i, sent);
    return hvd__part_send(s, i, m->word, data + p->offset, p->count,
                          HVD_FLOAT32, m->pull, sent);
}

static int move_all(struct hvd_strategy *s, const struct move *m)
{
    struct hvd__sent *sent = s->servers->pulls;
    int status = HVD_OK;

    for (int32_t i = 0; i < s->servers->nparts; i++) {
        int one = move_part(s, m, i, &sent[i]);

        status = status < 0 ? status : one;
    }
    for (int32_t i = 0; i < s->servers->nparts; i++) {
        int one = hvd__sent_wait(&sent[i]);

        if (one >= 0 && gets_rows(s, m, i))
            one = hvd__part_rows_receive(s, i);
        status = status < 0 ? status : one;
    }
    return status;
}

/* A variable counts as many updates as the part of it that has made most. */
static int move_counts(struct hvd_strategy *s, bool pull)
{
    const struct hvd__servers *servers = s->servers;
    size_t bytes = ((size_t)servers->nparts + 1) * sizeof(int64_t);
    int64_t *counts = malloc(bytes);
    int status;

    if (!counts)
        return hvd__fail_memory(bytes);
    for (int32_t i = 0; i < servers->nparts; i++)
        counts[i] = s->variables[servers->parts[i].variable].steps;
    status = move_all(s, &(struct move){"count", -1, pull, counts});
    for (int32_t i = 0; i < servers->nparts && pull && status >= 0; i++) {
        struct hvd__variable *v = &s->variables[servers->parts[i].variable];

        v->steps = counts[i] > v->steps ? counts[i] : v->steps;
    }
    free(counts);
    return status;
}

static int move_state(struct hvd_strategy *s, bool pull)
{
    int nstates = hvd__optimizer_states(&s->options);

    HVD_TRY(
        move_all(s, &(struct move){pull ? "pull" : "push", -1, pull, NULL}));
    for (int k = 0; k < nstates; k++)
        HVD_TRY(
            move_all(s, &(struct move){hvd__state_words[k], k, pull, NULL}));
    return move_counts(s, pull);
}

int hvd__fetch_values(struct hvd_strategy *s)
{
    HVD_TRY(hvd__command(s, HVD__COMMAND_VALUES));
    return move_all(s, &(struct move){"pull", -1, true, NULL});
}

int hvd__fetch_state(struct hvd_strategy *s)
{
    HVD_TRY(hvd__state_new(s));
    HVD_TRY(hvd__command(s, HVD__COMMAND_STATE));
    return move_state(s, true);
}

int hvd__send_state(struct hvd_strategy *s)
{
    HVD_TRY(hvd__command(s, HVD__COMMAND_LOAD));
    return move_state(s, false);
}

int hvd__state_new(struct hvd_strategy *s)
{
    int nstates = hvd__optimizer_states(&s->options);

    for (int32_t i = 0; i < s->nvariables; i++) {
        struct hvd__variable *v = &s->variables[i];
        size_t count = v->count ? (size_t)v->count : 1;

        v->steps = 0;
        for (int k = 0; k < nstates; k++)
            if (!v->states[k] && !(v->states[k] = calloc(count, sizeof(float))))
                return hvd__fail_memory(count * sizeof(float));
    }
    return HVD_OK;
}

void hvd__state_free(struct hvd_strategy *s)
{
    for (int32_t i = 0; i < s->nvariables; i++)
        for (int k = 0; k < HVD__MOST_STATES; k++) {
            free(s->variables[i].states[k]);
            s->variables[i].states[k] = NULL;
        }
}

int hvd__servers_join(struct hvd_strategy *s, int *last)
{
    const int64_t one = 1;
    int32_t answer = 0;
    char name[32];

    HVD_TRY(hvd__command(s, HVD__COMMAND_JOIN));
    snprintf(name, sizeof name, "last %d", (int)s->id);
    /* Every server says who was last; the first is believed. */
    for (int32_t k = s->servers->n - 1; k >= 0; k--) {
        struct hvd__sent sent;
        hvd_request request;

        hvd__pair_request(&request,
                          hvd__servers_pair(s->servers, hvd_rank(), k), name,
                          &answer, &one, HVD_INT32, s->servers->nworkers + k);
        HVD_TRY(hvd_submit(&request, &sent.handle));
        HVD_TRY(hvd_wait(sent.handle));
    }
    HVD_TRY(move_all(s, &(struct move){"pull", -1, true, NULL}));
    if (last)
        *last = answer;
    return HVD_OK;
}
