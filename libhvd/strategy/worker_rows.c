/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_rows.c - the rows of sparse variables on their way from a worker to
 * parameter servers and back.
 *
 * A number goes first, and the rows, if there are any, after it: so each side
 * checks the number before it makes room for the rows.
 *
 * To read rows, a worker sends the same but for the values, and these come back
 * alone.
 */
#include <stdlib.h>

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

/* ------------------------------------------------------------------ reading */

/* The rows that are read of one part, and what is under way. */
struct reading {
    struct hvd__rows rows;
    struct hvd__sent asked, which, got;
};

/* Cuts the rows that a part has out of all; without values yet. */
static int begin_reading(const struct hvd_strategy *s, int32_t part,
                         const struct hvd__rows *all, struct reading *r)
{
    const struct hvd__part *p = &s->servers->parts[part];
    int64_t first = hvd__part_first_row(s, p), width;
    struct hvd__rows slice;

    width = hvd__variable_width(variable_of(s, part));
    HVD_TRY(
        hvd__rows_slice(&slice, all, 0, first, first + hvd__part_nrows(s, p)));
    if (hvd__rows_new(&r->rows, slice.n, width) < 0) {
        hvd__rows_free(&slice);
        return HVD_ERR_MEMORY;
    }
    for (int64_t i = 0; i < slice.n; i++)
        r->rows.indices[i] = slice.indices[i];
    hvd__rows_free(&slice);
    return HVD_OK;
}

static void ask(struct hvd_strategy *s, int32_t part, struct reading *r)
{
    int64_t width = hvd__variable_width(variable_of(s, part)), n = r->rows.n;

    hvd__part_send(s, part, "ask", &r->rows.n, 1, HVD_INT64, false, &r->asked);
    if (n == 0 || r->asked.status < 0)
        return;
    hvd__part_send(s, part, "which", r->rows.indices, n, HVD_INT64, false,
                   &r->which);
    if (r->which.status >= 0)
        hvd__part_send(s, part, "got", r->rows.values, n * width, HVD_FLOAT32,
                       true, &r->got);
}

/* Waits for the values of a part, and copies them into the variable. */
static int end_reading(struct hvd_strategy *s, int32_t part, struct reading *r)
{
    const struct hvd__variable *v = variable_of(s, part);
    const struct hvd__part *p = &s->servers->parts[part];
    int asked = hvd__sent_wait(&r->asked), which = hvd__sent_wait(&r->which);
    int got = hvd__sent_wait(&r->got);

    if (asked < 0 || which < 0 || got < 0)
        return asked < 0 ? asked : which < 0 ? which : got;
    hvd__rows_scatter(&r->rows, v->value + p->offset, hvd__variable_width(v),
                      hvd__part_first_row(s, p));
    return HVD_OK;
}

static int read_parts(struct hvd_strategy *s, int32_t number,
                      const struct hvd__rows *rows, struct reading *readings)
{
    int32_t first = s->servers->first[number];
    int32_t n = s->servers->first[number + 1] - first;
    int status = HVD_OK;

    for (int32_t i = 0; i < n; i++)
        HVD_TRY(begin_reading(s, first + i, rows, &readings[i]));
    HVD_TRY(hvd__command_read(s, number));
    for (int32_t i = 0; i < n; i++)
        ask(s, first + i, &readings[i]);
    for (int32_t i = 0; i < n; i++) {
        int one = end_reading(s, first + i, &readings[i]);

        status = status < 0 ? status : one;
    }
    return status;
}

int hvd__servers_read_rows(struct hvd_strategy *s, int32_t variable,
                           const int64_t *indices, int64_t n)
{
    int32_t nparts =
        s->servers->first[variable + 1] - s->servers->first[variable];
    struct reading *readings;
    struct hvd__rows rows;
    int status;

    if (nparts == 0)
        return HVD_OK;
    HVD_TRY(hvd__rows_combine(&rows, indices, NULL, n, 0));
    readings = calloc((size_t)nparts, sizeof *readings);
    status = readings ? read_parts(s, variable, &rows, readings)
                      : hvd__fail_memory((size_t)nparts * sizeof *readings);
    for (int32_t i = 0; readings && i < nparts; i++)
        hvd__rows_free(&readings[i].rows);
    free(readings);
    hvd__rows_free(&rows);
    return status;
}
