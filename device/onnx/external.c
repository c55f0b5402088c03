/* SPDX-License-Identifier: Apache-2.0 */
/*
 * external.c - reads tensors whose elements lie in another file.
 *
 * A model may come from anywhere, so the location that it names leads nowhere
 * but to a regular file below the model's own folder: it has no "..", is not
 * absolute, and no part of it is a link; nor has the file a second name, by
 * which it could be one from elsewhere. Each part is opened in the folder that
 * was opened before, so nobody can replace one in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "onnx/elements.h"

struct place {
    const char *location;
    int64_t offset, length; /* length -1: not given */
};

static bool parse_decimal(const char *text, int64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoll(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && !*end && errno == 0;
}

static int refuse_place(const struct ipu__onnx_file *file,
                        const struct ipu__onnx_tensor *tensor,
                        const char *location, const char *why)
{
    return ipu__fail(IPU_ERR_DATA, "%s: tensor '%s' lies in '%s', %s",
                     file->path, tensor->name, location, why);
}

/* Finds the place among the entries of a tensor. */
static int find_place(const struct ipu__onnx_file *file,
                      const struct ipu__onnx_tensor *tensor,
                      struct place *place)
{
    *place = (struct place){"", 0, -1};
    for (size_t i = 0; i < tensor->external.count; i++) {
        const struct ipu__onnx_entry *entry = &tensor->external.at[i];
        bool good = true;

        if (!strcmp(entry->key, "location"))
            place->location = entry->value;
        else if (!strcmp(entry->key, "offset"))
            good = parse_decimal(entry->value, &place->offset);
        else if (!strcmp(entry->key, "length"))
            good = parse_decimal(entry->value, &place->length);
        if (!good)
            return ipu__fail(
                IPU_ERR_DATA, "%s: tensor '%s': the %s '%s' is no number",
                file->path, tensor->name, entry->key, entry->value);
    }
    return IPU_OK;
}

/* Opens the next part of a path, in a folder, which is closed. */
static int open_part(int folder, const char *name, bool last)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    int fd = openat(folder, name, last ? flags : flags | O_DIRECTORY);
    int error = errno;

    close(folder);
    errno = error;
    return fd;
}

/* Opens a relative path below a folder; returns -1, with errno set, if that is
 * not allowed or not possible. */
static int open_below(int folder, char *path)
{
    char *rest = path, *part;

    while (folder >= 0 && (part = strsep(&rest, "/"))) {
        if (!*part || !strcmp(part, ".") || !strcmp(part, "..")) {
            close(folder);
            errno = EPERM;
            return -1;
        }
        folder = open_part(folder, part, rest == NULL);
    }
    return folder;
}

static int open_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder =
        slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    free(folder);
    return fd;
}

/* Returns a descriptor of the file, or a failure with the reason. */
static int open_place(const struct ipu__onnx_file *file,
                      const struct ipu__onnx_tensor *tensor,
                      const struct place *place)
{
    char *path = strdup(place->location);
    struct stat status;
    int fd;

    if (!path)
        return ipu__fail_memory(strlen(place->location));
    fd = open_below(open_folder(file->path), path);
    free(path);
    if (fd < 0 && (errno == EPERM || errno == ELOOP || errno == ENOTDIR))
        return refuse_place(
            file, tensor, place->location,
            "which is not allowed: a path below the model's folder, "
            "without links or \"..\", is");
    if (fd < 0)
        return refuse_place(
            file, tensor, place->location,
            "which cannot be opened: it must be there and readable");
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_nlink == 1)
        return fd;
    close(fd);
    return refuse_place(
        file, tensor, place->location,
        "which is not allowed: it is no regular file, or has several "
        "names (hard links)");
}

static int read_part(const struct ipu__onnx_file *file,
                     const struct ipu__onnx_tensor *tensor, int fd,
                     const struct place *place, unsigned char *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, to + done, bytes - done,
                          (off_t)(place->offset + (int64_t)done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return refuse_place(file, tensor, place->location,
                                n < 0 ? "which cannot be read"
                                      : "which is too short");
        done += (size_t)n;
    }
    return IPU_OK;
}

/* Notes bytes of other files. Any number of tensors may lie in the same ones,
 * but not more than memory has room for. */
static int count_outside(struct ipu__onnx_file *file,
                         const struct ipu__onnx_tensor *tensor,
                         const struct place *place, size_t bytes)
{
    size_t have =
        (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGE_SIZE);

    if (bytes > have - file->outside_bytes)
        return refuse_place(file, tensor, place->location,
                            "and with the tensors before it takes more memory "
                            "than there is");
    file->outside_bytes += bytes;
    return IPU_OK;
}

/* Checks, before memory is allocated, that the file has these bytes. */
static int check_part(const struct ipu__onnx_file *file,
                      const struct ipu__onnx_tensor *tensor, int fd,
                      const struct place *place, size_t bytes)
{
    struct stat status;

    if (place->length >= 0 && (uint64_t)place->length != bytes)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: tensor '%s' has %" PRId64 " bytes in '%s', and "
                         "its shape asks for %zu",
                         file->path, tensor->name, place->length,
                         place->location, bytes);
    if (fstat(fd, &status) < 0 || place->offset > status.st_size ||
        (uint64_t)(status.st_size - place->offset) < bytes)
        return refuse_place(file, tensor, place->location,
                            "which is too short");
    return IPU_OK;
}

int ipu__onnx_external(struct ipu__onnx_file *file,
                       const struct ipu__onnx_tensor *tensor, size_t bytes,
                       struct ipu__wire *raw)
{
    struct place place;
    unsigned char *to;
    int fd, status;

    IPU_TRY(find_place(file, tensor, &place));
    fd = open_place(file, tensor, &place);
    if (fd < 0)
        return fd;
    status = check_part(file, tensor, fd, &place, bytes);
    if (status >= 0)
        status = count_outside(file, tensor, &place, bytes);
    to = status < 0 ? NULL : ipu__onnx_keep_outside(file, bytes);
    if (status >= 0)
        status =
            to ? read_part(file, tensor, fd, &place, to, bytes) : IPU_ERR_DATA;
    close(fd);
    raw->at = to;
    raw->end = to ? to + bytes : NULL;
    return status;
}
