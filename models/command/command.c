/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c - the begin and the end of a training program: libhvd is started
 * after the command line was read, and shut down after the last collective
 * call. A failure is printed by the rank that its constant names (problem.h).
 * Called by training_run.c and by pipelined.
 */
#include "command/command.h"

#include "command/interrupt.h"
#include "command/logs.h"
#include "command/spawn.h"
#include "command/world.h"
#include "output/launcher.h"
#include "output/outfile.h"
#include "output/problem.h"
#include "output/profile.h"
#include "trainer/agree.h"
#include "trainer/serving.h"
#include "trainer/strategy.h"

#include <errno.h>
#include <hvd.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
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

/* mpirun ends all ranks as soon as one fails. */
static void let_rank_0_print(void)
{
    usleep(500000);
}

/* Handles help, version, and a wrong command line. Every rank sees the same and
 * needs no world for it; rank 0 prints. */
static int settle_line(const struct line *line, int outcome)
{
    if (launcher_rank() == 0)
        return line_settle(line, outcome);
    if (outcome >= 0)
        return 0;
    let_rank_0_print();
    return LINE_EXIT_USAGE;
}

/* Reports that the world could not be started. Returns the exit status. */
static int fail_start(struct command *command, int status)
{
    command->rank = launcher_rank();
    command->size = launcher_size();
    if (status == PROBLEM_EVERYWHERE && command->rank > 0)
        let_rank_0_print();
    print_failure(command, status);
    return 1;
}

/* Says that the job has ended without this process, which waited to take the
 * place of a lost rank, or to join. */
static void tell_not_needed(const struct command *command)
{
    if (!command->quiet)
        printf("%s: not needed: %s\n", command->program, hvd_last_error());
}

/* Returns PROBLEM if something that was printed could not be written. */
static int flush_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return problem_set("standard output: %s", strerror(errno));
}

/* All ranks know then whether what was printed is there. Whoever is lost now is
 * not missed by an elastic training. */
static int end_output(const struct command *command)
{
    const int own = flush_output();
    const int status = command->serves ? own : agree(own);

    return own == 0 && command->options && command->options->elastic &&
                   hvd_check() == HVD_ERR_LOST
               ? 0
               : status;
}

static int ask_world(void *context)
{
    (void)context;
    return agree_ask();
}

/* Without memory there is none, and nothing is shown. */
static void make_progress(struct command *command, int rank)
{
    hvd_progress_options options;

    hvd_progress_options_init(&options, sizeof options);
    options.rank = rank;
    options.quiet = command->quiet;
    options.check = hvd_is_initialized() > 0 ? ask_world : NULL;
    hvd_progress_new(&options, &command->progress);
}

void command_show(struct command *command)
{
    hvd_progress_free(command->progress);
    command->progress = NULL;
    make_progress(command, command->rank);
}

/* Starts the world, which may wait for other processes. */
static int start_world(struct command *command)
{
    int status;

    make_progress(command, launcher_rank());
    hvd_progress_phase(command->progress, "starting", 0, 0, NULL);
    status = world_start(command->options, &command->role);
    hvd_progress_free(command->progress);
    command->progress = NULL;
    return status;
}

/* Does the run of one process. Returns the exit status. */
static int run_here(struct command *command)
{
    int status;

    interrupt_install();
    status = start_world(command);
    if (status < 0)
        return fail_start(command, status);
    if (status == WORLD_NOT_NEEDED) {
        tell_not_needed(command);
        return flush_output() < 0;
    }
    command->rank = hvd_rank();
    command->size = hvd_size();
    make_progress(command, command->rank);
    status = command->run(command);
    interrupt_wait();
    hvd_progress_free(command->progress);
    command->progress = NULL;
    if (status == 0)
        status = end_output(command);
    if (status < 0)
        print_failure(command, status);
    hvd_shutdown();
    if (status < 0 && command->is_temporary)
        return EX_TEMPFAIL;
    return status < 0;
}

int command_run(const struct line *line, int outcome, struct command *command)
{
    command->program = line->program;
    if (outcome != LINE_RUN)
        return settle_line(line, outcome);
    return command->options && command->options->spawn
               ? spawn_workers(command, run_here)
               : run_here(command);
}

static int check_files(struct command *command)
{
    const struct options *o = command->options;
    int status = 0;

    if (command->rank == 0) {
        status = outfile_check("--summary", o->summary);
        if (status == 0)
            status = outfile_check("--save-weights", o->weights);
        if (status == 0)
            status = outfile_check("--losses", o->losses);
        if (status == 0)
            status = profile_check(o->profile);
        if (status == 0)
            status = logs_open(command);
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
        {"--strategy", o->strategy},
        {"--servers", o->servers.count},
        {"--ps-mode", o->servers.mode},
        {"--backups", o->servers.backups},
        {"--staleness", o->servers.staleness},
        {"--ps-placement", o->servers.placement},
        {"--ps-part-bytes", o->servers.part_bytes},
        {"--variables-on-host", o->variables_on_host},
        {"--replicas", o->replicas},
        {"--cross-device", o->sums.algorithm},
        {"--packs", o->sums.packs},
        {"--batch-size", o->batch_size},
        {"--global-batch", o->global_batch},
        {"--losses", o->losses != NULL},
        {"--log-dir", o->log_dir != NULL},
        {"--log-every", o->log_every},
        {"--histograms-every", o->histograms_every},
        {"--model-dir", o->model_dir != NULL},
        {"--checkpoint-every", o->checkpoint_every},
        {"--seed", (int64_t)o->seed},
        {"--eval-every", o->eval_every},
        {"--elastic", o->elastic_min},
        {"--elastic-every", o->elastic_steps},
        real_number("--exclude-stragglers", o->exclude_stragglers),
        {"--check-every", o->check_every},
        {"--accumulate", o->optimizer.accumulate},
        {"--optimizer", o->optimizer.optimizer},
        real_number("--lr", o->learning_rate),
        {"--lr-schedule", o->schedule},
        {"--warmup", o->warmup},
        real_number("--weight-decay", o->optimizer.weight_decay),
        real_number("--clip", o->optimizer.clip),
        real_number("--ema", o->ema),
    };
    const struct agree_number of_mnist[] = {
        {"--epochs", o->epochs},
        {"--model", o->network},
        {"--sync-batch-norm", o->synchronised},
    };
    const struct agree_number of_char_gpt[] = {
        {"--layers", o->gpt.layers},
        {"--heads", o->gpt.heads},
        {"--width", o->gpt.width},
        {"--context", o->gpt.context},
        {"--tie", o->gpt.tied},
        {"--dropout", (int64_t)(o->gpt.dropout * 1e15)},
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

/* Makes the last ranks servers. */
static int divide(struct command *command)
{
    const struct options *o = command->options;
    int status;

    if (o->strategy != STRATEGY_PARAMETER_SERVER ||
        command->role == HVD_ROLE_EVALUATOR)
        return 0;
    status = serving_divide(o->servers.count);
    if (status < 0)
        return status;
    command->size -= o->servers.count;
    command->serves = command->rank >= command->size;
    return 0;
}

int command_prepare(struct command *command)
{
    struct options *o = command->options;
    int status;

    if (o->strategy == STRATEGY_PARAMETER_SERVER && o->servers.count == 0)
        o->servers.count = 1;
    status = agree_options(command->options);
    if (!status)
        status = divide(command);
    if (!status && command->serves)
        return 0;
    if (!status)
        status = agree(options_set_batch(command->options, command->size));
    if (!status) {
        options_set_rate(command->options, command->size);
        status = check_files(command);
    }
    return status;
}
