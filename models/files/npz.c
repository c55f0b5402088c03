/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npz.c - a zip file ends with a record that leads to the central directory,
 * whose entries lead to the members. Sizes and offsets of 64 bits stand in an
 * extra field where those of 32 have all bits set; numpy writes them always,
 * and so does npz_save.
 */
#include "files/npy.h"

#include "disk/disk.h"
#include "output/problem.h"

#include <errno.h>
#include <fcntl.h>
#include <hvd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define ZLIB_CONST
#include <zlib.h>

enum {
    LOCAL = 0x04034b50, /* signatures, and bytes of the fixed parts */
    LOCAL_BYTES = 30,
    CENTRAL = 0x02014b50,
    CENTRAL_BYTES = 46,
    END = 0x06054b50,
    END_BYTES = 22,
    END64 = 0x06064b50,
    END64_BYTES = 56,
    LOCATOR = 0x07064b50,
    LOCATOR_BYTES = 20,
    VERSION = 45,
    STORED = 0,
    DEFLATED = 8,
    MOST_RATIO = 1040 /* no deflated byte becomes more */
};

/* ------------------------------------------------------------------ reading */

static int refuse(const struct npz *z, const char *what)
{
    return problem_fail(HVD_ERR_FILE, "%s: %s", z->path, what);
}

static uint64_t get(const unsigned char *at, int bytes)
{
    uint64_t value = 0;

    while (bytes-- > 0)
        value = value << 8 | at[bytes];
    return value;
}

/* Returns so many bytes of the file from an offset on; NULL: it has none. */
static const unsigned char *at(const struct npz *z, uint64_t offset,
                               uint64_t bytes)
{
    return offset <= z->length && bytes <= z->length - offset ? z->map + offset
                                                              : NULL;
}

/* Finds the central directory. */
static int find_directory(const struct npz *z, uint64_t *offset,
                          uint64_t *count)
{
    const uint64_t length = z->length;
    const uint64_t least = length > 65557 ? length - 65557 : 0;
    uint64_t end = length < END_BYTES ? 0 : length - END_BYTES;
    const unsigned char *record, *locator;

    while (end > least && get(z->map + end, 4) != END)
        end--;
    record = at(z, end, END_BYTES);
    if (!record || get(record, 4) != END)
        return refuse(z, "this is no zip file: is it truncated?");
    *count = get(record + 10, 2);
    *offset = get(record + 16, 4);
    locator = end >= LOCATOR_BYTES ? z->map + end - LOCATOR_BYTES : NULL;
    if (locator && get(locator, 4) == LOCATOR) {
        record = at(z, get(locator + 8, 8), END64_BYTES);
        if (!record || get(record, 4) != END64)
            return refuse(z, "its directory is not where it says");
        *count = get(record + 32, 8);
        *offset = get(record + 48, 8);
    }
    return *count <= length / CENTRAL_BYTES
               ? 0
               : refuse(z, "its directory is longer than it");
}

/* A member, as the directory has it. */
struct member {
    char name[512]; /* without .npy */
    bool is_array;
    unsigned method;
    uint32_t crc;
    uint64_t packed, bytes, local;
    const unsigned char *data; /* [packed] */
};

/* Reads what is of 64 bits from the extra field. */
static void read_extra(const unsigned char *extra, size_t length,
                       struct member *m)
{
    uint64_t *const wide[] = {&m->bytes, &m->packed, &m->local};

    while (length >= 4) {
        const size_t n = get(extra + 2, 2);
        size_t used = 4;

        if (n > length - 4)
            return;
        for (int i = 0; get(extra, 2) == 1 && i < 3; i++)
            if (*wide[i] == UINT32_MAX && used + 8 <= n + 4) {
                *wide[i] = get(extra + used, 8);
                used += 8;
            }
        extra += n + 4;
        length -= n + 4;
    }
}

