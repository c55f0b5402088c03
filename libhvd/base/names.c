/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/status.h"

int hvd__names_init(struct hvd__names *names, size_t most)
{
    size_t nplaces = 2;

    while (nplaces < 2 * most)
        nplaces *= 2;
    names->places = calloc(nplaces, sizeof *names->places);
    names->nplaces = nplaces;
    if (!names->places)
        return hvd__fail_memory(nplaces * sizeof *names->places);
    return HVD_OK;
}

void hvd__names_fini(struct hvd__names *names)
{
    free(names->places);
    *names = (struct hvd__names){0};
}

/* A name is stored at the place that its fingerprint gives or, if that is
 * taken, at the next free one. */
bool hvd__names_add(struct hvd__names *names, const char *name)
{
    size_t mask = names->nplaces - 1;
    size_t i = hvd__fingerprint(0, name, strlen(name)) & mask;

    for (; names->places[i]; i = (i + 1) & mask)
        if (strcmp(names->places[i], name) == 0)
            return false;
    names->places[i] = name;
    return true;
}
