/* SPDX-License-Identifier: Apache-2.0 */
#include "common/command.h"

#include "common/agree.h"
#include "common/interrupt.h"
#include "common/outfile.h"
#include "common/problem.h"
#include "common/profile.h"

#include <errno.h>
#include <hvd.h>
#include <string.h>
#include <unistd.h>

void command_complain(const char *program, int status, int rank, int size)
{
    char host[65] = "?";

    if (status == PROBLEM_ELSEWHERE || (status == PROBLEM_EVERYWHERE && rank))
        return;
    gethostname(host, sizeof host - 1);
    if (size > 1 && status == PROBLEM)
        fprintf(stderr, "%s: rank %d (%s): %s\n", program, rank, host,
                problem_text());
    else
        fprintf(stderr, "%s: %s\n", program, problem_text());
}

int command_settle(enum options_program program, int outcome)
{
    int rank = progress_launch_rank();

    if (outcome < 0 && rank > 0) {
        /* mpirun ends all ranks as soon as one fails; let rank 0 speak. */
        usleep(500000);
        return OPTIONS_EXIT_USAGE;
    }
    if (outcome < 0) {
        command_complain(options_name(program), PROBLEM, 0, 1);
        return OPTIONS_EXIT_USAGE;
    }
    if (rank > 0)
        return 0;
    if (outcome == OPTIONS_HELP)
        options_help(program, stdout);
    else
        printf("%s %s\n", options_name(program), HVD_VERSION_STRING);
    return fflush(stdout) != 0;
}

int command_flush(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return problem_set("standard output: %s", strerror(errno));
}

int command_check_files(const struct command *command)
{
    const struct options *o = &command->options;
    int status = 0;

    if (command->rank == 0) {
        status = outfile_check("--summary", o->summary);
        if (status == 0)
            status = outfile_check("--save-weights", o->weights);
        if (status == 0)
            status = profile_check(o->profile);
    }
    return agree(status);
}

int command_write_files(const struct command *command,
                        const struct joint *joint)
{
    const struct options *o = &command->options;
    int status = 0;

    if (command->rank != 0)
        return 0;
    if (o->weights)
        status = joint_save(joint, o->weights);
    if (status == 0)
        status = joint_profile(joint, o->profile, options_name(o->program));
    return status;
}

/* On a started library, and up to its end. */
static int run_started(struct command *command,
                       int (*run)(struct command *command))
{
    struct options *o = &command->options;
    int status;

    command->rank = hvd_rank();
    command->size = hvd_size();
    if (o->learning_rate == 0)
        o->learning_rate = options_default_rate(o, command->size);
    progress_init(&command->progress, stdout, command->rank == 0);
    status = run(command);
    progress_clear(&command->progress);
    if (status == 0)
        status = agree(command_flush());
    if (status < 0)
        command_complain(options_name(o->program), status, command->rank,
                         command->size);
    hvd_shutdown();
    return status < 0;
}

int command_main(enum options_program program, int argc, char **argv,
                 int (*run)(struct command *command))
{
    struct command command = {0};

    interrupt_install();
    int status = options_parse(program, &command.options, argc, argv);
    if (status != OPTIONS_RUN)
        return command_settle(program, status);
    if (hvd_init() < 0) {
        problem_set("hvd: %s", hvd_last_error());
        command_complain(options_name(program), PROBLEM_EVERYWHERE,
                         progress_launch_rank(), 1);
        return 1;
    }
    return run_started(&command, run);
}
