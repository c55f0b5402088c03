/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - opens checkpoints and gives out their tensors. A file is mapped
 * and compared with its checksum before anything of it is given out.
 */
#include "checkpoint/file.h"
#include "files/elements.h"
#include "output/problem.h"

#include <hvd_checkpoint.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct hvd_checkpoint {
    struct safetensors *file; /* owned */
    struct checkpoint_record record;
    bool is_checkpoint; /* false: any file of tensors */
    char *json;         /* owned: the state as text */
    char *passed_over;  /* owned: one line */
};

/* ------------------------------------------------------------------ opening */

int hvd_checkpoint_list(const char *folder, int64_t **steps)
{
    int count = 0;

    *steps = checkpoint_steps(folder, &count);
    return *steps ? count : HVD_ERR_FILE;
}

static int open_file(const char *path, hvd_checkpoint **checkpoint)
{
    hvd_checkpoint *c = calloc(1, sizeof *c);
    int status;

    if (!c)
        return problem_fail(HVD_ERR_MEMORY, "%s: out of memory", path);
    status =
        checkpoint_open_file(path, &c->file, &c->record, &c->is_checkpoint);
    if (status == 0 && c->is_checkpoint) {
        status = checkpoint_verify(c->file, &c->record);
        c->json = json_dumps(c->record.state, JSON_COMPACT);
        if (status == 0 && !c->json)
            status = problem_fail(HVD_ERR_MEMORY, "%s: out of memory", path);
    }
    if (status == 0)
        *checkpoint = c;
    else
        hvd_checkpoint_close(c);
    return status;
}

int hvd_checkpoint_open_step(const char *folder, int64_t step,
                             hvd_checkpoint **checkpoint)
{
    char path[PATH_MAX];
    int status = checkpoint_path(path, folder, step, CHECKPOINT_TENSORS);

    *checkpoint = NULL;
    if (status == 0)
        status = open_file(path, checkpoint);
    if (*checkpoint &&
        (!(*checkpoint)->is_checkpoint || (*checkpoint)->record.step != step)) {
        hvd_checkpoint_close(*checkpoint);
        *checkpoint = NULL;
        status = problem_fail(HVD_ERR_FILE,
                              "%s: it is no checkpoint of step %" PRId64, path,
                              step);
    }
    return status;
}

/* Adds a text to a line. */
static int add(char **line, const char *text)
{
    const size_t before = *line ? strlen(*line) : 0;
    char *more = realloc(*line, before + strlen(text) + 3);

    if (!more)
        return problem_fail(HVD_ERR_MEMORY, "out of memory");
    sprintf(more + before, "%s%s", before ? "; " : "", text);
    *line = more;
    return 0;
}

/* Opens the newest checkpoint of a folder that is whole. */
static int open_newest(const char *folder, hvd_checkpoint **checkpoint)
{
    int count, status = 1;
    int64_t *steps = checkpoint_steps(folder, &count);
    char *passed_over = NULL;

    if (!steps)
        return HVD_ERR_FILE;
    for (int i = count - 1; i >= 0 && status != 0; i--) {
        status = hvd_checkpoint_open_step(folder, steps[i], checkpoint);
        if (status == HVD_ERR_MEMORY ||
            (status < 0 && add(&passed_over, problem_text()) < 0))
            break;
    }
    if (status == 0 && *checkpoint) {
        (*checkpoint)->passed_over = passed_over;
        passed_over = NULL;
    } else if (status < 0 && passed_over) {
        status = problem_fail(status,
                              "%s: no checkpoint can be used: %s; remove "
                              "them to start anew",
                              folder, passed_over);
    }
    free(passed_over);
    free(steps);
    return status;
}

int hvd_checkpoint_open(const char *path, hvd_checkpoint **checkpoint)
{
    struct stat info;
    const size_t length = strlen(path), ending = strlen(CHECKPOINT_TENSORS);
    const bool there = stat(path, &info) == 0;

    *checkpoint = NULL;
    if (there ? S_ISDIR(info.st_mode)
              : length < ending ||
                    strcmp(path + length - ending, CHECKPOINT_TENSORS) != 0)
        return open_newest(path, checkpoint);
    return open_file(path, checkpoint);
}

void hvd_checkpoint_close(hvd_checkpoint *c)
{
    if (!c)
        return;
    checkpoint_record_fini(&c->record);
    safetensors_close(c->file);
    free(c->json);
    free(c->passed_over);
    free(c);
}

