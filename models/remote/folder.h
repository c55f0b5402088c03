/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - a folder of files that live as long as a training, which nobody
 * else can read, below TMPDIR or /tmp. That of a process that was killed stays,
 * and the next to make one removes it.
 */
#ifndef MODELS_REMOTE_FOLDER_H
#define MODELS_REMOTE_FOLDER_H

enum { FOLDER_BYTES = 256 };

struct remote_folder {
    char path[FOLDER_BYTES]; /* "": there is none */
    int lock; /* owned; open and locked as long as somebody needs the folder */
};

/* Makes one. PROBLEM with the text kept; then there is nothing to remove. */
int folder_make(struct remote_folder *folder);

/* Removes it with the files in it. One that is zeroed or removed is accepted.
 */
void folder_remove(struct remote_folder *folder);

#endif
