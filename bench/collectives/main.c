/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - hvd-bench: runs a subcommand, or measures a collective.
 */
#include "collectives/subcommands.h"

#include <string.h>

static const struct {
    const char *name;
    int (*main)(int argc, char **argv);
} subcommands[] = {
    {"latency", latency_main},
    {"idle", idle_main},
    {"gradients", gradients_main},
    {"overlap", overlap_main},
    {"hosts", hosts_main},
    {"cluster", cluster_main},
    {"project", project_main},
    {"commit", commit_main},
    {"setting", setting_main},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    for (int i = 0; argc > 1 && subcommands[i].name; i++)
        if (strcmp(argv[1], subcommands[i].name) == 0)
            return subcommands[i].main(argc - 1, argv + 1);
    return collectives_main(argc, argv);
}
