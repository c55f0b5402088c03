/* SPDX-License-Identifier: Apache-2.0 */
#include "command/spawn.h"

#include "command/command.h"
#include "launch/launch.h"

struct spawned {
    struct command *command;
    int (*work)(struct command *command);
};

/* In the worker: goes on as if a person had started it with TF_CONFIG. */
static int start(void *context)
{
    const struct spawned *spawned = context;
    struct options *options = spawned->command->options;

    options->spawn = 0;
    options->base_port = 0;
    return spawned->work(spawned->command);
}

int spawn_workers(struct command *command, int (*work)(struct command *command))
{
    struct spawned spawned = {command, work};

    return launch_run(&(struct launch){.program = command->program,
                                       .workers = command->options->spawn,
                                       .base_port = command->options->base_port,
                                       .start = start,
                                       .context = &spawned});
}
