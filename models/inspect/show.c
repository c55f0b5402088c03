/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - lists the checkpoints of a folder, and what is in one. */
#include "inspect/inspect.h"

#include "files/elements.h"
#include "output/problem.h"

#include <hvd.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void list_one(const char *folder, int64_t step)
{
    char path[PATH_MAX], time[32], bytes[32], metric[32] = "-";
    struct source s = {.count = 0};
    int status = checkpoint_path(path, folder, step, CHECKPOINT_TENSORS);

    if (status == 0)
        status = source_open(&s, path);
    if (status == 0 && (!s.is_checkpoint || s.record.step != step))
        status = problem_fail(HVD_ERR_FILE,
                              "%s: it is no checkpoint of this "
                              "step",
                              path);
    if (status < 0) {
        printf("%12" PRId64 "  damaged: %s\n", step, problem_text());
    } else {
        inspect_time(s.record.time, time);
        inspect_bytes(s.record.bytes, bytes);
        if (!isnan(s.record.metric))
            snprintf(metric, sizeof metric, "%.6g", s.record.metric);
        printf("%12" PRId64 "  %10s  %19s  %-12s  %s\n", step, bytes, time,
               metric, s.record.final ? "valid, final" : "valid");
    }
    source_close(&s);
}

int inspect_list(const struct inspect_request *request)
{
    const char *folder = request->paths[0];
    int count;
    int64_t *steps = checkpoint_steps(folder, &count);

    if (!steps)
        return HVD_ERR_FILE;
    if (count == 0)
        problem_fail(HVD_ERR_FILE, "%s: there is no checkpoint in it", folder);
    else
        printf("%12s  %10s  %-19s  %-12s  %s\n", "step", "size", "saved",
               "metric", "state");
    for (int i = 0; i < count; i++)
        list_one(folder, steps[i]);
    free(steps);
    return count == 0 ? HVD_ERR_FILE : 0;
}

static void show_tensor(const struct safetensors_tensor *t, int width)
{
    double least = INFINITY, most = -INFINITY, sum = 0, squares = 0;
    char shape[80];

    inspect_shape(t, shape, sizeof shape);
    printf("%-*s  %-7s  ", width, t->name, safetensors_name(t->dtype));
    if (!element_is_known(t->dtype) || t->count == 0) {
        printf("%s\n", shape);
        return;
    }
    for (int64_t i = 0; i < t->count; i++) {
        const double value = element_get(t->dtype, t->data, i);

        least = isnan(value) || value < least ? value : least;
        most = isnan(value) || value > most ? value : most;
        sum += value;
        squares += value * value;
    }
    printf("%-16s  %12.5g  %12.5g  %12.5g  %12.5g\n", shape, least, most,
           sum / (double)t->count, sqrt(squares));
}

static void show_record(const struct source *s)
{
    const struct checkpoint_record *r = &s->record;
    char *state = json_dumps(r->state, JSON_INDENT(2)), time[32], bytes[32];

    inspect_time(r->time, time);
    inspect_bytes(r->bytes, bytes);
    printf("step    %" PRId64 "%s\nsaved   %s\nsize    %s\n", r->step,
           r->final ? ", the last one of its training" : "", time, bytes);
    if (!isnan(r->metric))
        printf("metric  %.9g\n", r->metric);
    printf("crc32   %08" PRIx32 ", as it should be\nstate   %s\n", r->crc,
           state ? state : "?");
    free(state);
}

int inspect_show(const struct inspect_request *request)
{
    struct source s;
    int status = source_open(&s, request->paths[0]), width = 6;
    const char *key;
    json_t *value;

    if (status == 0) {
        printf("file    %s\n", s.path);
        if (s.is_checkpoint)
            show_record(&s);
        else if (s.file) {
            json_object_foreach(s.file->metadata, key, value)
            {
                printf("%s: %s\n", key, json_string_value(value));
            }
        }
        for (int i = 0; i < s.count; i++)
            if ((int)strlen(s.tensors[i].name) > width)
                width = (int)strlen(s.tensors[i].name);
        printf("\n%-*s  %-7s  %-16s  %12s  %12s  %12s  %12s\n", width, "tensor",
               "dtype", "shape", "min", "max", "mean", "norm");
        for (int i = 0; i < s.count; i++)
            show_tensor(&s.tensors[i], width);
    }
    source_close(&s);
    return status;
}
