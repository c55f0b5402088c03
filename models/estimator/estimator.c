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

int estimator_agree(int status)
{
    const int own = status;
    char text[4096];

    snprintf(text, sizeof text, "%s", problem_text());
    status = agree(own);
    if (status == PROBLEM_ELSEWHERE)
        return problem_fail(HVD_ERR_PEER, "another rank has failed, and says "
                                          "why");
    /* If this rank did not fail, the agreement did, and has its own text. */
    return status < 0 ? problem_fail(HVD_ERR_ARGUMENT, "%s",
                                     own < 0 ? text : problem_text())
                      : 0;
}

int hvd_estimator_new(const hvd_estimator_options *options,
                      hvd_estimator **estimator)
{
    hvd_estimator_options own;
    hvd_estimator *e;
    int status = estimator_take_options(&own, options);

    *estimator = NULL;
    if (status < 0)
        return status;
    if (hvd_is_initialized() != 1)
        return problem_fail(HVD_ERR_NOT_INITIALIZED,
                            "estimator: call hvd_init first");
    if (own.servers >= hvd_size())
        return problem_fail(HVD_ERR_ARGUMENT,
                            "estimator: servers is %d of %d ranks, which "
                            "leaves no worker: start more processes",
                            (int)own.servers, hvd_size());
    status = cluster_arrive(own.elastic > 0);
    if (status < 0)
        return status;
    e = calloc(1, sizeof *e);
    if (!e)
        return problem_fail(HVD_ERR_MEMORY, "no memory for an estimator");
    e->options = own;
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

/* A program is in one call from its begin to its end (ranks.c). */
void estimator_adopt(hvd_estimator *e, const struct estimator_program *program)
{
    e->program = program;
    e->workers = program->workers;
    e->calls = 1;
}

/* -------------------------------------------------------------- the trainer */

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

/* Fills from the data of the training now. */
static int fill(void *context, int64_t number, void **inputs)
{
    return input_fill(((hvd_estimator *)context)->input, number, inputs);
}

/* Has parameter servers serve again. */
static int start_again(const hvd_estimator *e, const struct input *in)
{
    int status = estimator_agree(in ? 0 : PROBLEM);

    return status == 0 ? estimator_agree(trainer_start(e->trainer)) : status;
}

int estimator_open(const hvd_estimator *e, hvd_dataset *data, bool exact,
                   struct input *in)
{
    hvd_input_context of;

    hvd_input_context_init(&of, sizeof of);
    of.num_input_pipelines = e->workers;
    of.input_pipeline_id = hvd_rank();
    of.replicas = exact ? e->options.replicas : 1;
    return input_open(in, data, &of, exact);
}

int estimator_prepare(hvd_estimator *e, const struct input *in)
{
    struct trainer_options options = estimator_trainer_options(e);
    struct model *model = NULL;
    int status;

    if (e->trainer)
        return start_again(e, in);
    options.fill = fill;
    options.fill_context = e;
    options.evaluates = e->watches;
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
    if (!elastic_has_changed(e))
        e->saved_at = clock_seconds();
    e->once = trainer_steps(e->trainer);
    status = estimator_agree(averages_init(e));
    if (status == 0)
        status = resume_load(e);
    if (status == 0 && e->options.log_dir)
        status = estimator_agree(record_open(e));
    return status;
}

/* -------------------------------------------------------- what is known now */

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
