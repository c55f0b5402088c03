/* SPDX-License-Identifier: Apache-2.0 */
#include "log/page.h"

#include "files/gz.h"
#include "log/sink.h"
#include "output/problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *page_last_word(const char *tag)
{
    const char *slash = strrchr(tag, '/');

    return slash ? slash + 1 : tag;
}

bool page_begins(const char *tag, const char *group)
{
    return strncmp(tag, group, strlen(group)) == 0;
}

static struct page_series *find_series(const struct page_data *data,
                                       const char *tag)
{
    for (int i = 0; i < data->nseries; i++)
        if (strcmp(data->series[i].tag, tag) == 0)
            return &data->series[i];
    return NULL;
}

static struct page_series *add_series(struct page_data *data, const char *tag)
{
    struct page_series *grown =
        realloc(data->series, ((size_t)data->nseries + 1) * sizeof *grown);

    if (!grown)
        return NULL;
    data->series = grown;
    grown[data->nseries] = (struct page_series){.tag = strdup(tag)};
    return grown[data->nseries].tag ? &grown[data->nseries++] : NULL;
}

static int add_point(struct page_data *data, const char *tag, int64_t step,
                     double value)
{
    struct page_series *s = find_series(data, tag);

    if (!s)
        s = add_series(data, tag);
    if (s && s->count == s->room) {
        int room = 2 * s->room + 64;
        int64_t *steps = realloc(s->steps, (size_t)room * sizeof *steps);
        double *values = realloc(s->values, (size_t)room * sizeof *values);

        if (steps)
            s->steps = steps;
        if (values)
            s->values = values;
        if (steps && values)
            s->room = room;
    }
    if (!s || s->count == s->room)
        return log_no_memory();
    s->steps[s->count] = step;
    s->values[s->count++] = value;
    return 0;
}

/* Removes what was logged of this step and later ones. */
static void forget(struct page_data *data, int64_t step)
{
    size_t i = 0;

    for (int k = 0; k < data->nseries; k++) {
        struct page_series *s = &data->series[k];
        int kept = 0;

        for (int p = 0; p < s->count; p++)
            if (s->steps[p] < step) {
                s->steps[kept] = s->steps[p];
                s->values[kept++] = s->values[p];
            }
        s->count = kept;
    }
    while (i < json_array_size(data->slowest)) {
        json_t *one = json_array_get(data->slowest, i);

        if (json_integer_value(json_object_get(one, "step")) >= step)
            json_array_remove(data->slowest, i);
        else
            i++;
    }
    if (data->steps >= step)
        data->steps = step > 0 ? step - 1 : 0;
    if (step == 0)
        data->begin = 0;
}

static int take_text(struct page_data *data, const char *tag, const char *text)
{
    if (strcmp(tag, "configuration") == 0) {
        free(data->settings);
        data->settings = strdup(text);
        return data->settings ? 0 : log_no_memory();
    }
    if (strcmp(tag, "slowest step") == 0) {
        json_t *step = json_loads(text, 0, NULL);

        if (!json_is_object(step)) {
            json_decref(step);
            return 0; /* a text of another program */
        }
        if (json_array_append_new(data->slowest, step) < 0)
            return log_no_memory();
    }
    return 0;
}

static int take_line(struct page_data *data, json_t *line)
{
    const json_t *value = json_object_get(line, "value");
    const char *tag = json_string_value(json_object_get(line, "tag"));
    const char *text = json_string_value(json_object_get(line, "text"));
    int64_t step = json_integer_value(json_object_get(line, "step"));

    if (json_object_get(line, "session"))
        forget(data, step);
    data->end = json_number_value(json_object_get(line, "time"));
    if (data->begin == 0)
        data->begin = data->end;
    if (step > data->steps)
        data->steps = step;
    if (tag && text)
        return take_text(data, tag, text);
    if (tag && value)
        return add_point(data, tag, step,
                         json_is_number(value) ? json_number_value(value)
                                               : NAN);
    return 0;
}

static int read_lines(struct page_data *data, const char *path, const char *at,
                      const char *end)
{
    const char *newline;
    int number = 1, status = 0;

    /* A writer that was killed may have left a part of a line behind. */
    for (; !status && (newline = memchr(at, '\n', (size_t)(end - at)));
         at = newline + 1, number++) {
        json_t *line = json_loadb(at, (size_t)(newline - at), 0, NULL);

        status = json_is_object(line)
                     ? take_line(data, line)
                     : problem_fail(HVD_ERR_FILE,
                                    "%s:%d: this line is no JSON object", path,
                                    number);
        json_decref(line);
    }
    return status;
}

int page_read(struct page_data *data, const char *path)
{
    size_t length = 0;
    char *text = NULL;
    int status = gz_read_file(path, &text, &length);

    *data = (struct page_data){.slowest = json_array()};
    if (status == 0 && !data->slowest)
        status = log_no_memory();
    if (status == 0)
        status = read_lines(data, path, text, text + length);
    free(text);
    return status;
}

void page_fini(struct page_data *data)
{
    for (int i = 0; i < data->nseries; i++) {
        free(data->series[i].tag);
        free(data->series[i].steps);
        free(data->series[i].values);
    }
    free(data->series);
    free(data->settings);
    json_decref(data->slowest);
    *data = (struct page_data){0};
}
