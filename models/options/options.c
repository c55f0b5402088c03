/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - reads a command line by the table of options_rows.c, checks the
 * options that depend on each other, and fills in those that were not given.
 */
#include "options/options.h"

#include "networks/digit_networks.h"
#include "options/options_rows.h"
#include "output/problem.h"
#include "trainer/strategy.h"

#include <hvd_log.h>
#include <hvd_schedule.h>
#include <hvd_strategy.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *name, *doc;
} programs[] = {
    [OPTIONS_MNIST] =
        {"mnist",
         "Train a small network to read handwritten digits, on every rank that "
         "mpirun started or TF_CONFIG describes.\v"
         "Without --data the digits are drawn by the program and need no "
         "download. Exit status: 0 trained, 1 failed, 64 wrong command line, "
         "130 or 143 interrupted.\n\n"
         "Examples:\n"
         "  mpi-launch.sh -np 2 mnist\n"
         "  mnist --spawn 2\n"
         "  mpi-launch.sh -np 4 mnist --data mnist/ --epochs 10 --summary "
         "run.json"},
    [OPTIONS_CHAR_GPT] =
        {"char_gpt",
         "Train a small transformer to write like a text, character by "
         "character, on every rank that mpirun started or TF_CONFIG "
         "describes.\v"
         "Exit status: 0 trained, 1 failed, 64 wrong command line, 130 or 143 "
         "interrupted.\n\n"
         "Examples:\n"
         "  mpi-launch.sh -np 2 char_gpt --text shakespeare.txt\n"
         "  char_gpt --spawn 2 --text shakespeare.txt\n"
         "  char_gpt --text shakespeare.txt --layers 2 --width 64 --steps 500"},
};

const char *options_name(enum options_program program)
{
    return programs[program].name;
}

const struct line *options_line(enum options_program program,
                                struct options *options)
{
    static struct line line;

    line = (struct line){programs[program].name,
                         programs[program].doc,
                         options_table(program),
                         options_take,
                         options,
                         NULL,
                         NULL};
    return &line;
}

static const struct options defaults[] = {
    [OPTIONS_MNIST] = {.program = OPTIONS_MNIST,
                       .strategy = -1,
                       .sums = {.algorithm = -1},
                       .epochs = 5,
                       .optimizer = {OPTIMIZER_ADAM, -1, 0, 1},
                       .seed = 1,
                       .pack_bytes = -1,
                       .eval_every = 1,
                       .checkpoint_every = 100,
                       .elastic_steps = 10,
                       .checkpoint_wait = 600,
                       .log_formats = HVD_LOG_ALL,
                       .log_every = 10,
                       .histograms_every = 100,
                       .threads = 1,
                       .schedule = HVD_SCHEDULE_CONSTANT},
    [OPTIONS_CHAR_GPT] = {.program = OPTIONS_CHAR_GPT,
                          .strategy = -1,
                          .sums = {.algorithm = -1},
                          .steps = 1000,
                          .optimizer = {OPTIMIZER_ADAMW, -1, 0, 0},
                          .partition = {0, -1, false},
                          .seed = 1,
                          .pack_bytes = -1,
                          .eval_every = 250,
                          .checkpoint_every = 100,
                          .elastic_steps = 10,
                          .checkpoint_wait = 600,
                          .log_formats = HVD_LOG_ALL,
                          .log_every = 10,
                          .histograms_every = 100,
                          .threads = 1,
                          .gpt = {4, 4, 128, 128, 0, false},
                          .warmup = -1,
                          .schedule = HVD_SCHEDULE_COSINE,
                          .eval_windows = 256,
                          .sample = 300,
                          .temperature = 0.8},
};

