/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/subcommands.h"

#include "collectives/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int refuse_hosts(const char *what, const char *why)
{
    fprintf(stderr, "hvd-bench: hosts: %s%s\n", what, why);
    return STATUS_ERROR;
}

int hosts_main(int argc, char **argv)
{
    static const char script[] = "/hvd-bench-hosts";
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    char *slash;

    (void)argc;
    if (getenv("OMPI_COMM_WORLD_SIZE"))
        return refuse_hosts(
            "start it without mpirun: it starts the ranks itself", "");
    path[length > 0 ? length : 0] = '\0';
    slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) + sizeof script > sizeof path)
        return refuse_hosts("where this program lies cannot be found", "");
    memcpy(slash, script, sizeof script);
    execv(path, argv);
    strcat(strcpy(path, ": "), strerror(errno));
    return refuse_hosts("the script hvd-bench-hosts beside this program", path);
}
