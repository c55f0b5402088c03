/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_rows.c - the parts of sparse variables on a parameter server: rows
 * come from workers, are added up and applied, and the rows that have changed
 * go back.
 *
 * A worker is told a number of rows, then gets the rows, if there are any; and
 * so is this server. A number that no worker of this library sends, or rows
 * that are not of this part, ascending and each once, end the service: the
 * number is looked at before there is room for the rows.
 *
 * A worker has a whole copy. Each answer brings every row that has changed
 * since the one before, by whichever worker, so that the copy is as new as that
 * of a dense variable. With HVD_ROWS_ON_REQUEST only what a worker reads, or
 * saves, comes to it.
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "strategy/optimizer.h"
#include "strategy/server.h"

static const char *name_of(const struct hvd__shelf *shelf)
{
    return shelf->server->strategy->variables[shelf->part->variable].name;
}

/* ----------------------------------------------------------- rows that come */

/* Takes the rows of a slot, or the reason why there are none. */
static void take(struct hvd__slot *slot, int status, const char *reason)
{
    struct hvd__server *server = slot->client->server;

    if (atomic_load(&server->done))
        return;
    if (status >= 0) {
        server->gradients++;
        server->bytes +=
            (int64_t)hvd__rows_bytes(slot->pushed.n, slot->shelf->width);
    }
    hvd__round_take(slot, status < 0 ? reason : NULL);
}

/* Ends the service if rows that came are not of this part. */
static void check_places(const struct hvd__slot *slot,
                         const struct hvd__rows *rows)
{
    const struct hvd__shelf *shelf = slot->shelf;
    int64_t end = shelf->first + shelf->nrows;

    if (hvd__rows_misplaced(rows, shelf->first, end) >= 0)
        hvd__server_fail(
            shelf->server,
            hvd__fail(HVD_ERR_MISMATCH,
                      "rank %d sent rows of variable '%s' that are none of "
                      "rows %lld to %lld, or not in order",
                      slot->client->rank, name_of(shelf),
                      (long long)shelf->first, (long long)(end - 1)));
}

/* Makes room for as many rows as a worker has announced. A failure ends the
 * service. */
static int make_room(const struct hvd__slot *slot, struct hvd__rows *rows)
{
    const struct hvd__shelf *shelf = slot->shelf;
    int status;

    if (slot->announced < 0 || slot->announced > shelf->nrows)
        status = hvd__fail(HVD_ERR_MISMATCH,
                           "rank %d announced %lld rows of a part of variable "
                           "'%s' that has %lld",
                           slot->client->rank, (long long)slot->announced,
                           name_of(shelf), (long long)shelf->nrows);
    else
        status = hvd__rows_new(rows, slot->announced, shelf->width);
    if (status < 0)
        hvd__server_fail(shelf->server, status);
    return status;
}

static void came(void *context, int status)
{
    struct hvd__slot *slot = context;
    char reason[HVD__MESSAGE_MAX];

    snprintf(reason, sizeof reason, "%s", hvd_last_error());
    hvd__server_note(slot->client->server, status);
    if (status >= 0)
        check_places(slot, &slot->pushed);
    take(slot, status, reason);
}

static void announced(void *context, int status)
{
    struct hvd__slot *slot = context;
    const struct hvd__shelf *shelf = slot->shelf;
    char reason[HVD__MESSAGE_MAX];

    snprintf(reason, sizeof reason, "%s", hvd_last_error());
    hvd__server_note(shelf->server, status);
    if (atomic_load(&shelf->server->done))
        return;
    if (status < 0) {
        take(slot, status, reason);
        return;
    }
    if (make_room(slot, &slot->pushed) < 0)
        return;
    if (slot->announced == 0)
        take(slot, HVD_OK, NULL);
    else
        hvd__server_submit(
            slot, "rows", slot->pushed.indices,
            (int64_t)hvd__rows_bytes(slot->announced, shelf->width), HVD_UINT8,
            true, came);
}

void hvd__server_rows_expect(struct hvd__slot *slot)
{
    hvd__rows_free(&slot->pushed);
    hvd__server_submit(slot, "push", &slot->announced, 1, HVD_INT64, true,
                       announced);
}

/* ---------------------------------------------------------------- an update */

/* Appends rows to others, in whose memory there is room. */
static void append(struct hvd__rows *all, const struct hvd__rows *rows,
                   int64_t width)
{
    if (rows->n == 0)
        return;
    memcpy(all->indices + all->n, rows->indices,
           (size_t)rows->n * sizeof *rows->indices);
    memcpy(all->values + all->n * width, rows->values,
           (size_t)(rows->n * width) * sizeof *rows->values);
    all->n += rows->n;
}

/* Makes rows of those of all slots that have pushed. */
static int add_up(const struct hvd__shelf *shelf, struct hvd__rows *sum)
{
    struct hvd__rows all;
    int64_t n = 0;
    int status;

    for (int w = 0; w < shelf->server->nclients; w++)
        if (shelf->slots[w].state == HVD__SLOT_PUSHED)
            n += shelf->slots[w].pushed.n;
    HVD_TRY(hvd__rows_new(&all, n, shelf->width));
    all.n = 0;
    for (int w = 0; w < shelf->server->nclients; w++)
        if (shelf->slots[w].state == HVD__SLOT_PUSHED)
            append(&all, &shelf->slots[w].pushed, shelf->width);
    status = hvd__rows_combine(sum, all.indices, all.values, n, shelf->width);
    hvd__rows_free(&all);
    return status;
}

