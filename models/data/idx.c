/* SPDX-License-Identifier: Apache-2.0 */
/* data/idx.c - finds and reads the two IDX files of labelled images. */
#include "data/idx.h"

#include "files/idx.h"
#include "output/problem.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A file that was read. Messages name path. */
struct idx {
    char path[PATH_MAX];
    struct idx_array array;
};

/* Opens the file under the first spelling that exists. */
static int find_file(const char *directory, const char *part, const char *kind,
                     int dims, char *path)
{
    static const char *const spellings[] = {
        "%s/%s-%s-idx%d-ubyte", "%s/%s-%s-idx%d-ubyte.gz",
        "%s/%s-%s.idx%d-ubyte", "%s/%s-%s.idx%d-ubyte.gz"};
    struct stat info;

    if (stat(directory, &info) < 0)
        return problem_set("--data %s: %s", directory, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return problem_set("--data %s: not a directory", directory);
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        int n =
            snprintf(path, PATH_MAX, spellings[i], directory, part, kind, dims);
        if (n >= PATH_MAX)
            return problem_set("--data: the path is too long");
        if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            return problem_set("%s: is a directory, expected a file", path);
        if (stat(path, &info) == 0)
            return 0;
    }
    return problem_set("%s: holds no file %s-%s-idx%d-ubyte, plain or .gz",
                       directory, part, kind, dims);
}

/* Reads a whole file. dims 3: images, 1: labels. */
static int load_file(struct idx *idx, const char *directory, const char *part,
                     int dims)
{
    const struct idx_demand images = {
        IDX_UINT8, 3, "images as unsigned bytes", {IMAGE_SIDE, IMAGE_SIDE}};
    const struct idx_demand labels = {
        IDX_UINT8, 1, "labels as unsigned bytes", {0}};

    if (find_file(directory, part, dims == 3 ? "images" : "labels", dims,
                  idx->path) < 0)
        return PROBLEM;
    return idx_read(idx->path, dims == 3 ? &images : &labels, &idx->array) < 0
               ? PROBLEM
               : 0;
}

static int check_pair(const struct idx *pixels, const struct idx *labels,
                      int64_t limit)
{
    const uint8_t *values = labels->array.elements;

    if (pixels->array.shape[0] != labels->array.shape[0])
        return problem_set("%s: %lld labels, but %s holds %lld images",
                           labels->path, (long long)labels->array.shape[0],
                           pixels->path, (long long)pixels->array.shape[0]);
    if (limit > pixels->array.shape[0])
        return problem_set("%s: %lld images, fewer than the %lld asked for",
                           pixels->path, (long long)pixels->array.shape[0],
                           (long long)limit);
    for (int64_t i = 0; i < labels->array.shape[0]; i++)
        if (values[i] >= CLASSES)
            return problem_set("%s: label %d of item %lld, expected 0 to 9",
                               labels->path, values[i], (long long)i);
    return 0;
}

int idx_load(const char *directory, const char *part, int64_t limit,
             struct images *images)
{
    struct idx pixels = {0}, labels = {0};

    int status = load_file(&pixels, directory, part, 3);
    if (status == 0)
        status = load_file(&labels, directory, part, 1);
    if (status == 0)
        status = check_pair(&pixels, &labels, limit);
    if (status < 0) {
        free(pixels.array.elements);
        free(labels.array.elements);
        return status;
    }
    *images =
        (struct images){.count = limit > 0 ? limit : pixels.array.shape[0],
                        .pixels = pixels.array.elements,
                        .labels = labels.array.elements};
    return 0;
}