/* --------------------------------------------------- what it says of itself */

const char *hvd_checkpoint_passed_over(const hvd_checkpoint *c)
{
    return c->passed_over ? c->passed_over : "";
}

const char *hvd_checkpoint_path(const hvd_checkpoint *c)
{
    return c->file->path;
}

int hvd_checkpoint_get_info(const hvd_checkpoint *c, hvd_checkpoint_info *info)
{
    hvd_checkpoint_info found = {.size = info->size,
                                 .final = c->record.final,
                                 .step = c->record.step,
                                 .time = c->record.time,
                                 .metric = c->record.metric,
                                 .bytes = c->record.bytes,
                                 .json = c->json};

    if (!c->is_checkpoint)
        return problem_fail(HVD_ERR_FILE,
                            "%s: it has tensors, but is no checkpoint",
                            c->file->path);
    memcpy(info, &found, found.size < sizeof found ? found.size : sizeof found);
    return 0;
}

/* Returns a member of the state by its path; NULL: there is none. */
static const json_t *member(const hvd_checkpoint *c, const char *path)
{
    const json_t *at = c->record.state;
    const char *name = path;

    while (at && name) {
        const char *dot = strchr(name, '.');
        const size_t length = dot ? (size_t)(dot - name) : strlen(name);
        char key[256];

        snprintf(key, sizeof key, "%.*s", (int)length, name);
        at = length < sizeof key ? json_object_get(at, key) : NULL;
        name = dot ? dot + 1 : NULL;
    }
    return at;
}

static int set_missing(const hvd_checkpoint *c, const char *path,
                       const char *kind)
{
    return problem_fail(HVD_ERR_ARGUMENT, "%s: its JSON has no %s '%.80s'",
                        c->file->path, kind, path);
}

int hvd_checkpoint_get_int(const hvd_checkpoint *c, const char *path,
                           int64_t *value)
{
    const json_t *found = member(c, path);

    if (!json_is_integer(found))
        return set_missing(c, path, "integer");
    *value = json_integer_value(found);
    return 0;
}

int hvd_checkpoint_get_real(const hvd_checkpoint *c, const char *path,
                            double *value)
{
    const json_t *found = member(c, path);

    if (!json_is_number(found))
        return set_missing(c, path, "number");
    *value = json_number_value(found);
    return 0;
}

int hvd_checkpoint_get_text(const hvd_checkpoint *c, const char *path,
                            const char **value)
{
    const json_t *found = member(c, path);

    if (!json_is_string(found))
        return set_missing(c, path, "text");
    *value = json_string_value(found);
    return 0;
}

/* ------------------------------------------------------------------ tensors */

int32_t hvd_checkpoint_count(const hvd_checkpoint *c)
{
    return c->file->count;
}

int hvd_checkpoint_describe(const hvd_checkpoint *c, int32_t i,
                            hvd_checkpoint_tensor *tensor)
{
    const struct safetensors_tensor *t;

    if (i < 0 || i >= c->file->count)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "%s: it has %d tensors, and no number %d",
                            c->file->path, c->file->count, i);
    t = &c->file->tensors[i];
    *tensor = (hvd_checkpoint_tensor){.name = t->name,
                                      .dtype = safetensors_to_hvd(t->dtype),
                                      .ndim = t->ndim,
                                      .shape = t->shape};
    return 0;
}

static const struct safetensors_tensor *find(const hvd_checkpoint *c,
                                             const char *name)
{
    const struct safetensors_tensor *t = safetensors_find(c->file, name);

    if (!t)
        problem_fail(HVD_ERR_ARGUMENT, "%s: it has no tensor '%.80s'",
                     c->file->path, name);
    return t;
}

int hvd_checkpoint_find(const hvd_checkpoint *c, const char *name,
                        hvd_checkpoint_tensor *tensor)
{
    const struct safetensors_tensor *t = find(c, name);

    return t ? hvd_checkpoint_describe(c, (int32_t)(t - c->file->tensors),
                                       tensor)
             : HVD_ERR_ARGUMENT;
}

/* Returns whether the tensor's elements can be had as a dtype of hvd.h. */
static bool converts(const struct safetensors_tensor *t, hvd_dtype dtype)
{
    const int to = safetensors_from_hvd(dtype);

    return to >= 0 && ((int)t->dtype == to ||
                       (element_is_float(t->dtype) &&
                        element_is_float((enum safetensors_dtype)to)));
}

