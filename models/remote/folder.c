/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/folder.h"

#include "output/problem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define NAME "hvd-remote."
static const char lock_name[] = "lock";

static const char *base_folder(void)
{
    const char *base = getenv("TMPDIR");

    return base && *base ? base : "/tmp";
}

/* Removes the folder and what is in it, but no folder below it. */
static void remove_all(const char *path)
{
    const struct dirent *entry;
    DIR *folder = opendir(path);

    while (folder && (entry = readdir(folder)))
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

/* Returns whether nobody needs a folder any more: it is this user's and has a
 * lock that nobody holds. One without a lock is just being made. */
static bool is_left_behind(const char *path)
{
    char name[FOLDER_BYTES + 16];
    bool is_free;
    int fd;

    snprintf(name, sizeof name, "%s/%s", path, lock_name);
    fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    is_free = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return is_free;
}

static void sweep(const char *base)
{
    const struct dirent *entry;
    DIR *folder = opendir(base);

    while (folder && (entry = readdir(folder))) {
        char path[FOLDER_BYTES];

        if (strncmp(entry->d_name, NAME, strlen(NAME)) == 0 &&
            snprintf(path, sizeof path, "%s/%s", base, entry->d_name) <
                (int)sizeof path &&
            is_left_behind(path))
            remove_all(path);
    }
    if (folder)
        closedir(folder);
}

static int lock_folder(struct remote_folder *folder)
{
    char name[FOLDER_BYTES + 16], final[FOLDER_BYTES + 16];

    snprintf(name, sizeof name, "%s/%s.new", folder->path, lock_name);
    folder->lock = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (folder->lock < 0 || flock(folder->lock, LOCK_EX | LOCK_NB) != 0)
        return -1;
    /* It has its name once it is locked. */
    snprintf(final, sizeof final, "%s/%s", folder->path, lock_name);
    return rename(name, final);
}

int folder_make(struct remote_folder *folder)
{
    const char *base = base_folder();

    *folder = (struct remote_folder){.lock = -1};
    sweep(base);
    if (snprintf(folder->path, FOLDER_BYTES, "%s/" NAME "XXXXXX", base) >=
            FOLDER_BYTES ||
        !mkdtemp(folder->path))
        *folder->path = '\0';
    else if (lock_folder(folder) == 0)
        return 0;
    problem_set("no folder can be made in %s: %s", base, strerror(errno));
    folder_remove(folder);
    return PROBLEM;
}

void folder_remove(struct remote_folder *folder)
{
    if (*folder->path == '\0')
        return;
    remove_all(folder->path);
    if (folder->lock >= 0)
        close(folder->lock);
    *folder = (struct remote_folder){.lock = -1};
}
