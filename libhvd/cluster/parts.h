/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - what the files of this room share. Its door is hvd_cluster.h. */
#ifndef HVD_CLUSTER_PARTS_H
#define HVD_CLUSTER_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/names.h"
#include "base/text.h"
#include "hvd_cluster.h"

/* The size of a canonical address with its NUL: brackets, colon and port are
 * eight characters. */
enum { HVD__ADDRESS_SIZE = HVD_CLUSTER_MAX_HOST + 9 };

/* The tasks of a role. */
struct hvd__tasks {
    char **addresses; /* owned, and so is each */
    int32_t count, room;
};

struct hvd_cluster {
    struct hvd__tasks tasks[HVD_NUM_ROLES]; /* by role */
    struct hvd__names names; /* all addresses, borrowed from tasks */
    int32_t count;           /* of all tasks */
    int32_t names_room;      /* how many addresses names has room for */
    size_t bytes;            /* at least those of the texts that it makes */
    bool servers_have_ranks;
    bool has_task;
    hvd_role role; /* of this process */
    int32_t index;
};

/* The files of this room write the reason of a refusal to `why`, and the
 * function that knows where the mistake stands makes an error of it. */

/* Writes the canonical form of an address. Returns false, with the reason, if
 * there is none. */
bool hvd__address_read(const char *given, char canonical[HVD__ADDRESS_SIZE],
                       struct hvd__text *why);

/* Returns how many bytes of a text an error message quotes, whole characters of
 * UTF-8; for the precision of %s. */
int hvd__quoted(const char *text);

/* Returns the role of a name; HVD_ERR_ARGUMENT, with the reason. */
int hvd__role_find(const char *name, struct hvd__text *why);

/* Adds a task. Returns its index; HVD_ERR_ARGUMENT, with the reason; or
 * HVD_ERR_MEMORY, which is this thread's last error already. */
int hvd__cluster_insert(hvd_cluster *cluster, hvd_role role,
                        const char *address, struct hvd__text *why);

/* Returns whether a process may be this task; if not, gives the reason. */
bool hvd__cluster_may_be(const hvd_cluster *cluster, hvd_role role,
                         int64_t index, struct hvd__text *why);

/* ------------------------------------------------------- places in the JSON */

/* A value in the text: outer.inner[index]. NULL and -1: there is no such
 * step. */
struct hvd__json_place {
    const char *outer, *inner;
    int64_t index;
};

/* Finds where a value begins, in a text that is known to be JSON. Lines and
 * columns count characters, from 1. Returns false if it is not found, as when a
 * key is written with escapes. */
bool hvd__place_find(const char *text, size_t bytes,
                     struct hvd__json_place place, int *line, int *column);

/* A text and its name for error messages. Both are borrowed. */
struct hvd__source {
    const char *name, *text;
    size_t bytes;
};

/* Reads a text; the public functions say how. */
int hvd__cluster_read(const struct hvd__source *source, int32_t flags,
                      hvd_cluster **cluster);

#endif
