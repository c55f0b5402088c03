/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - checks names of requests, and finds duplicates among n names in
 * about n steps.
 */
#ifndef HVD_CORE_NAMES_H
#define HVD_CORE_NAMES_H

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

/* Checks a name and returns its bytes. A request with an invalid name is not
 * announced: no other rank can have submitted it. */
int hvd__name_check(const char *name);

#endif
