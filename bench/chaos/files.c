/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/files.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int files_make_folder(char *path, size_t size)
{
    const char *parent = getenv("TMPDIR");
    int length = snprintf(path, size, "%s/chaos.XXXXXX",
                          parent && *parent ? parent : "/tmp");

    if (length < 0 || (size_t)length >= size) {
        *path = '\0';
        errno = ENAMETOOLONG;
        return -1;
    }
    if (mkdtemp(path))
        return 0;
    *path = '\0';
    return -1;
}

void files_remove_folder(char *path,
                         void (*found)(void *context, const char *path),
                         void *context)
{
    char *paths[] = {path, NULL};
    FTS *walk =
        *path ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
    FTSENT *entry;

    while (walk && (entry = fts_read(walk))) {
        if (entry->fts_info == FTS_D)
            continue;
        if (entry->fts_info == FTS_DP) {
            rmdir(entry->fts_accpath);
            continue;
        }
        found(context, entry->fts_path);
        unlink(entry->fts_accpath);
    }
    if (walk)
        fts_close(walk);
}
