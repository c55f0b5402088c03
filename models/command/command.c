/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c - the begin and the end of a training program: libhvd is started
 * after the command line was read, and shut down after the last collective
 * call. A failure is printed by the rank that its constant names (problem.h).
 * Called by training_run.c and by pipelined.
 */
#include "command/command.h"

#include "command/interrupt.h"
#include "output/outfile.h"
#include "output/problem.h"
#include "output/profile.h"
#include "trainer/agree.h"

#include <errno.h>
#include <hvd.h>
#include <string.h>
#include <unistd.h>

/* Prints the line of a failure on stderr, if this rank is to report it. */
static void print_failure(const struct command *command, int status)
{
    char host[65] = "?", prefix[160];

    if (status == PROBLEM_ELSEWHERE ||
        (status == PROBLEM_EVERYWHERE && command->rank))
        return;
    gethostname(host, sizeof host - 1);
    if (command->size > 1 && status == PROBLEM)
        snprintf(prefix, sizeof prefix, "%s: rank %d (%s)", command->program,
                 command->rank, host);
    else
        snprintf(prefix, sizeof prefix, "%s", command->program);
    problem_print(stderr, prefix);
}

/* Handles help, version, and a wrong command line. Every rank sees the same and
 * needs no world for it; rank 0 prints. */
static int settle_line(const struct line *line, int outcome)
{
    if (progress_launch_rank() == 0)
        return line_settle(line, outcome);
    if (outcome >= 0)
        return 0;
    /* Rank 0 prints first: mpirun ends all ranks as soon as one fails. */
    usleep(500000);
    return LINE_EXIT_USAGE;
}

/* Returns PROBLEM if something that was printed could not be written. */
static int flush_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return problem_set("standard output: %s", strerror(errno));
}

int command_run(const struct line *line, int outcome, struct command *command,
                int (*run)(struct command *command))
{
    int status;

    command->program = line->program;
    if (outcome != LINE_RUN)
        return settle_line(line, outcome);
    interrupt_install();
    if (hvd_init() < 0) {
        problem_set("hvd: %s", hvd_last_error());
        command->rank = progress_launch_rank();
        print_failure(command, PROBLEM_EVERYWHERE);
        return 1;
    }
    command->rank = hvd_rank();
    command->size = hvd_size();
    progress_init(&command->progress, stdout, command->rank == 0);
    status = run(command);
    command->progress.ask = agree_ask;
    progress_clear(&command->progress);
    if (status == 0)
        status = agree(flush_output());
    if (status < 0)
        print_failure(command, status);
    hvd_shutdown();
    return status < 0;
}

static int check_files(const struct command *command)
{
    const struct options *o = command->options;
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

static struct agree_number real_number(const char *what, double value)
{
    struct agree_number bits = {.what = what};

    memcpy(&bits.value, &value, sizeof value);
    return bits;
}

/* Checks that all ranks have the same options: mpirun can start ranks with
 * different command lines, which would wait for each other for ever. */
static int agree_options(const struct options *o)
{
    const struct agree_number common[] = {
        {"--steps", o->steps},
        {"--replicas", o->replicas},
        {"--batch-size", o->batch_size},
        {"--seed", (int64_t)o->seed},
        {"--eval-every", o->eval_every},
        {"--check-every", o->check_every},
        {"--accumulate", o->optimizer.accumulate},
        {"--optimizer", o->optimizer.optimizer},
        real_number("--lr", o->learning_rate),
        real_number("--weight-decay", o->optimizer.weight_decay),
        real_number("--clip", o->optimizer.clip),
    };
    const struct agree_number of_mnist[] = {
        {"--epochs", o->epochs},
        {"--model", o->network},
    };
    const struct agree_number of_char_gpt[] = {
        {"--layers", o->gpt.layers},
        {"--heads", o->gpt.heads},
        {"--width", o->gpt.width},
        {"--context", o->gpt.context},
        {"--tie", o->gpt.tied},
        {"--dropout", (int64_t)(o->gpt.dropout * 1e15)},
        {"--warmup", o->warmup},
        {"--eval-windows", o->eval_windows},
        {"--stages", o->partition.stages},
        {"--schedule", o->partition.schedule},
        {"--recompute", o->partition.recompute},
    };
    int status = agree_numbers(common, sizeof common / sizeof *common);

    if (status)
        return status;
    return o->program == OPTIONS_MNIST
               ? agree_numbers(of_mnist, sizeof of_mnist / sizeof *of_mnist)
               : agree_numbers(of_char_gpt,
                               sizeof of_char_gpt / sizeof *of_char_gpt);
}

int command_prepare(struct command *command)
{
    int status;

    options_set_rate(command->options, command->size);
    status = agree_options(command->options);
    return status ? status : check_files(command);
}