/* Reads an entry of the directory, and goes on to the next. */
static int read_member(const struct npz *z, uint64_t *offset, struct member *m)
{
    const unsigned char *e = at(z, *offset, CENTRAL_BYTES), *local;
    size_t name = 0, extra = 0, all = 0;

    if (e) {
        name = get(e + 28, 2);
        extra = get(e + 30, 2);
        all = CENTRAL_BYTES + name + extra + get(e + 32, 2);
    }
    if (!e || get(e, 4) != CENTRAL || !at(z, *offset, all))
        return refuse(z, "its directory is damaged");
    m->method = (unsigned)get(e + 10, 2);
    m->crc = (uint32_t)get(e + 16, 4);
    m->packed = get(e + 20, 4);
    m->bytes = get(e + 24, 4);
    m->local = get(e + 42, 4);
    read_extra(e + CENTRAL_BYTES + name, extra, m);
    m->is_array = name > 4 && name < sizeof m->name &&
                  memcmp(e + CENTRAL_BYTES + name - 4, ".npy", 4) == 0;
    snprintf(m->name, sizeof m->name, "%.*s", m->is_array ? (int)name - 4 : 0,
             (const char *)e + CENTRAL_BYTES);
    *offset += all;
    local = at(z, m->local, LOCAL_BYTES);
    if (!local || get(local, 4) != LOCAL || get(e + 8, 2) & 1)
        return refuse(z, "a member is not where its directory says, or is "
                         "encrypted");
    m->data =
        at(z, m->local + LOCAL_BYTES + get(local + 26, 2) + get(local + 28, 2),
           m->packed);
    if (!m->data || (m->method == STORED && m->packed != m->bytes) ||
        m->bytes / MOST_RATIO > m->packed)
        return refuse(z, "a member has fewer bytes than its directory says: is "
                         "it truncated?");
    return 0;
}

static bool inflate_all(const struct member *m, unsigned char *out)
{
    z_stream s = {.next_in = m->data, .next_out = out};
    uint64_t in = m->packed, room = m->bytes;
    int status = inflateInit2(&s, -MAX_WBITS);

    while (status == Z_OK) {
        const uInt given = in < (1 << 30) ? (uInt)in : 1 << 30;
        const uInt wanted = room < (1 << 30) ? (uInt)room : 1 << 30;

        s.avail_in = given;
        s.avail_out = wanted;
        status = inflate(&s, Z_NO_FLUSH);
        in -= given - s.avail_in;
        room -= wanted - s.avail_out;
        if (status == Z_OK && given == s.avail_in && wanted == s.avail_out)
            break;
    }
    inflateEnd(&s);
    return status == Z_STREAM_END && room == 0;
}

/* Adds a member's array to the archive. Its copies lie in one block: shape,
 * name, what was inflated or turned round. */
static int add_array(struct npz *z, const struct member *m)
{
    const bool packed = m->method == DEFLATED;
    unsigned char *inflated = packed ? malloc(m->bytes + 1) : NULL, *block;
    const unsigned char *bytes = packed ? inflated : m->data;
    struct safetensors_tensor *t = &z->tensors[z->count];
    const size_t name = strlen(m->name) + 1;
    char where[1024];
    struct npy npy = {.ndim = 0};
    int status = 0;

    snprintf(where, sizeof where, "%.400s: '%.400s'", z->path, m->name);
    if (packed && !inflated)
        return problem_fail(HVD_ERR_MEMORY, "%s: out of memory", where);
    if (m->method != STORED && !packed)
        return problem_fail(HVD_ERR_FILE,
                            "%s: it is compressed by method %u, "
                            "which is not known here",
                            where, m->method);
    if ((packed && !inflate_all(m, inflated)) ||
        crc32_z(0, bytes, m->bytes) != m->crc)
        status = problem_fail(HVD_ERR_FILE, "%s: it is damaged", where);
    if (status == 0)
        status = npy_parse(where, bytes, m->bytes, m->bytes, &npy);
    if (status == 0) {
        const size_t shape = (size_t)npy.ndim * sizeof *npy.shape;
        const bool copies = packed || npy.swapped || npy.fortran;
        /* The elements come first, so that they are aligned. */
        const size_t first = copies ? (npy.bytes + 7) / 8 * 8 : 0;

        block = malloc(first + shape + name);
        if (block) {
            z->owned[z->count++] = block;
            memcpy(block + first, npy.shape, shape);
            memcpy(block + first + shape, m->name, name);
            if (copies)
                npy_copy(&npy, bytes + npy.first, block);
            *t = (struct safetensors_tensor){
                .name = (const char *)block + first + shape,
                .dtype = npy.dtype,
                .ndim = npy.ndim,
                .shape = (const int64_t *)(const void *)(block + first),
                .count = npy.count,
                .bytes = npy.bytes,
                .data = copies ? block : bytes + npy.first};
        } else {
            status = problem_fail(HVD_ERR_MEMORY, "%s: out of memory", where);
        }
    }
    free(inflated);
    return status;
}