/* Checks options that need --stages, and those that a pipeline cannot have. */
static int check_partition(const struct options *o)
{
    const char *needs = o->partition.schedule >= 0 ? "schedule"
                        : o->partition.recompute   ? "recompute"
                                                   : NULL;
    bool interleaved =
        o->partition.schedule >= 0 &&
        strcmp(partition_schedules[o->partition.schedule], "interleaved") == 0;

    if (o->partition.stages == 0 && needs)
        return problem_set("--%s is of a pipeline: give --stages, too", needs);
    if (o->partition.stages == 0)
        return 0;
    if (o->optimizer.clip > 0)
        return problem_set("--clip does not go together with --stages: no IPU "
                           "has all of the gradient");
    if (o->partition.stages > o->gpt.layers + 2)
        return problem_set("--stages %d: --layers %d, the tables and the head "
                           "make %d stages at most",
                           o->partition.stages, o->gpt.layers,
                           o->gpt.layers + 2);
    if (o->gpt.tied && (o->partition.stages == 2 || interleaved))
        return problem_set("--tie has the first and the last stage share an "
                           "IPU: there must be 3 --stages or more, and "
                           "--schedule grouped or sequential");
    return 0;
}

/* Checks options that need a network of the devices, and those that it cannot
 * have. */
static int check_network(const struct options *o)
{
    const char *needs = o->recipe            ? "bf16-recipe"
                        : o->pack_bytes >= 0 ? "pack-bytes"
                                             : NULL;
    const char *other = o->partition.stages > 0 ? "stages"
                        : o->replicas > 1       ? "replicas"
                        : o->graphs             ? "graphs"
                        : o->compression        ? "compression"
                        : o->check_every > 0    ? "check-every"
                        : o->serial             ? "serial"
                        : o->variables_on_host  ? "variables-on-host"
                                                : NULL;

    if (o->strategy != STRATEGY_DEVICE_COLLECTIVE && needs)
        return problem_set("--%s is of the devices' network: give --strategy "
                           "device-collective, too",
                           needs);
    if (o->strategy == STRATEGY_DEVICE_COLLECTIVE && other)
        return problem_set("--%s does not go together with --strategy "
                           "device-collective%s",
                           other,
                           o->compression && strcmp(other, "compression") == 0
                               ? ": --bf16-recipe says what travels as bfloat16"
                               : "");
    return 0;
}

/* Checks what sums over replicas need. */
static int check_sums(const struct options *o)
{
    const char *given = o->sums.algorithm >= 0 ? "cross-device"
                        : o->sums.packs > 0    ? "packs"
                                               : NULL;

    if (!given)
        return 0;
    if (o->partition.stages > 0)
        return problem_set("--%s is of replicas that are one IPU each: it does "
                           "not go together with --stages",
                           given);
    if (o->replicas > 1 || o->strategy == STRATEGY_MIRRORED)
        return 0;
    return problem_set("--%s says how the replicas of a process add up: give "
                       "--replicas or --strategy mirrored, too",
                       given);
}

/* Checks what a normalisation over all replicas needs. */
static int check_normalisation(const struct options *o)
{
    if (!o->synchronised)
        return 0;
    if (o->graphs)
        return problem_set("--sync-batch-norm does not go together with "
                           "--graphs, which say how they normalise");
    if (o->network != NETWORK_CNN_BN)
        return problem_set("--sync-batch-norm: the network %s has no batch "
                           "normalisation: give --model %s, too",
                           network_names[o->network],
                           network_names[NETWORK_CNN_BN]);
    if (o->strategy == STRATEGY_PARAMETER_SERVER)
        return problem_set("--sync-batch-norm has all workers meet within each "
                           "step: it does not go together with --strategy "
                           "parameter-server");
    return 0;
}

/* Reads MIN or MIN:MAX. */
static int read_elastic(struct options *o)
{
    int least = 0, most = 0, read = 0;
    const int found =
        sscanf(o->elastic, "%6d%n:%6d%n", &least, &read, &most, &read);

    if (found < 1 || o->elastic[read] != '\0' || least < 1 ||
        (found == 2 && most < least))
        return problem_set("--elastic '%s': give the ranks that must be left, "
                           "and how many may begin, as 2 or 2:6",
                           o->elastic);
    o->elastic_min = least;
    o->elastic_max = found == 2 ? most : 0;
    return 0;
}

