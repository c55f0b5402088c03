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

int elastic_write(const hvd_estimator *e, json_t *json)
{
    const char *path = e->options.elastic_log;
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

json_t *elastic_describe_lost(const hvd_estimator *e)
{
    const struct elastic *x = e->elastic;
    hvd_lost_rank lost[ELASTIC_MOST_RANKS];
    const int n = hvd_lost_ranks(lost, ELASTIC_MOST_RANKS);
    json_t *json = elastic_event(e, "loss"), *list = json_array();
    int newcomers = 0;

    /* The file may tell of an earlier job, whose ranks have such numbers. */
    if (!x->told)
        json_object_set_new(json, "ranks", json_array());
    for (int i = 0; i < n && i < ELASTIC_MOST_RANKS; i++) {
        if (lost[i].rank >= x->size)
            continue;
        if (x->told && x->ranks[lost[i].rank] != ELASTIC_NEWCOMER)
            json_array_append_new(list, json_integer(x->ranks[lost[i].rank]));
        else
            newcomers++;
    }
    json_object_set_new(json, "lost", list);
    json_object_set_new(json, "left", json_integer(hvd_size()));
    if (newcomers > 0)
        json_object_set_new(json, "newcomers", json_integer(newcomers));
    json_object_set_new(json, "reached", json_integer(e->step));
    return json;
}

json_t *elastic_describe_stop(const hvd_estimator *e)
{
    json_t *json = elastic_event(e, "stop");

    if (!e->elastic->told)
        json_object_set_new(json, "ranks", json_array());
    return json;
}
