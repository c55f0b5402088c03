/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluations.c - the file by which an evaluator of its own tells a training
 * what it has found: a JSON object in each line,
 *
 *     {"step":1200,"eval/loss":0.25,"eval/accuracy":0.9}
 *
 * with null for what is no number. Lines are added with one write each. Rank 0
 * reads those that are complete, and sends them to the others; how far it has
 * read is in the checkpoints.
 */
#include "estimator/estimator.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int set_path(const hvd_estimator *e, char *path)
{
    if (snprintf(path, PATH_MAX, "%s/evaluations.jsonl",
                 e->options.model_dir) >= PATH_MAX)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "model_dir: the path is too long");
    return 0;
}

static int write_line(const char *path, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *line = malloc(bytes + 1);
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    bool written = false;

    if (line && file >= 0) {
        snprintf(line, bytes + 1, "%s\n", text);
        written = write(file, line, bytes) == (ssize_t)bytes;
    }
    if (!written)
        problem_fail(HVD_ERR_FILE, "%s: %s", path, strerror(errno));
    if (file >= 0)
        close(file);
    free(line);
    return written ? 0 : HVD_ERR_FILE;
}

int evaluations_write(const hvd_estimator *e, const struct values *values)
{
    json_t *json = json_object();
    char path[PATH_MAX], *text;
    int status = set_path(e, path);

    json_object_set_new(json, "step", json_integer(values->step));
    for (int32_t i = 0; i < values->count; i++) {
        double value = values->list[i].value;

        json_object_set_new(json, values->names[i],
                            isfinite(value) ? json_real(value) : json_null());
    }
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (status == 0 && !text)
        status = problem_fail(HVD_ERR_MEMORY, "no memory for an evaluation");
    if (status == 0)
        status = write_line(path, text);
    free(text);
    return status;
}

void evaluations_skip(hvd_estimator *e)
{
    char path[PATH_MAX];
    struct stat found;

    if (hvd_rank() == 0 && e->options.model_dir && set_path(e, path) == 0 &&
        stat(path, &found) == 0)
        e->numbers[NUMBER_HEARD] = (double)found.st_size;
}

/* Reads a line. Returns false if it is none of ours. */
static bool parse(const char *line, struct values *values)
{
    json_t *json = json_loads(line, 0, NULL), *value;
    const char *name;

    *values = (struct values){.step = -1};
    json_object_foreach(json, name, value)
    {
        if (strcmp(name, "step") == 0)
            values->step = json_integer_value(value);
        else if (values->count < HVD_EVAL_MOST_METRICS + 2)
            values_add(values, name,
                       json_is_number(value) ? json_number_value(value)
                                             : (double)NAN);
    }
    json_decref(json);
    return values->step >= 0;
}

/* Rank 0: reads the next line that is complete. Returns whether there is one.
 */
static bool read_next(hvd_estimator *e, struct values *values)
{
    char path[PATH_MAX], *line = NULL;
    size_t capacity = 0;
    bool found = false;
    ssize_t bytes = 0;
    FILE *file = NULL;

    if (set_path(e, path) == 0)
        file = fopen(path, "re");
    if (file && fseeko(file, (off_t)e->numbers[NUMBER_HEARD], SEEK_SET) == 0)
        while (!found && (bytes = getline(&line, &capacity, file)) > 0 &&
               line[bytes - 1] == '\n') {
            e->numbers[NUMBER_HEARD] += (double)bytes;
            found = parse(line, values);
        }
    free(line);
    if (file)
        fclose(file);
    return found;
}

/* Collective: gives all ranks the values that rank 0 has. */
static int spread(struct values *values)
{
    int status = agree_send(values, sizeof *values, HVD_UINT8);

    for (int32_t i = 0; i < values->count; i++)
        values->list[i].name = values->names[i];
    return status;
}

int evaluations_hear(hvd_estimator *e)
{
    int status = 0;
    double found = 1;

    while (status == 0 && found > 0) {
        struct values values = {0};

        found = hvd_rank() == 0 && read_next(e, &values);
        status = agree_sum(&found, 1);
        if (status == 0 && found > 0)
            status = spread(&values);
        if (status == 0 && found > 0)
            status =
                hooks_call(e, MOMENT_AFTER_EVALUATION, (double)NAN, &values);
    }
    return status;
}