/* Checks what a training that survives losses needs. */
static int check_elastic(struct options *o)
{
    const char *needs = o->elastic_log      ? "log"
                        : o->elastic_replay ? "replay"
                                            : NULL;
    const char *other = o->partition.stages > 0 ? "--stages"
                        : o->graphs             ? "--graphs"
                        : o->remote             ? "--remote"
                        : o->losses             ? "--losses"
                        : o->log_dir            ? "--log-dir"
                                                : NULL;

    if (!o->elastic && needs)
        return problem_set("--elastic-%s is of a training that goes on when "
                           "ranks are lost: give --elastic, too",
                           needs);
    if (o->exclude_stragglers > 0 && !o->elastic)
        return problem_set("--exclude-stragglers is of a training that goes on "
                           "when ranks are lost: give --elastic, too");
    if (o->exclude_stragglers > 0 && o->exclude_stragglers < 1.25)
        return problem_set("--exclude-stragglers %g: give 1.25 or more, or 0 "
                           "to go on with all ranks",
                           o->exclude_stragglers);
    if (!o->elastic)
        return 0;
    if (o->strategy == STRATEGY_PARAMETER_SERVER ||
        o->strategy == STRATEGY_DEVICE_COLLECTIVE)
        return problem_set("--elastic does not go together with --strategy "
                           "parameter-server or device-collective");
    if (other)
        return problem_set("--elastic does not go together with %s", other);
    if (o->global_batch > 0)
        return problem_set("--elastic does not go together with --global-batch,"
                           " for the ranks change: give --batch-size, which "
                           "each of them keeps");
    return read_elastic(o);
}

/* Checks options that say who trains. */
static int check_start(const struct options *o)
{
    if (o->task && !o->cluster)
        return problem_set("--task is a task of --cluster: give --cluster, "
                           "too");
    if (o->spawn && o->strategy == STRATEGY_HOROVOD)
        return problem_set("--strategy horovod is started by mpirun: --spawn "
                           "starts workers without MPI");
    if (o->spawn && o->cluster)
        return problem_set(
            "--spawn makes a cluster of its own: leave --cluster "
            "out");
    if (o->cluster && o->base_port > 0)
        return problem_set("--cluster has the ports of all tasks: leave "
                           "--base-port out");
    return 0;
}

/* Checks what an optimiser of libhvd cannot do; whose is the option that asks
 * for it. */
static int check_updates(const struct options *o, const char *whose)
{
    const char *cannot = o->partition.stages > 0 ? "--stages"
                         : o->graphs             ? "--graphs"
                         : o->optimizer.clip > 0 ? "--clip"
                                                 : NULL;

    if (cannot)
        return problem_set("%s does not go together with %s", whose, cannot);
    return 0;
}

/* Checks what needs parameter servers, and what they cannot do. */
static int check_servers(const struct options *o)
{
    const struct servers_settings *s = &o->servers;

    if (o->strategy != STRATEGY_PARAMETER_SERVER)
        return s->count || s->mode || s->backups || s->staleness ||
                       s->placement || s->part_bytes
                   ? problem_set("--servers, --ps-mode, --backups, "
                                 "--staleness, --ps-placement and "
                                 "--ps-part-bytes are of --strategy "
                                 "parameter-server")
                   : 0;
    if (s->backups > 0 && s->mode != HVD_SERVER_SYNCHRONOUS)
        return problem_set("--backups are of --ps-mode sync");
    if (s->staleness > 0 && s->mode != HVD_SERVER_BOUNDED)
        return problem_set("--staleness is of --ps-mode stale");
    if (o->compression)
        return problem_set("--strategy parameter-server does not go together "
                           "with --compression");
    if (s->part_bytes > 0 && (o->optimizer.optimizer == OPTIMIZER_LAMB ||
                              o->optimizer.optimizer == OPTIMIZER_LARS))
        return problem_set("--ps-part-bytes does not go together with "
                           "--optimizer %s, which needs the length of whole "
                           "variables",
                           optimizer_names[o->optimizer.optimizer]);
    return check_updates(o, "--strategy parameter-server");
}

