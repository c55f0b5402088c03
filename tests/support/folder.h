/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - a temporary folder, and files as bytes or text, for tests of
 * files.
 */
#ifndef HVD_TESTS_FOLDER_H
#define HVD_TESTS_FOLDER_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"

static char folder[256];

static inline void folder_make(void)
{
    const char *base = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%s/hvd-test.XXXXXX", base ? base : "/tmp");
    ck_assert(mkdtemp(folder) != NULL);
}

/* Makes the folder, and makes it the working directory. */
static inline void folder_enter(void)
{
    folder_make();
    ck_assert_int_eq(chdir(folder), 0);
}

static inline void folder_remove(void)
{
    char command[sizeof folder + 16];

    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

/* Returns a path in the folder. It is valid for the next three calls. */
static inline const char *in_folder(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof *paths, "%s/%s", folder, name);
    return path;
}

/* Returns the number of a directory's entries; a temporary file that was left
 * behind would be one. */
static inline int directory_entries(const char *path)
{
    DIR *directory = opendir(path);
    int n = 0;

    ck_assert_ptr_nonnull(directory);
    while (readdir(directory))
        n++;
    closedir(directory);
    return n - 2; /* . and .. */
}

struct file_bytes {
    unsigned char *data; /* owned */
    size_t count;
};

static inline struct file_bytes file_read(const char *path)
{
    struct file_bytes b = {NULL, 0};
    FILE *file = fopen(path, "rb");
    long size;

    ck_assert_msg(file != NULL, "%s is not there", path);
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    ck_assert_int_ge(size, 0);
    rewind(file);
    b.count = (size_t)size;
    b.data = malloc(b.count + 1);
    ck_assert(fread(b.data, 1, b.count, file) == b.count);
    fclose(file);
    return b;
}

/* Returns a file of less than 64 KiB as a string, until the next call. */
static inline const char *file_text(const char *path)
{
    static char text[1 << 16];
    struct file_bytes b = file_read(path);

    ck_assert_uint_lt(b.count, sizeof text);
    memcpy(text, b.data, b.count);
    text[b.count] = '\0';
    free(b.data);
    return text;
}

/* Replaces the file: to empty the old one would wait for the disk. */
static inline void file_write(const char *path, const void *bytes, size_t count)
{
    FILE *file;

    unlink(path);
    file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert(fwrite(bytes, 1, count, file) == count);
    ck_assert_int_eq(fclose(file), 0);
}

static inline void file_write_text(const char *path, const char *text)
{
    file_write(path, text, strlen(text));
}

/* Calls check with the file cut before each of its bytes, and then with each
 * bit of its first bytes flipped. The file is whole again afterwards. */
static inline void file_damage(const char *path, size_t bytes,
                               void (*check)(bool is_cut))
{
    struct file_bytes whole = file_read(path);

    for (size_t end = 0; end < whole.count; end++) {
        file_write(path, whole.data, end);
        check(true);
    }
    for (size_t bit = 0; bit < 8 * bytes && bit < 8 * whole.count; bit++) {
        whole.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        file_write(path, whole.data, whole.count);
        check(false);
        whole.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    file_write(path, whole.data, whole.count);
    free(whole.data);
}

#endif