static void read_elements(const struct safetensors_tensor *t, hvd_dtype dtype,
                          int64_t first, int64_t count, void *out)
{
    const size_t from = (size_t)first * safetensors_bits(t->dtype) / 8;

    if (count > 0)
        elements_convert((enum safetensors_dtype)safetensors_from_hvd(dtype),
                         out, t->dtype, (const char *)t->data + from, count);
}

int hvd_checkpoint_read(const hvd_checkpoint *c, const char *name,
                        hvd_dtype dtype, int64_t first, int64_t count,
                        void *out)
{
    const struct safetensors_tensor *t = find(c, name);

    if (!t)
        return HVD_ERR_ARGUMENT;
    if (!converts(t, dtype))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "%s: '%.80s' is of dtype %s, which cannot be read "
                            "as dtype %d of hvd.h",
                            c->file->path, name, safetensors_name(t->dtype),
                            dtype);
    if (first < 0 || count < 0 || first > t->count || count > t->count - first)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "%s: '%.80s' has %" PRId64 " elements, and not "
                            "%" PRId64 " from %" PRId64 " on",
                            c->file->path, name, t->count, count, first);
    read_elements(t, dtype, first, count, out);
    return 0;
}

/* Writes the name in the file of a wanted tensor. Returns false if it is not to
 * be loaded. */
static bool rename_tensor(const char *wanted,
                          const hvd_checkpoint_rename *renames, int32_t count,
                          char *saved, size_t bytes)
{
    for (int32_t i = 0; i < count; i++) {
        const char *from = renames[i].wanted;
        const size_t n = strlen(from);
        const bool prefix = n > 0 && from[n - 1] == '/';

        if (prefix ? strncmp(wanted, from, n) != 0 : strcmp(wanted, from) != 0)
            continue;
        if (renames[i].saved)
            snprintf(saved, bytes, "%s%s", renames[i].saved,
                     prefix ? wanted + n : "");
        return renames[i].saved != NULL;
    }
    snprintf(saved, bytes, "%s", wanted);
    return true;
}

/* Looks a wanted tensor up. Returns NULL if it is not to be loaded, or wrong:
 * then *wrong gets a reason more. */
static const struct safetensors_tensor *look_up(
    const hvd_checkpoint *c, const hvd_checkpoint_tensor *tensor,
    const hvd_checkpoint_rename *renames, int32_t nrenames, uint32_t flags,
    char **wrong)
{
    char saved[1024], reason[256] = "";
    const struct safetensors_tensor *t;

    if (!rename_tensor(tensor->name, renames, nrenames, saved, sizeof saved))
        return NULL;
    t = safetensors_find(c->file, saved);
    if (!t && flags & HVD_CHECKPOINT_PARTIAL)
        return NULL;
    if (!t)
        snprintf(reason, sizeof reason, "it has no '%.80s'", saved);
    else if (!converts(t, tensor->dtype))
        snprintf(reason, sizeof reason,
                 "'%.80s' is of dtype %s there, and of dtype %d of hvd.h here",
                 saved, safetensors_name(t->dtype), tensor->dtype);
    else if (t->ndim != tensor->ndim ||
             (t->ndim > 0 && memcmp(t->shape, tensor->shape,
                                    (size_t)t->ndim * sizeof *t->shape) != 0))
        snprintf(reason, sizeof reason, "'%.80s' is of another shape there",
                 saved);
    if (!reason[0])
        return t;
    add(wrong, reason);
    return NULL;
}

int hvd_checkpoint_restore(const hvd_checkpoint *c,
                           const hvd_checkpoint_tensor *tensors, int32_t count,
                           const hvd_checkpoint_rename *renames,
                           int32_t nrenames, uint32_t flags)
{
    const struct safetensors_tensor **found =
        calloc((size_t)count + 1, sizeof *found);
    char *wrong = NULL;
    int read = 0;

    if (!found)
        return problem_fail(HVD_ERR_MEMORY, "out of memory");
    for (int32_t i = 0; i < count; i++)
        found[i] = look_up(c, &tensors[i], renames, nrenames, flags, &wrong);
    for (int32_t i = 0; i < count && !wrong; i++)
        if (found[i]) {
            read_elements(found[i], tensors[i].dtype, 0, found[i]->count,
                          tensors[i].data);
            read++;
        }
    if (wrong)
        read = problem_fail(HVD_ERR_ARGUMENT,
                            "%s: %s; was it written for "
                            "another network?",
                            c->file->path, wrong);
    free(wrong);
    free((void *)found);
    return read;
}
