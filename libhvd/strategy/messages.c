/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages.c - the requests by which workers and parameter servers talk, their
 * names and process sets.
 */
#include <stdio.h>

#include "base/status.h"
#include "strategy/servers.h"

int32_t hvd__servers_pair(const struct hvd__servers *servers, int32_t worker,
                          int32_t server)
{
    return servers->pairs[worker * servers->n + server];
}

int32_t hvd__servers_rank(const struct hvd__servers *servers)
{
    return hvd_rank() - servers->nworkers;
}

int64_t hvd__part_first_row(const struct hvd_strategy *s,
                            const struct hvd__part *part)
{
    return part->offset / hvd__variable_width(&s->variables[part->variable]);
}

int64_t hvd__part_nrows(const struct hvd_strategy *s,
                        const struct hvd__part *part)
{
    return part->count / hvd__variable_width(&s->variables[part->variable]);
}

void hvd__part_name(const struct hvd_strategy *s, const struct hvd__part *part,
                    const char *word, char name[HVD__PART_NAME])
{
    const struct hvd__servers *servers = s->servers;
    const char *variable = s->variables[part->variable].name;
    bool whole =
        servers->first[part->variable + 1] - servers->first[part->variable] ==
        1;

    if (whole)
        snprintf(name, HVD__PART_NAME, "%s %d: %s", word, (int)s->id, variable);
    else
        snprintf(name, HVD__PART_NAME, "%s %d: %s/part_%d", word, (int)s->id,
                 variable, (int)part->number);
}

void hvd__pair_request(hvd_request *request, int32_t pair, const char *name,
                       void *data, const int64_t *count, hvd_dtype dtype,
                       int root)
{
    hvd_request_init(request, sizeof *request);
    request->kind = HVD_BROADCAST;
    request->name = name;
    request->dtype = dtype;
    request->ndim = 1;
    request->shape = count;
    request->output = data;
    request->root = root;
    request->process_set = pair;
}

int hvd__send(hvd_request *request, struct hvd__sent *sent)
{
    sent->status = hvd_submit(request, &sent->handle);
    if (sent->status < 0)
        sent->handle = 0;
    return sent->status;
}

int hvd__sent_wait(struct hvd__sent *sent)
{
    int status = sent->handle ? hvd_wait(sent->handle) : sent->status;

    *sent = (struct hvd__sent){0};
    return status;
}

int hvd__part_send(struct hvd_strategy *s, int32_t part, const char *word,
                   void *data, int64_t count, hvd_dtype dtype, bool pull,
                   struct hvd__sent *sent)
{
    const struct hvd__servers *servers = s->servers;
    const struct hvd__part *p = &servers->parts[part];
    char name[HVD__PART_NAME];
    hvd_request request;

    hvd__part_name(s, p, word, name);
    hvd__pair_request(
        &request, hvd__servers_pair(servers, hvd_rank(), p->server), name, data,
        &count, dtype, pull ? servers->nworkers + p->server : hvd_rank());
    return hvd__send(&request, sent);
}
