/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_rows.c - the rows of sparse variables on their way from a worker to
 * parameter servers and back.
 *
 * A number goes first, and the rows, if there are any, after it: so each side
 * checks the number before it makes room for the rows.
 */
#include <string.h>

#include "base/status.h"
#include "strategy/servers.h"

static struct hvd__variable *variable_of(const struct hvd_strategy *s,
                                         int32_t part)
{
    return &s->variables[s->servers->parts[part].variable];
}

static bool is_whole(const struct hvd_strategy *s, int32_t part)
{
    return s->servers->parts[part].count == variable_of(s, part)->count;
}

static void free_part(struct hvd_strategy *s, int32_t part)
{
    struct hvd__part_rows *rows = &s->servers->rows[part];

    if (!is_whole(s, part))
        hvd__rows_free(&rows->out);
    rows->out = (struct hvd__rows){0};
}

int hvd__part_rows_cut(struct hvd_strategy *s, const struct hvd__variable *v)
{
    const struct hvd__servers *servers = s->servers;
    int32_t number = (int32_t)(v - s->variables);

    for (int32_t i = servers->first[number]; i < servers->first[number + 1];
         i++) {
        struct hvd__rows *out = &servers->rows[i].out;
        int64_t first = hvd__part_first_row(s, &servers->parts[i]);
        int status = HVD_OK;

        if (is_whole(s, i))
            *out = v->rows;
        else
            status =
                hvd__rows_slice(out, &v->rows, hvd__variable_width(v), first,
                                first + hvd__part_nrows(s, &servers->parts[i]));
        while (status < 0 && i >= servers->first[number])
            free_part(s, i--);
        HVD_TRY(status);
    }
    return HVD_OK;
}

int hvd__part_rows_push(struct hvd_strategy *s, int32_t part)
{
    struct hvd__part_rows *rows = &s->servers->rows[part];
    int64_t width = hvd__variable_width(variable_of(s, part));
    int one = hvd__part_send(s, part, "push", &rows->out.n, 1, HVD_INT64, false,
                             &s->servers->pushes[part]);

    if (one < 0 || rows->out.n == 0)
        return one;
    one = hvd__part_send(s, part, "rows", rows->out.indices,
                         (int64_t)hvd__rows_bytes(rows->out.n, width),
                         HVD_UINT8, false, &rows->sent);
    if (one < 0)
        s->servers->pushes[part].status = one; /* no answer will come */
    return one;
}

int hvd__part_rows_end(struct hvd_strategy *s, int32_t part)
{
    int status = hvd__sent_wait(&s->servers->rows[part].sent);

    free_part(s, part);
    return status;
}

int hvd__part_rows_pull(struct hvd_strategy *s, int32_t part,
                        struct hvd__sent *sent)
{
    return hvd__part_send(s, part, "pull", &s->servers->rows[part].n, 1,
                          HVD_INT64, true, sent);
}

int hvd__part_rows_receive(struct hvd_strategy *s, int32_t part)
{
    const struct hvd__part *p = &s->servers->parts[part];
    const struct hvd__variable *v = variable_of(s, part);
    int64_t first = hvd__part_first_row(s, p), nrows = hvd__part_nrows(s, p);
    int64_t width = hvd__variable_width(v), n = s->servers->rows[part].n;
    struct hvd__sent sent = {0};
    struct hvd__rows rows;
    int status;

    if (n == 0)
        return HVD_OK;
    if (n < 0 || n > nrows)
        return hvd__fail(HVD_ERR_MISMATCH,
                         "parameter server %d sends %lld rows of a part of "
                         "variable '%s' that has %lld",
                         (int)p->server, (long long)n, v->name,
                         (long long)nrows);
    HVD_TRY(hvd__rows_new(&rows, n, width));
    hvd__part_send(s, part, "new", rows.indices,
                   (int64_t)hvd__rows_bytes(n, width), HVD_UINT8, true, &sent);
    status = hvd__sent_wait(&sent);
    if (status >= 0 && hvd__rows_misplaced(&rows, first, first + nrows) >= 0)
        status = hvd__fail(HVD_ERR_MISMATCH,
                           "parameter server %d sends rows of variable '%s' "
                           "that are none of its part, or not in order",
                           (int)p->server, v->name);
    if (status >= 0)
        hvd__rows_scatter(&rows, v->value + p->offset, width, first);
    hvd__rows_free(&rows);
    return status;
}
