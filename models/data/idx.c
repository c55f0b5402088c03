/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idx.c - reads IDX files through zlib, whose gzdopen also reads plain files.
 * Nothing in the file is trusted: memory grows with the bytes actually read,
 * not with the counts of the header, and after the last element the file must
 * end (which also makes zlib verify the checksum of a .gz).
 */
#include "data/idx.h"

#include "disk/disk.h"
#include "output/problem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { UNSIGNED_BYTES = 0x08, MAX_ITEMS = 10000000, CHUNK = 1 << 20 };

/* An open file. Messages name path. */
struct idx {
    gzFile file;
    char path[PATH_MAX];
    int64_t items;
    int64_t item_bytes;
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

/* Sets the problem of a read that failed or was short. */
static int explain_read(const struct idx *idx, int64_t expected, int64_t got)
{
    int code = Z_OK;
    const char *why = gzerror(idx->file, &code);

    if (code == Z_ERRNO)
        return problem_set("%s: %s", idx->path, strerror(errno));
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return problem_set("%s: damaged: %s", idx->path, why);
    return problem_set("%s: truncated: ends after %lld of %lld bytes",
                       idx->path, (long long)got, (long long)expected);
}

/* Reads the header: type and number of dimensions, then the extents. */
static int read_header(struct idx *idx, int dims)
{
    uint8_t head[16] = {0};
    int expected = 4 + 4 * dims;
    int got = gzread(idx->file, head, (unsigned)expected);

    if (got < 0 || (got < 4 && got < expected))
        return explain_read(idx, expected, got < 0 ? 0 : got);
    if (head[0] != 0 || head[1] != 0 || head[2] != UNSIGNED_BYTES ||
        head[3] != dims)
        return problem_set("%s: starts with %02x%02x%02x%02x, expected "
                           "0000%02x%02x (%s as unsigned bytes)",
                           idx->path, head[0], head[1], head[2], head[3],
                           UNSIGNED_BYTES, dims,
                           dims == 3 ? "images" : "labels");
    if (got < expected)
        return explain_read(idx, expected, got);
    int64_t extents[3] = {0};
    for (int i = 0; i < dims; i++) {
        const uint8_t *b = head + 4 + 4 * i;
        extents[i] = (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
    }
    if (dims == 3 && (extents[1] != IMAGE_SIDE || extents[2] != IMAGE_SIDE))
        return problem_set("%s: images of %lldx%lld pixels, expected 28x28",
                           idx->path, (long long)extents[1],
                           (long long)extents[2]);
    if (extents[0] < 1 || extents[0] > MAX_ITEMS)
        return problem_set("%s: announces %lld items, expected 1 to %d",
                           idx->path, (long long)extents[0], MAX_ITEMS);
    idx->items = extents[0];
    idx->item_bytes = dims == 3 ? IMAGE_PIXELS : 1;
    return 0;
}

/* Grows the memory to twice its size, at most to bytes. */
static int grow_buffer(const struct idx *idx, uint8_t **buffer, int64_t *room,
                       int64_t bytes)
{
    int64_t more = *room == 0 ? CHUNK : 2 * *room;

    more = more < bytes ? more : bytes;
    uint8_t *grown = realloc(*buffer, (size_t)more);
    if (!grown)
        return problem_set("%s: no memory for %lld bytes", idx->path,
                           (long long)bytes);
    *buffer = grown;
    *room = more;
    return 0;
}

/* Reads all elements into memory that grows as they arrive. The caller frees
 * items, also on failure. */
static int read_items(struct idx *idx, uint8_t **items)
{
    int64_t bytes = idx->items * idx->item_bytes;
    int64_t room = 0;
    int64_t got = 0;

    while (got < bytes) {
        if (got == room && grow_buffer(idx, items, &room, bytes) < 0)
            return PROBLEM;
        int64_t want = room - got < CHUNK ? room - got : CHUNK;
        int n = gzread(idx->file, *items + got, (unsigned)want);
        if (n <= 0)
            return explain_read(idx, bytes, got);
        got += n;
    }
    return 0;
}

/* Checks that nothing follows the elements. */
static int check_end(struct idx *idx)
{
    uint8_t byte;
    int64_t bytes = idx->items * idx->item_bytes;
    int n = gzread(idx->file, &byte, 1);
    int code = Z_OK;

    if (n > 0)
        return problem_set("%s: goes on after the %lld items it announces",
                           idx->path, (long long)idx->items);
    gzerror(idx->file, &code);
    /* A .gz may end in the middle of its checksum. */
    if (n < 0 || code == Z_BUF_ERROR)
        return explain_read(idx, bytes, bytes);
    return 0;
}

/* Reads a whole file. dims 3: images, 1: labels. */
static int load_file(struct idx *idx, const char *directory, const char *part,
                     int dims, uint8_t **items)
{
    const char *kind = dims == 3 ? "images" : "labels";

    if (find_file(directory, part, kind, dims, idx->path) < 0)
        return PROBLEM;
    int fd = disk__open_regular(idx->path, O_RDONLY);
    if (fd < 0)
        return problem_set("%s: %s", idx->path, disk__text(fd));
    idx->file = gzdopen(fd, "rb"); /* zlib, which closes the file */
    if (!idx->file) {
        close(fd);
        return problem_set("%s: out of memory", idx->path);
    }
    errno = 0;
    *items = NULL;
    int status = read_header(idx, dims);
    if (status == 0)
        status = read_items(idx, items);
    if (status == 0)
        status = check_end(idx);
    gzclose(idx->file);
    if (status < 0) {
        free(*items);
        *items = NULL;
    }
    return status;
}

static int check_pair(const struct idx *pixels, const struct idx *labels,
                      const uint8_t *values, int64_t limit)
{
    if (pixels->items != labels->items)
        return problem_set("%s: %lld labels, but %s holds %lld images",
                           labels->path, (long long)labels->items, pixels->path,
                           (long long)pixels->items);
    if (limit > pixels->items)
        return problem_set("%s: %lld images, fewer than the %lld asked for",
                           pixels->path, (long long)pixels->items,
                           (long long)limit);
    for (int64_t i = 0; i < labels->items; i++)
        if (values[i] >= CLASSES)
            return problem_set("%s: label %d of item %lld, expected 0 to 9",
                               labels->path, values[i], (long long)i);
    return 0;
}

int idx_load(const char *directory, const char *part, int64_t limit,
             struct images *images)
{
    struct idx pixels = {0};
    struct idx labels = {0};
    struct images loaded = {0};

    int status = load_file(&pixels, directory, part, 3, &loaded.pixels);
    if (status == 0)
        status = load_file(&labels, directory, part, 1, &loaded.labels);
    if (status == 0 && loaded.labels)
        status = check_pair(&pixels, &labels, loaded.labels, limit);
    if (status < 0) {
        images_fini(&loaded);
        return status;
    }
    loaded.count = limit > 0 ? limit : pixels.items;
    *images = loaded;
    return 0;
}
