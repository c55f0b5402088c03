/* SPDX-License-Identifier: Apache-2.0 */
#include "project/workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk/disk.h"

int workload_add(struct workload *workload, const char *name, size_t length,
                 int64_t bytes, double ready)
{
    if (workload->n == workload->capacity) {
        int capacity = workload->capacity ? 2 * workload->capacity : 64;
        struct workload_tensor *grown =
            realloc(workload->tensors, (size_t)capacity * sizeof *grown);

        if (!grown)
            return -1;
        workload->tensors = grown;
        workload->capacity = capacity;
    }
    workload->tensors[workload->n] = (struct workload_tensor){
        .name = strndup(name, length), .bytes = bytes, .ready = ready};
    return workload->tensors[workload->n].name ? (workload->n++, 0) : -1;
}

/* Insertion: the tensors nearly always are in order, and equal ones stay so. */
void workload_sort(struct workload *workload)
{
    for (int i = 1; i < workload->n; i++) {
        struct workload_tensor tensor = workload->tensors[i];
        int at = i;

        for (; at > 0 && workload->tensors[at - 1].ready > tensor.ready; at--)
            workload->tensors[at] = workload->tensors[at - 1];
        workload->tensors[at] = tensor;
    }
}

void workload_fini(struct workload *workload)
{
    for (int i = 0; i < workload->n; i++)
        free(workload->tensors[i].name);
    free(workload->tensors);
    *workload = (struct workload){0};
}

int64_t workload_bytes(const struct workload *workload)
{
    int64_t bytes = 0;

    for (int i = 0; i < workload->n; i++)
        bytes += workload->tensors[i].bytes;
    return bytes;
}

double workload_compute(const struct workload *workload)
{
    return workload->forward + workload->backward + workload->update;
}

/* -------------------------------------------------------------------- files */

enum { MOST_BYTES = 1 << 30 };

/* Returns all that is in a file, with a NUL behind it; NULL with an error. */
static char *read_all(const char *path, size_t *length, char *error,
                      size_t size)
{
    int status = 0;
    FILE *file = disk__read_stream(path, &status);
    char *text = NULL;
    long bytes;

    if (!file) {
        snprintf(error, size, "%s: %s", path, disk__text(status));
        return NULL;
    }
    if (fseek(file, 0, SEEK_END) != 0 || (bytes = ftell(file)) < 0 ||
        fseek(file, 0, SEEK_SET) != 0)
        snprintf(error, size, "%s: %s", path, strerror(errno));
    else if (bytes > MOST_BYTES || !(text = malloc((size_t)bytes + 1)))
        snprintf(error, size, "%s: %ld bytes are too many to read", path,
                 bytes);
    if (text) {
        *length = fread(text, 1, (size_t)bytes, file);
        text[*length] = '\0';
    }
    fclose(file);
    return text;
}

int workload_read(struct workload *workload, const char *path, int rank,
                  char *error, size_t size)
{
    size_t length = 0;
    char *text = read_all(path, &length, error, size);
    int status;

    if (!text)
        return -1;
    status = text[strspn(text, " \t\r\n")] == '{'
                 ? workload_read_trace(workload, path, text, length, rank,
                                       error, size)
                 : workload_read_csv(workload, path, text, length, error, size);
    free(text);
    return status;
}