static int map_file(struct npz *z)
{
    const int fd = disk__open_regular(z->path, O_RDONLY);
    struct stat info;
    void *map = MAP_FAILED;

    if (fd < 0)
        return refuse(z, disk__text(fd));
    if (fstat(fd, &info) == 0 && info.st_size > 0)
        map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return refuse(z, "this is no zip file: it is empty, or cannot be "
                         "mapped");
    z->map = map;
    z->length = (size_t)info.st_size;
    return 0;
}

int npz_open(const char *path, struct npz **npz)
{
    struct npz *z = calloc(1, sizeof *z);
    uint64_t offset = 0, count = 0;
    int status = 0;

    if (!z)
        return problem_fail(HVD_ERR_MEMORY, "%s: out of memory", path);
    z->path = strdup(path);
    if (!z->path)
        status = problem_fail(HVD_ERR_MEMORY, "%s: out of memory", path);
    if (status == 0)
        status = map_file(z);
    if (status == 0)
        status = find_directory(z, &offset, &count);
    if (status == 0) {
        z->tensors = calloc(count + 1, sizeof *z->tensors);
        z->owned = calloc(count + 1, sizeof *z->owned);
        if (!z->tensors || !z->owned)
            status = problem_fail(HVD_ERR_MEMORY, "%s: out of memory", path);
    }
    for (uint64_t i = 0; status == 0 && i < count; i++) {
        struct member m = {.is_array = false};

        status = read_member(z, &offset, &m);
        if (status == 0 && m.is_array)
            status = add_array(z, &m);
    }
    if (status == 0)
        *npz = z;
    else
        npz_close(z);
    return status;
}

void npz_close(struct npz *z)
{
    if (!z)
        return;
    for (int i = 0; i < z->count; i++)
        free(z->owned[i]);
    free(z->owned);
    free(z->tensors);
    if (z->map)
        munmap(z->map, z->length);
    free(z->path);
    free(z);
}

/* ------------------------------------------------------------------ writing */

/* Bytes that are put together before they are written. */
struct bytes {
    unsigned char at[128];
    size_t count;
};

static void put(struct bytes *b, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        b->at[b->count++] = (unsigned char)(value >> (8 * i));
}

/* Puts what the local header and the directory share. date: 1980-01-01. */
static void put_member(struct bytes *b, uint32_t crc, size_t name,
                       unsigned extra)
{
    put(b, 0x0800, 2); /* the name is UTF-8 */
    put(b, STORED, 2);
    put(b, 0, 2);
    put(b, 0x21, 2);
    put(b, crc, 4);
    put(b, UINT32_MAX, 4);
    put(b, UINT32_MAX, 4);
    put(b, name, 2);
    put(b, extra, 2);
}

/* The place of a member, for the directory. */
struct place {
    uint64_t offset, bytes;
    uint32_t crc;
};

static void write_name(struct disk__output *o, const char *name)
{
    disk__output_write(o, name, strlen(name));
    disk__output_write(o, ".npy", 4);
}

