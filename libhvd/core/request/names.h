/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - a set of names, to find one that is there twice: in about as many
 * steps as there are names, however many.
 */
#ifndef HVD_CORE_NAMES_H
#define HVD_CORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed is none, and has room for none. */
struct hvd__names {
    const char **places; /* owned; a power of two, half of them free (NULL);
                            names are borrowed until fini */
    size_t nplaces;
};

/* Room for that many. HVD_ERR_MEMORY. */
int hvd__names_init(struct hvd__names *names, size_t most);
void hvd__names_fini(struct hvd__names *names);

/* Whether it was not there before. */
bool hvd__names_add(struct hvd__names *names, const char *name);

/* Check the name, and tell its bytes; it is not announced if it is bad, since
 * no other rank can have submitted it. */
int hvd__name_check(const char *name);

#endif
