/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - names of requests: whether one is valid, and a set of them that
 * finds duplicates in about as many steps as there are names.
 */
#ifndef HVD_CORE_NAMES_H
#define HVD_CORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* A zeroed set is empty and has room for none. */
struct hvd__names {
    const char **places; /* owned; a power of two, half of them free (NULL);
                            names are borrowed until fini */
    size_t nplaces;
};

/* Makes room for that many. HVD_ERR_MEMORY. */
int hvd__names_init(struct hvd__names *names, size_t most);
void hvd__names_fini(struct hvd__names *names);

/* Adds a name. Returns false if it is there already. */
bool hvd__names_add(struct hvd__names *names, const char *name);

/* Checks a name and returns its bytes. A request with an invalid name is not
 * announced: no other rank can have submitted it. */
int hvd__name_check(const char *name);

#endif
