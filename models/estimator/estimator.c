/* SPDX-License-Identifier: Apache-2.0 */
/* estimator.c - makes an estimator, and the trainer below it when the first
 * data tells what a batch is. */
#include "estimator/estimator.h"
#include "net/make.h"
#include "output/clock.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <stdlib.h>
#include <string.h>

void hvd_estimator_options_init(hvd_estimator_options *options, size_t size)
{
    memset(options, 0, size);
    options->size = (uint32_t)size;
    options->optimizer = "adam";
    hvd_schedule_init(&options->rate, sizeof options->rate);
    options->weight_decay = -1;
    options->accumulate = options->replicas = options->threads = 1;
    options->seed = 1;
    options->save_checkpoints_secs = 600;
    options->keep_checkpoint_max = 5;
    options->log_step_count_steps = 100;
    options->loss_scale_steps = 2000;
    options->log_formats = HVD_LOG_ALL;
}

int estimator_agree(int status)
{
    char text[4096];

    snprintf(text, sizeof text, "%s", problem_text());
    status = agree(status);
    if (status == PROBLEM_ELSEWHERE)
        return problem_fail(HVD_ERR_PEER, "another rank has failed, and says "
                                          "why");
    return status < 0 ? problem_fail(HVD_ERR_ARGUMENT, "%s", text) : 0;
}

/* ------------------------------------------------------------------- options
 */

static int optimizer_of(const char *name)
{
    int i = 0;

    while (optimizer_names[i] && (!name || strcmp(optimizer_names[i], name)))
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

static int check_options(const hvd_estimator_options *o)
{
    const struct {
        const char *name;
        double value, least, most;
    } ranges[] = {
        {"accumulate", o->accumulate, 1, 1 << 30},
        {"replicas", o->replicas, 1, 4096},
        {"threads", o->threads, 1, 1024},
        {"skip_nonfinite", o->skip_nonfinite, 0, 1 << 30},
        {"loss_scale", o->loss_scale, 0, 1e30},
        {"loss_scale_steps", o->loss_scale_steps, 1, 1 << 30},
        {"ema_decay", o->ema_decay, 0, 1},
        {"clip_norm", o->clip_norm, 0, 1e300},
        {"save_checkpoints_steps", (double)o->save_checkpoints_steps, 0, 1e18},
        {"save_checkpoints_secs", o->save_checkpoints_secs, 0, 1e9},
        {"keep_checkpoint_max", o->keep_checkpoint_max, 0, 1e9},
        {"log_step_count_steps", (double)o->log_step_count_steps, 1, 1e18},
    };

    if (!o || o->size < sizeof *o)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "estimator: the options have not been set by "
                            "hvd_estimator_options_init");
    if (!o->model)
        return problem_fail(HVD_ERR_ARGUMENT, "estimator: there is no model");
    if (optimizer_of(o->optimizer) < 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "estimator: there is no optimiser '%s'",
                            o->optimizer ? o->optimizer : "(NULL)");
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (check_range(ranges[i].name, ranges[i].value, ranges[i].least,
                        ranges[i].most) < 0)
            return HVD_ERR_ARGUMENT;
    if (o->device_collective && o->replicas > 1)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "estimator: device_collective has one replica on "
                            "each rank");
    if (o->loss_scale > 0 && o->skip_nonfinite == 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "estimator: loss_scale needs skip_nonfinite: a "
                            "scale is found by updates that are skipped");
    if (hooks_check(o) < 0)
        return HVD_ERR_ARGUMENT;
    return hvd_schedule_check(&o->rate);
}

int hvd_estimator_new(const hvd_estimator_options *options,
                      hvd_estimator **estimator)
{
    hvd_estimator *e;
    int status;

    *estimator = NULL;
    status = options ? check_options(options)
                     : problem_fail(HVD_ERR_ARGUMENT,
                                    "estimator: the options are NULL");
    if (status < 0)
        return status;
    if (hvd_is_initialized() != 1)
        return problem_fail(HVD_ERR_NOT_INITIALIZED,
                            "estimator: call hvd_init first");
    e = calloc(1, sizeof *e);
    if (!e)
        return problem_fail(HVD_ERR_MEMORY, "no memory for an estimator");
    e->options = *options;
    e->saved_step = -1;
    e->numbers[NUMBER_RATE_FACTOR] = 1;
    *estimator = e;
    return 0;
}