/* Checks the options of logs. */
static int check_logs(struct options *o)
{
    if (o->log && !o->log_dir)
        return problem_set("--log says what a folder of logs gets: give "
                           "--log-dir, too");
    if (o->log && hvd_log_read_formats(o->log, &o->log_formats) < 0)
        return problem_set("--log: %s", problem_text());
    return 0;
}

/* Checks options that depend on each other. */
static int check_together(struct options *o)
{
    if (o->program == OPTIONS_CHAR_GPT && o->gpt.width % o->gpt.heads != 0)
        return problem_set("--width %d cannot be shared out to --heads %d: it "
                           "must be a multiple of them",
                           o->gpt.width, o->gpt.heads);
    if (o->batch_size > 0 && o->global_batch > 0)
        return problem_set("--batch-size is of one replica and --global-batch "
                           "of all of them: give one");
    if (o->graphs && (o->partition.stages > 0 || o->replicas > 1 ||
                      o->strategy == STRATEGY_MIRRORED))
        return problem_set("--graphs are of one IPU: they do not go together "
                           "with --stages, --replicas or --strategy mirrored");
    if (o->graphs && o->load)
        return problem_set("--graphs come with their first weights: "
                           "--load-weights has no effect on them");
    if (o->ema > 0 && o->graphs)
        return problem_set("--ema does not go together with --graphs");
    if (o->ema > 0 &&
        (o->servers.mode != HVD_SERVER_SYNCHRONOUS || o->servers.backups > 0))
        return problem_set("--ema goes together with --ps-mode sync alone, and "
                           "without --backups: the workers would have "
                           "different averages");
    if (check_start(o) < 0 || check_network(o) < 0 ||
        check_normalisation(o) < 0 || check_sums(o) < 0 || check_logs(o) < 0 ||
        check_elastic(o) < 0)
        return PROBLEM;
    if (o->strategy == STRATEGY_MIRRORED && o->replicas == 1)
        return problem_set("--strategy mirrored needs 2 --replicas or more");
    if (check_servers(o) < 0 ||
        (o->variables_on_host && check_updates(o, "--variables-on-host") < 0))
        return PROBLEM;
    return o->program == OPTIONS_CHAR_GPT ? check_partition(o) : 0;
}

/* Sets options that were not given and depend on others. A multiple of twice
 * the stages suits every schedule; a pipeline makes whole updates. */
static void fill_in(struct options *o)
{
    int round = 2 * o->partition.stages;

    if (o->optimizer.accumulate == 0)
        o->optimizer.accumulate = round ? (7 + round) / round * round : 1;
    if (o->partition.schedule < 0)
        o->partition.schedule = 0;
    if (o->replicas == 0)
        o->replicas = o->strategy == STRATEGY_MIRRORED ? 2 : 1;
    if (o->batch_size == 0 && o->global_batch == 0)
        o->batch_size = o->program == OPTIONS_MNIST ? 64 : 16;
    if (o->partition.stages > 0) {
        int64_t update = o->optimizer.accumulate;

        o->steps = (o->steps + update - 1) / update * update;
        o->eval_every = (int)((o->eval_every + update - 1) / update * update);
    }
    if (o->warmup < 0)
        o->warmup = o->schedule == HVD_SCHEDULE_ONE_CYCLE ? 0 : o->steps / 10;
    o->optimizer.cycled = o->schedule == HVD_SCHEDULE_ONE_CYCLE &&
                          optimizer_has_momentum(o->optimizer.optimizer);
    if (o->optimizer.weight_decay < 0)
        o->optimizer.weight_decay =
            optimizer_usual_decay(o->optimizer.optimizer);
}

