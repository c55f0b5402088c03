/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/inspect.h"

#include "disk/disk.h"
#include "output/problem.h"

#include <hvd_checkpoint.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static bool ends_with(const char *path, const char *ending)
{
    const size_t n = strlen(path), k = strlen(ending);

    return n >= k && strcmp(path + n - k, ending) == 0;
}

static int open_tensors(struct source *s, const char *path)
{
    int status =
        checkpoint_open_file(path, &s->file, &s->record, &s->is_checkpoint);

    if (status == 0 && s->is_checkpoint)
        status = checkpoint_verify(s->file, &s->record);
    if (status < 0)
        return status;
    s->path = s->file->path;
    s->count = s->file->count;
    s->tensors = s->file->tensors;
    return 0;
}

static int open_newest(struct source *s, const char *folder)
{
    hvd_checkpoint *c;
    int status = hvd_checkpoint_open(folder, &c);

    if (status == 1)
        return problem_fail(HVD_ERR_FILE, "%s: there is no checkpoint in it",
                            folder);
    if (status < 0)
        return status;
    if (*hvd_checkpoint_passed_over(c))
        fprintf(stderr, "hvd-checkpoint: passed over: %s\n",
                hvd_checkpoint_passed_over(c));
    status = open_tensors(s, hvd_checkpoint_path(c));
    hvd_checkpoint_close(c);
    return status;
}

int source_open(struct source *s, const char *path)
{
    struct stat info;
    int status;

    *s = (struct source){.record.metric = NAN};
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return open_newest(s, path);
    if (!ends_with(path, ".npz"))
        return open_tensors(s, path);
    status = npz_open(path, &s->archive);
    if (status < 0)
        return status;
    s->path = s->archive->path;
    s->count = s->archive->count;
    s->tensors = s->archive->tensors;
    return 0;
}

void source_close(struct source *s)
{
    checkpoint_record_fini(&s->record);
    safetensors_close(s->file);
    npz_close(s->archive);
    *s = (struct source){.count = 0};
}

const struct safetensors_tensor *source_find(const struct source *s,
                                             const char *name)
{
    if (s->file)
        return safetensors_find(s->file, name);
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->tensors[i].name, name) == 0)
            return &s->tensors[i];
    return NULL;
}

void inspect_shape(const struct safetensors_tensor *t, char *text, size_t bytes)
{
    size_t n = (size_t)snprintf(text, bytes, "[");

    for (int32_t i = 0; i < t->ndim && n < bytes; i++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%" PRId64,
                              i > 0 ? "," : "", t->shape[i]);
    if (n < bytes)
        snprintf(text + n, bytes - n, "]");
}

void inspect_time(double seconds, char text[32])
{
    const time_t when = (time_t)seconds;
    struct tm local;

    if (!localtime_r(&when, &local) ||
        strftime(text, 32, "%Y-%m-%d %H:%M:%S", &local) == 0)
        strcpy(text, "?");
}

void inspect_bytes(int64_t bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;

    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    snprintf(text, 32, "%.*f %s", unit > 0, value, units[unit]);
}

int inspect_write(const char *path, const struct safetensors_tensor *tensors,
                  int count, const json_t *metadata)
{
    if (ends_with(path, ".npz"))
        return npz_save(path, tensors, count, DISK__SYNC | DISK__SWEEP);
    if (ends_with(path, ".safetensors"))
        return safetensors_save(path, tensors, count, metadata,
                                DISK__SYNC | DISK__SWEEP);
    return problem_fail(HVD_ERR_ARGUMENT,
                        "%s: its name must end with .safetensors or .npz",
                        path);
}
