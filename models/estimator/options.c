/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the options of an estimator: their defaults, what they may be,
 * and what the trainer is told of them. */
#include "estimator/estimator.h"
#include "output/problem.h"

#include <hvd_strategy.h>
#include <string.h>

void hvd_estimator_options_init(hvd_estimator_options *options, size_t size)
{
    memset(options, 0, size);
    options->size = (uint32_t)size;
    options->optimizer = "adam";
    hvd_schedule_init(&options->rate, sizeof options->rate);
    options->weight_decay = -1;
    options->accumulate = options->replicas = options->threads = 1;
    options->elastic_steps = 10;
    options->seed = 1;
    options->save_checkpoints_secs = 600;
    options->keep_checkpoint_max = 5;
    options->log_step_count_steps = 100;
    options->loss_scale_steps = 2000;
    options->log_formats = HVD_LOG_ALL;
}

/* ----------------------------------------------------------------- checking */

static int optimizer_of(const char *name)
{
    int i = 0;

    while (optimizer_names[i] &&
           (!name || strcmp(optimizer_names[i], name) != 0))
        i++;
    return optimizer_names[i] ? i : -1;
}

/* A number that must be from least to most. */
static int check_range(const char *name, double value, double least,
                       double most)
{
    if (value >= least && value <= most)
        return 0;
    return problem_fail(HVD_ERR_ARGUMENT,
                        "estimator: %s is %g: it must be from %g to %g", name,
                        value, least, most);
}

static int check_ranges(const hvd_estimator_options *o)
{
    const struct {
        const char *name;
        double value, least, most;
    } ranges[] = {
        {"accumulate", o->accumulate, 1, 1 << 30},
        {"replicas", o->replicas, 1, 4096},
        {"threads", o->threads, o->stages > 1 ? 0 : 1, 1024},
        {"skip_nonfinite", o->skip_nonfinite, 0, 1 << 30},
        {"elastic", o->elastic, 0, 1 << 20},
        {"elastic_steps", o->elastic_steps, 1, 1 << 30},
        {"exclude_stragglers", o->exclude_stragglers,
         o->exclude_stragglers > 0 ? 1.25 : 0, 1e6},
        {"loss_scale", o->loss_scale, 0, 1e30},
        {"loss_scale_steps", o->loss_scale_steps, 1, 1 << 30},
        {"ema_decay", o->ema_decay, 0, 1},
        {"clip_norm", o->clip_norm, 0, 1e300},
        {"save_checkpoints_steps", (double)o->save_checkpoints_steps, 0, 1e18},
        {"save_checkpoints_secs", o->save_checkpoints_secs, 0, 1e9},
        {"keep_checkpoint_max", o->keep_checkpoint_max, 0, 1e9},
        {"log_step_count_steps", (double)o->log_step_count_steps, 1, 1e18},
        {"stages", o->stages, 0, 64},
        {"schedule", o->schedule, 0, 2},
        {"servers", o->servers, 0, 1 << 20},
        {"server_mode", o->server_mode, 0, HVD_SERVER_BOUNDED},
        {"backups", o->backups, 0, 1 << 20},
        {"staleness", o->staleness, 0, 1 << 30},
        {"placement", o->placement, 0, HVD_PLACE_BY_BYTES},
        {"part_bytes", (double)o->part_bytes, 0, 1e18},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (check_range(ranges[i].name, ranges[i].value, ranges[i].least,
                        ranges[i].most) < 0)
            return HVD_ERR_ARGUMENT;
    return 0;
}

/* Checks that options which exclude each other are not given together. */
static int check_together(const hvd_estimator_options *o)
{
    const bool stages = o->stages > 1, servers = o->servers > 0;
    const bool host = o->variables_on_host != 0;
    const bool network = o->device_collective != 0, clips = o->clip_norm > 0;
    const bool skips = o->skip_nonfinite > 0;
    const struct {
        const char *one, *other;
        bool both;
        const char *why;
    } pairs[] = {
        {"device_collective", "replicas", network && o->replicas > 1,
         "it has one replica on each rank"},
        {"device_collective", "stages", network && stages,
         "it has one device on each rank"},
        {"device_collective", "servers", network && servers,
         "gradients would not come to the servers"},
        {"device_collective", "variables_on_host", network && host,
         "gradients would not come to the host"},
        {"stages", "synchronised", stages && o->synchronised,
         "stages do not normalise by other batches than their own"},
        {"stages", "clip_norm", stages && clips,
         "no device has all of the gradient"},
        {"stages", "skip_nonfinite", stages && skips,
         "no device has all of the gradient"},
        {"stages", "servers", stages && servers,
         "the devices of a pipeline make the updates"},
        {"stages", "variables_on_host", stages && host,
         "the devices of a pipeline make the updates"},
        {"servers", "synchronised", servers && o->synchronised,
         "workers would have to meet within a step"},
        {"servers", "clip_norm", servers && clips,
         "no server has all of the gradient"},
        {"servers", "skip_nonfinite", servers && skips,
         "the servers make the updates"},
        {"servers", "variables_on_host", servers && host,
         "the variables are on the servers"},
        {"variables_on_host", "clip_norm", host && clips,
         "the optimiser of the host updates each variable by itself"},
        {"variables_on_host", "skip_nonfinite", host && skips,
         "the devices do not make the updates"},
        {"elastic", "servers", o->elastic > 0 && servers,
         "what a lost server has is nowhere else"},
        {"elastic", "stages", o->elastic > 0 && stages,
         "it has not been tried with pipelines"},
        {"exclude_stragglers", "elastic = 0",
         o->exclude_stragglers > 0 && o->elastic == 0,
         "the training ends with a rank that it loses"},
        {"ema_decay", "server_mode", o->ema_decay > 0 && o->server_mode > 0,
         "the workers would have different averages"},
        {"ema_decay", "backups", o->ema_decay > 0 && o->backups > 0,
         "the workers would have different averages"},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].both)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "estimator: %s does not go together with %s: "
                                "%s: leave one of them out",
                                pairs[i].one, pairs[i].other, pairs[i].why);
    return 0;
}

