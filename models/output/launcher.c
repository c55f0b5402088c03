/* SPDX-License-Identifier: Apache-2.0 */
#include "output/launcher.h"

#include <stddef.h>
#include <stdlib.h>

/* The variables of a launcher; NULL: it has none for that. The first row whose
 * rank is set counts. */
static const struct {
    const char *rank, *size, *local_size;
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMIX_RANK", NULL, NULL},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"}, /* Hydra */
};

enum { NLAUNCHERS = sizeof launchers / sizeof *launchers };

static const char *value_of(const char *name)
{
    const char *value = name ? getenv(name) : NULL;

    return value && *value != '\0' ? value : NULL;
}

/* Returns the row of the launcher; NLAUNCHERS: there is none. */
static size_t find(void)
{
    size_t i = 0;

    while (i < NLAUNCHERS && !value_of(launchers[i].rank))
        i++;
    return i;
}

static int number_of(const char *name)
{
    const char *value = value_of(name);

    return value ? atoi(value) : 0;
}

bool launcher_present(void)
{
    return find() < NLAUNCHERS;
}

int launcher_rank(void)
{
    size_t i = find();

    return i < NLAUNCHERS ? number_of(launchers[i].rank) : 0;
}

int launcher_size(void)
{
    size_t i = find();

    return i < NLAUNCHERS ? number_of(launchers[i].size) : 0;
}

int launcher_local_size(void)
{
    size_t i = find();

    return i < NLAUNCHERS ? number_of(launchers[i].local_size) : 0;
}