void hvd_estimator_free(hvd_estimator *e)
{
    if (!e)
        return;
    averages_fini(e);
    trainer_free(e->trainer);
    hvd_checkpoint_writer_close(e->writer);
    hvd_log_close(e->log);
    free(e);
}

/* --------------------------------------------------------------- the trainer
 */

static int make_model(hvd_estimator *e, const struct input *in,
                      struct model **model)
{
    struct net_component components[HVD_MAX_COMPONENTS];
    int status;

    e->capacity = in->batch.capacity;
    for (int32_t i = 0; i < in->batch.ncomponents; i++) {
        const hvd_component *c = &in->batch.components[i];

        components[i] = (struct net_component){
            .name = c->name, .is_int = c->dtype == HVD_INT32, .ndim = c->ndim};
        memcpy(components[i].shape, c->shape,
               (size_t)c->ndim * sizeof *c->shape);
        components[i].shape[0] = e->capacity;
    }
    status =
        net_make(e->options.model, in->batch.ncomponents, components, model);
    if (status < 0)
        return status;
    e->losses = net_losses(*model) / e->capacity;
    e->classes = net_classes(*model);
    return 0;
}

static struct trainer_options options_of(hvd_estimator *e)
{
    const hvd_estimator_options *o = &e->options;
    const enum optimizer optimizer = (enum optimizer)optimizer_of(o->optimizer);

    return (struct trainer_options){
        .optimizer = {.optimizer = optimizer,
                      .weight_decay = o->weight_decay < 0
                                          ? optimizer_usual_decay(optimizer)
                                          : o->weight_decay,
                      .clip = o->clip_norm,
                      .accumulate = o->accumulate,
                      .guarded = o->skip_nonfinite > 0,
                      .scaled = o->loss_scale > 0},
        .strategy = o->device_collective ? STRATEGY_DEVICE_COLLECTIVE
                                         : STRATEGY_HOROVOD,
        .synchronised = o->synchronised && (o->replicas > 1 || hvd_size() > 1),
        .sums = {.algorithm = -1},
        .replicas = o->replicas,
        .rank = hvd_rank(),
        .seed = o->seed,
        .pack_bytes = -1,
        .threads = o->threads,
        .fill = input_fill,
        .fill_context = e};
}

int estimator_prepare(hvd_estimator *e, const struct input *in)
{
    const struct trainer_options options = options_of(e);
    struct model *model = NULL;
    int status;

    if (e->trainer)
        return estimator_agree(in ? 0 : PROBLEM);
    if (in && in->over)
        problem_set("the data is empty");
    else if (in)
        make_model(e, in, &model); /* a failure has kept its text */
    status = trainer_new(model, &options, &e->trainer);
    if (status == PROBLEM_ELSEWHERE)
        return problem_fail(HVD_ERR_PEER, "another rank has failed, and says "
                                          "why");
    if (status < 0)
        return problem_fail(HVD_ERR_ARGUMENT, "%s", problem_text());
    e->saved_at = clock_seconds();
    status = estimator_agree(averages_init(e));
    if (status == 0)
        status = resume_load(e);
    if (status == 0 && e->options.log_dir)
        status = estimator_agree(record_open(e));
    return status;
}

/* ---------------------------------------------------------- what is known now
 */

int hvd_estimator_output(const hvd_estimator *e, const char *name)
{
    const struct model *m = e->trainer ? trainer_model(e->trainer) : NULL;

    for (int i = 0; m && i < net_outputs(m); i++)
        if (strcmp(net_output(m, i), name) == 0)
            return i;
    return problem_fail(HVD_ERR_ARGUMENT, "there is no output '%s'", name);
}

int hvd_estimator_variable(const hvd_estimator *e, const char *name,
                           float *values, int64_t count)
{
    const struct model *m = e->trainer ? trainer_model(e->trainer) : NULL;
    const bool average = e->averages && strncmp(name, "average/", 8) == 0;
    const char *wanted = average ? name + 8 : name;
    const int64_t *shape;
    const char *other;
    int64_t elements;
    int32_t ndim;

    for (int i = 0; m && (other = net_variable(m, i, &ndim, &shape, &elements));
         i++) {
        if (strcmp(other, wanted) != 0)
            continue;
        if (elements != count)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "variable '%s' has %lld elements, not %lld",
                                name, (long long)elements, (long long)count);
        memcpy(values, average ? e->averages[i] : trainer_values(e->trainer)[i],
               (size_t)count * sizeof *values);
        return 0;
    }
    return problem_fail(HVD_ERR_ARGUMENT, "there is no variable '%s'", name);
}
