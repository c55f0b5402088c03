/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beside.c - the subcommands that are programs of their own, which lie beside
 * this one and take its place: hosts, a script that starts ranks; cluster,
 * which starts processes without MPI; and project, which is linked with the
 * insides of libhvd and needs no ranks.
 */
#include "collectives/subcommands.h"

#include "collectives/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int refuse(const char *subcommand, const char *what, const char *why)
{
    fprintf(stderr, "hvd-bench: %s: %s%s\n", subcommand, what, why);
    return STATUS_ERROR;
}

/* Becomes the program hvd-bench-SUBCOMMAND. Returns only if that fails. */
static int become(char **argv)
{
    char path[4096], program[64], what[128];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    char *slash;

    snprintf(program, sizeof program, "/hvd-bench-%s", argv[0]);
    path[length > 0 ? length : 0] = '\0';
    slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) + sizeof program > sizeof path)
        return refuse(argv[0], "where this program lies cannot be found", "");
    strcpy(slash, program);
    execv(path, argv);
    snprintf(what, sizeof what, "%s beside this program: ", program + 1);
    return refuse(argv[0], what, strerror(errno));
}

int hosts_main(int argc, char **argv)
{
    (void)argc;
    if (getenv("OMPI_COMM_WORLD_SIZE"))
        return refuse(
            argv[0], "start it without mpirun: it starts the ranks itself", "");
    return become(argv);
}

int cluster_main(int argc, char **argv)
{
    (void)argc;
    return become(argv);
}

int project_main(int argc, char **argv)
{
    (void)argc;
    return become(argv);
}