struct hvd__slot *hvd__server_rows_add_up(struct hvd__shelf *shelf)
{
    struct hvd__slot *first = NULL;
    struct hvd__rows sum;
    int status = add_up(shelf, &sum);

    if (status < 0) {
        hvd__server_fail(shelf->server, status);
        return NULL;
    }
    for (int w = 0; w < shelf->server->nclients; w++) {
        struct hvd__slot *slot = &shelf->slots[w];

        if (slot->state != HVD__SLOT_PUSHED)
            continue;
        hvd__rows_free(&slot->pushed);
        if (!first)
            first = slot;
    }
    if (first)
        first->pushed = sum;
    return first;
}

void hvd__server_rows_update(struct hvd__slot *slot)
{
    struct hvd__shelf *shelf = slot->shelf;

    hvd__optimizer_apply_rows(&shelf->server->strategy->options, shelf->updates,
                              shelf->value, &slot->pushed, shelf->width,
                              shelf->first, shelf->states);
    for (int64_t i = 0; i < slot->pushed.n; i++)
        hvd__changes_note(&shelf->changes,
                          slot->pushed.indices[i] - shelf->first,
                          shelf->version);
    hvd__rows_free(&slot->pushed);
}

void hvd__server_rows_loaded(struct hvd__shelf *shelf)
{
    shelf->version++;
    for (int64_t row = 0; row < shelf->nrows; row++)
        hvd__changes_note(&shelf->changes, row, shelf->version);
}

/* ------------------------------------------------------------- rows that go */

static void end_answer(struct hvd__slot *slot, int status)
{
    struct hvd__server *server = slot->client->server;

    if (status >= 0 && slot->brings_all)
        slot->known = slot->version;
    hvd__rows_free(&slot->answer);
    slot->is_sending = false;
    if (slot->is_due && !atomic_load(&server->done))
        hvd__server_rows_send(slot, slot->is_all_due);
}

static void sent(void *context, int status)
{
    struct hvd__slot *slot = context;

    hvd__server_note(slot->client->server, status);
    end_answer(slot, status);
}

static void sent_number(void *context, int status)
{
    struct hvd__slot *slot = context;
    const struct hvd__rows *answer = &slot->answer;

    hvd__server_note(slot->client->server, status);
    if (status < 0 || answer->n == 0)
        end_answer(slot, status);
    else
        hvd__server_submit(
            slot, "new", answer->indices,
            (int64_t)hvd__rows_bytes(answer->n, slot->shelf->width), HVD_UINT8,
            false, sent);
}

void hvd__server_rows_send(struct hvd__slot *slot, bool all)
{
    const struct hvd__shelf *shelf = slot->shelf;
    struct hvd__rows *answer = &slot->answer;
    int64_t since = slot->known;
    int status;

    slot->is_due = slot->is_sending;
    slot->is_all_due = all;
    if (slot->is_due)
        return;
    slot->brings_all =
        all || !(shelf->server->strategy->options.flags & HVD_ROWS_ON_REQUEST);
    if (!slot->brings_all)
        since = shelf->version;
    status = hvd__rows_new(answer, hvd__changes_count(&shelf->changes, since),
                           shelf->width);
    if (status < 0) {
        hvd__server_fail(shelf->server, status);
        return;
    }
    hvd__changes_list(&shelf->changes, since, shelf->first, answer->indices);
    hvd__rows_gather(answer, shelf->value, shelf->width, shelf->first);
    slot->version = shelf->version;
    slot->is_sending = true;
    hvd__server_submit(slot, "pull", &answer->n, 1, HVD_INT64, false,
                       sent_number);
}

/* ------------------------------------------------------- rows that are read */

static void end_reading(struct hvd__slot *slot)
{
    hvd__rows_free(&slot->asked);
    if (!atomic_load(&slot->client->server->done))
        hvd__answered(slot->client);
}

static void lent(void *context, int status)
{
    struct hvd__slot *slot = context;

    hvd__server_note(slot->client->server, status);
    end_reading(slot);
}

static void asked_which(void *context, int status)
{
    struct hvd__slot *slot = context;
    const struct hvd__shelf *shelf = slot->shelf;

    hvd__server_note(shelf->server, status);
    if (status >= 0)
        check_places(slot, &slot->asked);
    if (status < 0 || atomic_load(&shelf->server->done)) {
        end_reading(slot);
        return;
    }
    hvd__rows_gather(&slot->asked, shelf->value, shelf->width, shelf->first);
    hvd__server_submit(slot, "got", slot->asked.values,
                       slot->asked.n * shelf->width, HVD_FLOAT32, false, lent);
}

static void asked(void *context, int status)
{
    struct hvd__slot *slot = context;
    const struct hvd__shelf *shelf = slot->shelf;

    hvd__server_note(shelf->server, status);
    if (status >= 0 && !atomic_load(&shelf->server->done))
        status = make_room(slot, &slot->asked);
    if (status < 0 || slot->asked.n == 0)
        end_reading(slot);
    else
        hvd__server_submit(slot, "which", slot->asked.indices, slot->asked.n,
                           HVD_INT64, true, asked_which);
}

void hvd__server_rows_lend(struct hvd__slot *slot)
{
    hvd__server_submit(slot, "ask", &slot->announced, 1, HVD_INT64, true,
                       asked);
}
