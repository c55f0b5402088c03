/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic_earlier.c - the losses that nobody was left to write of. If the last
 * ranks of a job die together, the file of events says neither that the
 * training has ended nor that it has stopped. The next job that trains with
 * this file finds that, and writes of those ranks before it writes anything
 * else.
 *
 * A job looks for them once, before its first training: behind that, the file
 * tells of its own ranks, some of which may still be lost before an event has
 * told their numbers.
 */
#include "estimator/elastic.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <hvd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the last whole event of a file, or NULL. */
static json_t *read_last(const char *path)
{
    FILE *file = fopen(path, "re");
    json_t *last = NULL;
    char *line = NULL;
    size_t room = 0;

    while (file && getline(&line, &room, file) > 0) {
        json_t *event = json_loads(line, 0, NULL);

        if (json_is_string(json_object_get(event, "event"))) {
            json_decref(last);
            last = event;
        } else {
            json_decref(event);
        }
    }
    free(line);
    if (file)
        fclose(file);
    return last;
}

static bool has(const json_t *list, const json_t *number)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), number))
            return true;
    return false;
}

/* Returns the ranks that were there behind an event. */
static json_t *list_left(const json_t *event)
{
    const json_t *ranks = json_object_get(event, "ranks"),
                 *lost = json_object_get(event, "lost");
    json_t *left = json_array();

    for (size_t i = 0; i < json_array_size(ranks); i++)
        if (!has(lost, json_array_get(ranks, i)))
            json_array_append(left, json_array_get(ranks, i));
    return left;
}

/* Returns how many ranks were there behind an event whose numbers no event has
 * told. */
static json_int_t count_newcomers(const json_t *event, const json_t *left)
{
    const json_int_t all = json_integer_value(json_object_get(event, "left")),
                     named = (json_int_t)json_array_size(left);

    return all > named ? all - named : 0;
}

static void copy(json_t *to, const json_t *from, const char *name)
{
    json_t *value = json_object_get(from, name);

    json_object_set_new(to, name, value ? json_incref(value) : json_integer(0));
}

json_t *elastic_describe_earlier(const char *path)
{
    static const char *const same[] = {"step", "epoch", "samples", "rows"};
    json_t *last = read_last(path), *left = list_left(last), *json = NULL;
    const char *name = json_string_value(json_object_get(last, "event"));
    const json_int_t newcomers = count_newcomers(last, left);

    if (name && strcmp(name, "end") != 0 && strcmp(name, "stop") != 0 &&
        (json_array_size(left) > 0 || newcomers > 0)) {
        json = json_pack("{s:s}", "event", "loss");
        for (size_t i = 0; i < sizeof same / sizeof *same; i++)
            copy(json, last, same[i]);
        json_object_set(json, "ranks", left);
        json_object_set(json, "lost", left);
        json_object_set_new(json, "left", json_integer(0));
        if (newcomers > 0)
            json_object_set_new(json, "newcomers", json_integer(newcomers));
        json_object_set(json, "reached", json_object_get(json, "step"));
    }
    json_decref(left);
    json_decref(last);
    return json;
}

static bool is_known; /* this process knows that its job has looked */

/* Looks for those losses, and writes of them, if this is rank 0. */
static int look(const char *path)
{
    json_t *json =
        path && hvd_rank() == 0 ? elastic_describe_earlier(path) : NULL;

    return json ? elastic_add(path, json) : 0;
}

int elastic_tell_earlier(const hvd_estimator *e, bool is_new)
{
    double known;
    int status;

    is_known |= is_new;
    if (is_new)
        return 0;
    known = is_known;
    status = agree_sum(&known, 1);
    if (status == 0 && known == 0)
        status = look(e->options.elastic_log);
    status = estimator_agree(status);
    is_known |= status == 0;
    return status;
}

int elastic_tell_unbegun(const char *path, int nlost)
{
    json_t *json =
        json_pack("{s:s,s:i,s:i,s:i,s:i,s:[]}", "event", "stop", "step", 0,
                  "epoch", 0, "samples", 0, "rows", 0, "ranks");
    const int status = is_known ? 0 : look(path);

    is_known = true;
    if (nlost > 0)
        json_object_set_new(json, "newcomers", json_integer(nlost));
    if (status == 0)
        return elastic_add(path, json);
    json_decref(json);
    return status;
}
