/* SPDX-License-Identifier: Apache-2.0 */
/* elastic_events.c - the file of events of an elastic training: lines of JSON,
 * added by the rank that is 0 at that time. */
#include "estimator/elastic.h"
#include "output/problem.h"

#include <errno.h>
#include <fcntl.h>
#include <hvd.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int elastic_add(const char *path, json_t *json)
{
    char *text = NULL;
    int file, status = 0;

    if (path && hvd_rank() == 0) {
        text = json_dumps(json, JSON_COMPACT);
        file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        if (!text || file < 0 || dprintf(file, "%s\n", text) < 0)
            status =
                problem_fail(HVD_ERR_FILE, "%s: %s", path, strerror(errno));
        if (file >= 0)
            close(file);
    }
    free(text);
    json_decref(json);
    return status;
}

int elastic_write(const hvd_estimator *e, json_t *json)
{
    return elastic_add(e->options.elastic_log, json);
}

json_t *elastic_event(const hvd_estimator *e, const char *name)
{
    const struct elastic_moment *now = &e->elastic->now;
    json_t *ranks = json_array();

    for (int32_t i = 0; i < e->elastic->size; i++)
        if (e->elastic->ranks[i] != ELASTIC_NEWCOMER)
            json_array_append_new(ranks, json_integer(e->elastic->ranks[i]));
    return json_pack("{s:s,s:I,s:I,s:I,s:I,s:o}", "event", name, "step",
                     (json_int_t)now->step, "epoch",
                     (json_int_t)now->position.epoch, "samples",
                     (json_int_t)now->position.samples, "rows",
                     (json_int_t)now->rows, "ranks", ranks);
}

json_t *elastic_describe_start(const hvd_estimator *e)
{
    json_t *json = elastic_event(e, e->elastic->resumed ? "resume" : "start");
    const int nlost = e->program ? e->program->nlost : 0;
    char mark[24];

    if (nlost > 0)
        json_object_set_new(json, "newcomers", json_integer(nlost));
    if (e->program && e->program->data_mark != 0) {
        snprintf(mark, sizeof mark, "%016" PRIx64, e->program->data_mark);
        json_object_set_new(json, "data", json_string(mark));
    }
    return json;
}

void elastic_note_told(struct elastic *x)
{
    x->told.newcomers = 0;
    x->told.count = x->size;
    memcpy(x->told.ranks, x->ranks, (size_t)x->size * sizeof *x->ranks);
}

void elastic_note_number(struct elastic *x, int32_t number)
{
    struct elastic_told *told = &x->told;

    if (told->count > 0 && told->count < 2 * ELASTIC_MOST_RANKS)
        told->ranks[told->count++] = number;
}

bool elastic_has(const int32_t *numbers, int64_t count, int32_t number)
{
    for (int64_t i = 0; i < count; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

json_t *elastic_describe_lost(const hvd_estimator *e, int32_t left)
{
    const struct elastic *x = e->elastic;
    const struct elastic_told *told = &x->told;
    json_t *json = elastic_event(e, "loss");
    json_t *ranks = json_array(), *lost = json_array();

    for (int64_t i = 0; i < told->count; i++) {
        json_array_append_new(ranks, json_integer(told->ranks[i]));
        if (!elastic_has(x->ranks, left, told->ranks[i]))
            json_array_append_new(lost, json_integer(told->ranks[i]));
    }
    json_object_set_new(json, "ranks", ranks);
    json_object_set_new(json, "lost", lost);
    if (told->newcomers > 0)
        json_object_set_new(json, "newcomers", json_integer(told->newcomers));
    json_object_set_new(json, "left", json_integer(hvd_size()));
    json_object_set_new(json, "reached", json_integer(e->step));
    return json;
}

json_t *elastic_describe_stop(const hvd_estimator *e)
{
    json_t *json = elastic_event(e, "stop");

    if (e->elastic->told.count == 0)
        json_object_set_new(json, "ranks", json_array());
    return json;
}