int options_parse(enum options_program program, struct options *options,
                  int argc, char **argv)
{
    int outcome;

    *options = defaults[program];
    outcome = line_parse(options_line(program, options), argc, argv);
    if (outcome == LINE_RUN && check_together(options) < 0)
        return PROBLEM;
    if (outcome == LINE_RUN)
        fill_in(options);
    return outcome;
}

static double default_rate(const struct options *options, int nranks)
{
    /* The rates of mnist and of char_gpt. */
    static const double rates[OPTIMIZERS][2] = {
        [OPTIMIZER_SGD] = {0.1, 0.3},
        [OPTIMIZER_MOMENTUM] = {0.02, 0.1},
        [OPTIMIZER_NESTEROV] = {0.02, 0.1},
        [OPTIMIZER_ADAM] = {0.002, 0.003},
        [OPTIMIZER_ADAMW] = {0.002, 0.003},
        [OPTIMIZER_LAMB] = {0.01, 0.01},
        [OPTIMIZER_RMSPROP] = {0.002, 0.002},
        [OPTIMIZER_ADAGRAD] = {0.02, 0.05},
        [OPTIMIZER_ADADELTA] = {1, 1},
        [OPTIMIZER_LION] = {0.001, 0.001},
        [OPTIMIZER_LARS] = {2, 5},
    };
    double rate = rates[options->optimizer.optimizer][options->program];
    double scale = (double)options->batch_size * options->optimizer.accumulate *
                   options->replicas * nranks / 64;

    if (options->program == OPTIONS_CHAR_GPT)
        return rate;
    return rate * (scale < 4 ? scale : 4);
}

int options_set_batch(struct options *options, int nranks)
{
    int shares = options->replicas * nranks;

    if (options->global_batch == 0)
        return 0;
    if (options->global_batch % shares != 0)
        return problem_set("--global-batch %d cannot be shared out evenly to "
                           "%d replicas (%d on each of %d ranks): give a "
                           "multiple of %d",
                           options->global_batch, shares, options->replicas,
                           nranks, shares);
    options->batch_size = options->global_batch / shares;
    return 0;
}

int options_set_evaluator(struct options *options)
{
    if (!options->model_dir)
        return problem_set("an evaluator reads the checkpoints that the chief "
                           "writes: give both the same --model-dir");
    if (options->graphs)
        return problem_set("an evaluator builds the network itself: leave "
                           "--graphs out");
    options->replicas = 1;
    options->summary = options->weights = options->losses = NULL;
    options->profile = options->log_dir = NULL;
    return 0;
}

void options_set_rate(struct options *options, int nranks)
{
    if (options->learning_rate == 0)
        options->rate_adapts = true;
    if (options->rate_adapts)
        options->learning_rate = default_rate(options, nranks);
}

hvd_schedule options_schedule(struct options *o, int64_t steps)
{
    hvd_schedule s;

    hvd_schedule_init(&s, sizeof s);
    o->boundaries[0] = steps / 2;
    o->boundaries[1] = steps * 3 / 4;
    s.kind = o->schedule;
    s.rate = o->learning_rate;
    s.steps = steps;
    s.warmup = o->warmup;
    s.boundaries = o->boundaries;
    s.nboundaries = 2;
    s.final = 0.1;
    return s;
}

struct trainer_options options_trainer(const struct options *options)
{
    return (struct trainer_options){
        .optimizer = options->optimizer,
        .strategy = options->strategy,
        .servers = options->servers,
        .variables_on_host = options->variables_on_host,
        .synchronised = options->synchronised,
        .sums = options->sums,
        .replicas = options->replicas,
        .seed = options->seed,
        .compression = options->compression,
        .recipe = options->recipe,
        .pack_bytes = options->pack_bytes,
        .check_every = options->check_every,
        .keep_gradients = options->log_dir && options->histograms_every > 0,
        .threads = options->threads,
        .proportion = options->proportion,
        .serial = options->serial,
        .load = options->load,
        .graphs = options->graphs,
        .partition = options->partition,
        .profile = options->profile};
}
