/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.c - the head of a file, and how a file gets to disk and back.
 *
 *     0   8  magic: not ASCII, and with line ends that a transfer as text
 *            would change
 *     8   4  0x01020304 in the writer's byte order, which is that of all
 *            numbers
 *    12   4  version of the format
 *    16   4  kind: a graph, an executable, variables
 *    20   4  0
 *    24   8  bytes of all that follows the head
 *    32  32  the target's name, padded with 0
 *    64   8  checksum of all of the above and of what follows
 *
 * A later version of the format may add members to structs (members.h), which
 * are 0 in files of an earlier version, and sections, which are then missing:
 * so this version reads all files up to its own.
 *
 * When a file is read, its real length is compared with the length in its head
 * before memory is allocated.
 */
#include "file/container.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "disk/disk.h"
#include "file/crc64.h"

/* Version 2 adds loops, queues, remote buffers, and the rounding of float16,
 * version 3 modules. */
enum { VERSION = 3 };

static const char magic[8] = "\x89IPU\r\n\x1a\n";

struct head {
    char magic[8];
    uint32_t order, version, kind, reserved;
    uint64_t bytes;
    char target[32];
    uint64_t checksum;
};

_Static_assert(sizeof(struct head) == 72, "the head has no gaps");

static const char *const kinds[] = {
    [IPU__FILE_GRAPH] = "a graph",
    [IPU__FILE_EXECUTABLE] = "an executable",
    [IPU__FILE_VARIABLES] = "variables",
};

static uint64_t checksum(const struct head *head, const void *data)
{
    uint64_t crc = ipu__crc64(0, head, offsetof(struct head, checksum));

    return ipu__crc64(crc, data, head->bytes);
}

/* ------------------------------------------------------------------ writing */

void ipu__file_begin(struct ipu__writer *writer)
{
    const struct head none = {{0}, 0, 0, 0, 0, 0, {0}, 0};

    ipu__put(writer, &none, sizeof none);
}

static int cannot(const char *what, const char *path, int status)
{
    return ipu__fail(IPU_ERR_DATA, "%s: cannot be %s: %s", path, what,
                     disk__text(status));
}

int ipu__file_write(const char *path, enum ipu__file_kind kind,
                    const char *target, struct ipu__writer *writer)
{
    struct head head = {.order = 0x01020304, .version = VERSION, .kind = kind};
    int status;

    if (writer->failed)
        return ipu__fail_memory(writer->bytes);
    memcpy(head.magic, magic, sizeof magic);
    head.bytes = writer->bytes - sizeof head;
    if (target)
        snprintf(head.target, sizeof head.target, "%s", target);
    head.checksum = checksum(&head, writer->data + sizeof head);
    memcpy(writer->data, &head, sizeof head);
    status = disk__replace(path, writer->data, writer->bytes,
                           DISK__SYNC | DISK__SWEEP);
    return status < 0 ? cannot("written", path, status) : IPU_OK;
}

/* ------------------------------------------------------------------ reading */

static int check_head(const char *path, enum ipu__file_kind kind,
                      const struct head *head)
{
    if (memcmp(head->magic, magic, sizeof magic) != 0)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: not a file of the device: it begins otherwise",
                         path);
    if (head->order == 0x04030201)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: written on a machine of the other byte order",
                         path);
    if (head->order != 0x01020304)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: damaged: no byte order is %08" PRIx32, path,
                         head->order);
    if (head->version < 1 || head->version > VERSION)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: format version %" PRIu32
                         ", and this library reads 1 to %d: %s",
                         path, head->version, VERSION,
                         head->version < 1 ? "none is before the first"
                                           : "a later one has written it");
    if (head->kind == kind)
        return IPU_OK;
    return ipu__fail(IPU_ERR_DATA, "%s: holds %s, not %s", path,
                     head->kind >= IPU__FILE_GRAPH &&
                             head->kind <= IPU__FILE_VARIABLES
                         ? kinds[head->kind]
                         : "what is unknown here",
                     kinds[kind]);
}

/* Reads as many bytes as there are: fewer than wanted at the end of the
 * file. */
static ssize_t read_all(int file, void *data, size_t wanted)
{
    size_t got = 0;

    while (got < wanted) {
        ssize_t n = read(file, (char *)data + got, wanted - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

/* Reads what follows the head, after checking that the file is as long as its
 * head says. */
static int read_contents(const char *path, int file, uint64_t size,
                         const struct head *head, unsigned char **memory)
{
    ssize_t got;

    if (head->bytes != size - sizeof *head)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: damaged: it has %" PRIu64
                         " bytes after its head, not %" PRIu64 ": %s",
                         path, size - sizeof *head, head->bytes,
                         size - sizeof *head < head->bytes ? "it is cut off"
                                                           : "some were added");
    *memory = malloc(head->bytes ? head->bytes : 1);
    if (!*memory)
        return ipu__fail_memory(head->bytes);
    got = read_all(file, *memory, head->bytes);
    if (got < 0)
        return cannot("read", path, -errno);
    if ((uint64_t)got != head->bytes)
        return ipu__fail(IPU_ERR_DATA, "%s: changed while it was read", path);
    if (checksum(head, *memory) != head->checksum)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: damaged: its checksum is not that of its "
                         "contents",
                         path);
    return IPU_OK;
}

static int read_file(const char *path, int file, enum ipu__file_kind kind,
                     struct head *head, unsigned char **memory)
{
    struct stat info;
    ssize_t got;

    if (fstat(file, &info) < 0)
        return cannot("read", path, -errno);
    got = read_all(file, head, sizeof *head);
    if (got < 0)
        return cannot("read", path, -errno);
    if ((size_t)got < sizeof *head)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: not a file of the device, or cut off: it has %zd "
                         "bytes, and a head has %zu",
                         path, got, sizeof *head);
    IPU_TRY(check_head(path, kind, head));
    return read_contents(path, file, (uint64_t)info.st_size, head, memory);
}

int ipu__file_read(const char *path, enum ipu__file_kind kind,
                   struct ipu__reader *reader, unsigned char **memory)
{
    struct head head;
    int file, status;

    *memory = NULL;
    file = disk__open_regular(path, O_RDONLY);
    if (file < 0)
        return cannot("read", path, file);
    status = read_file(path, file, kind, &head, memory);
    close(file);
    if (status < 0) {
        free(*memory);
        *memory = NULL;
        return status;
    }
    *reader = (struct ipu__reader){.path = path,
                                   .data = *memory,
                                   .bytes = head.bytes,
                                   .version = head.version};
    return IPU_OK;
}