static int write_array(struct disk__output *o,
                       const struct safetensors_tensor *t, struct place *p)
{
    struct bytes b = {.count = 0};
    size_t length;
    char *header = npy_header(t, &length);

    if (!header)
        return HVD_ERR_UNSUPPORTED;
    p->offset = (uint64_t)o->bytes;
    p->bytes = length + t->bytes;
    p->crc = (uint32_t)crc32_z(0, (const unsigned char *)header, length);
    if (t->bytes > 0)
        p->crc = (uint32_t)crc32_z(p->crc, t->data, t->bytes);
    put(&b, LOCAL, 4);
    put(&b, VERSION, 2);
    put_member(&b, p->crc, strlen(t->name) + 4, 20);
    disk__output_write(o, b.at, b.count);
    write_name(o, t->name);
    b.count = 0;
    put(&b, 1, 2);
    put(&b, 16, 2);
    put(&b, p->bytes, 8);
    put(&b, p->bytes, 8);
    disk__output_write(o, b.at, b.count);
    disk__output_write(o, header, length);
    if (t->bytes > 0)
        disk__output_write(o, t->data, t->bytes);
    free(header);
    return 0;
}

static void write_entry(struct disk__output *o,
                        const struct safetensors_tensor *t,
                        const struct place *p)
{
    struct bytes b = {.count = 0};

    put(&b, CENTRAL, 4);
    put(&b, VERSION, 2);
    put(&b, VERSION, 2);
    put_member(&b, p->crc, strlen(t->name) + 4, 28);
    put(&b, 0, 2); /* comment, disk, attributes */
    put(&b, 0, 2);
    put(&b, 0, 2);
    put(&b, 0, 4);
    put(&b, UINT32_MAX, 4);
    disk__output_write(o, b.at, b.count);
    write_name(o, t->name);
    b.count = 0;
    put(&b, 1, 2);
    put(&b, 24, 2);
    put(&b, p->bytes, 8);
    put(&b, p->bytes, 8);
    put(&b, p->offset, 8);
    disk__output_write(o, b.at, b.count);
}

static void write_end(struct disk__output *o, uint64_t directory, int count)
{
    const uint64_t end = (uint64_t)o->bytes;
    struct bytes b = {.count = 0};

    put(&b, END64, 4);
    put(&b, END64_BYTES - 12, 8);
    put(&b, VERSION, 2);
    put(&b, VERSION, 2);
    put(&b, 0, 8); /* disks */
    put(&b, (uint64_t)count, 8);
    put(&b, (uint64_t)count, 8);
    put(&b, end - directory, 8);
    put(&b, directory, 8);
    put(&b, LOCATOR, 4);
    put(&b, 0, 4);
    put(&b, end, 8);
    put(&b, 1, 4);
    put(&b, END, 4);
    put(&b, 0, 4);
    put(&b, UINT32_MAX, 4); /* members: as there */
    put(&b, UINT32_MAX, 4);
    put(&b, UINT32_MAX, 4);
    put(&b, 0, 2);
    disk__output_write(o, b.at, b.count);
}

static int write_all(struct disk__output *o,
                     const struct safetensors_tensor *tensors, int count)
{
    struct place *places = calloc((size_t)count + 1, sizeof *places);
    uint64_t directory;
    int status = places ? 0 : HVD_ERR_MEMORY;

    if (!places)
        problem_fail(HVD_ERR_MEMORY, "out of memory for an archive");
    for (int i = 0; status == 0 && i < count; i++)
        status = write_array(o, &tensors[i], &places[i]);
    directory = (uint64_t)o->bytes;
    for (int i = 0; status == 0 && i < count; i++)
        write_entry(o, &tensors[i], &places[i]);
    if (status == 0)
        write_end(o, directory, count);
    free(places);
    return status;
}

int npz_save(const char *path, const struct safetensors_tensor *tensors,
             int count, int flags)
{
    struct disk__output output;
    int status = disk__output_open(&output, path, flags), failed;

    if (status == 0) {
        failed = write_all(&output, tensors, count);
        if (failed < 0) {
            disk__output_close(&output);
            return failed;
        }
        status = disk__output_commit(&output);
    }
    return status < 0 ? problem_fail(HVD_ERR_FILE, "%s: cannot be written: %s",
                                     path, disk__text(status))
                      : 0;
}