/* Checks that no option is given without the one that it belongs to. */
static int check_alone(const hvd_estimator_options *o)
{
    const bool servers = o->servers > 0;
    const struct {
        const char *one;
        bool alone;
        const char *needs;
    } rows[] = {
        {"schedule", o->schedule > 0 && o->stages < 2, "stages"},
        {"recompute", o->recompute && o->stages < 2, "stages"},
        {"server_mode", o->server_mode > 0 && !servers, "servers"},
        {"backups", o->backups > 0 && !servers, "servers"},
        {"staleness", o->staleness > 0 && !servers, "servers"},
        {"placement", o->placement > 0 && !servers, "servers"},
        {"part_bytes", o->part_bytes > 0 && !servers, "servers"},
        {"backups", o->backups > 0 && o->server_mode != HVD_SERVER_SYNCHRONOUS,
         "the server_mode synchronous"},
        {"staleness", o->staleness > 0 && o->server_mode != HVD_SERVER_BOUNDED,
         "the server_mode bounded"},
        {"loss_scale", o->loss_scale > 0 && o->skip_nonfinite == 0,
         "skip_nonfinite"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].alone)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "estimator: %s is of no use without %s: set "
                                "that, too, or leave it out",
                                rows[i].one, rows[i].needs);
    return 0;
}

/* Gives the tasks of type ps to the workers of their cluster as servers. */
static int adopt_servers(hvd_estimator_options *o)
{
    const int count = cluster_servers();

    if (count == 0 || o->servers == count)
        return 0;
    if (o->servers > 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "estimator: servers is %d: the cluster has %d "
                            "tasks of type ps, which are the servers: leave "
                            "it 0",
                            (int)o->servers, count);
    o->servers = count;
    return 0;
}

int estimator_take_options(hvd_estimator_options *o,
                           const hvd_estimator_options *given)
{
    int status;

    if (!given || given->size < sizeof *given)
        return problem_fail(HVD_ERR_ARGUMENT, "estimator: the options %s",
                            given ? "have not been set by "
                                    "hvd_estimator_options_init"
                                  : "are NULL");
    *o = *given;
    if (!o->model)
        return problem_fail(HVD_ERR_ARGUMENT, "estimator: there is no model");
    if (optimizer_of(o->optimizer) < 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "estimator: there is no optimiser '%s'",
                            o->optimizer ? o->optimizer : "(NULL)");
    status = check_ranges(o);
    if (status == 0)
        status = adopt_servers(o);
    if (status == 0)
        status = check_together(o);
    if (status == 0)
        status = check_alone(o);
    if (status == 0)
        status = hooks_check(o);
    if (status == 0)
        status = hvd_schedule_check(&o->rate);
    if (cluster_is_evaluator()) /* which is alone */
        o->servers = o->device_collective = 0;
    return status;
}

/* -------------------------------------------------------------- the trainer */

struct trainer_options estimator_trainer_options(const hvd_estimator *e)
{
    const hvd_estimator_options *o = &e->options;
    const enum optimizer optimizer = (enum optimizer)optimizer_of(o->optimizer);

    if (e->program)
        return e->program->trainer;
    return (struct trainer_options){
        .optimizer = {.optimizer = optimizer,
                      .weight_decay = o->weight_decay < 0
                                          ? optimizer_usual_decay(optimizer)
                                          : o->weight_decay,
                      .clip = o->clip_norm,
                      .accumulate = o->accumulate,
                      .guarded = o->skip_nonfinite > 0,
                      .scaled = o->loss_scale > 0,
                      .cycled = o->rate.kind == HVD_SCHEDULE_ONE_CYCLE &&
                                optimizer_has_momentum(optimizer)},
        .strategy = o->servers > 0         ? STRATEGY_PARAMETER_SERVER
                    : o->device_collective ? STRATEGY_DEVICE_COLLECTIVE
                                           : STRATEGY_HOROVOD,
        .servers = {.count = o->servers,
                    .mode = o->server_mode,
                    .backups = o->backups,
                    .staleness = o->staleness,
                    .placement = o->placement,
                    .part_bytes = o->part_bytes},
        .variables_on_host = o->variables_on_host != 0,
        .synchronised = o->synchronised && (o->replicas > 1 || hvd_size() > 1),
        .sums = {.algorithm = -1},
        .replicas = o->replicas,
        .rank = hvd_rank(),
        .seed = o->seed,
        .pack_bytes = -1,
        .threads = o->threads,
        .partition = {.stages = o->stages > 1 ? o->stages : 0,
                      .schedule = o->schedule,
                      .recompute = o->recompute != 0}};
}
