/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - a set of names, which finds duplicates among n names in about n
 * steps.
 */
#ifndef HVD_BASE_NAMES_H
#define HVD_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* A set of names. A zeroed set is empty and has no room. */
struct hvd__names {
    const char **places; /* owned; a power of two, at least half of them free
                            (NULL); names are borrowed until fini */
    size_t nplaces;
};

/* Makes room for up to most names. Fails with HVD_ERR_MEMORY. */
int hvd__names_init(struct hvd__names *names, size_t most);
void hvd__names_fini(struct hvd__names *names);

/* Adds a name. Returns false if the set already holds it. */
bool hvd__names_add(struct hvd__names *names, const char *name);

#endif
