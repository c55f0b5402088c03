/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume.c - checkpoints of an estimator. Rank 0 writes and reads them, and
 * sends what it has read to all: the other ranks need not see the folder.
 */
#include "estimator/estimator.h"
#include "net/make.h"
#include "output/clock.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* All tensors of a checkpoint: those of the model, the trainer's state, and
 * what else there is. */
struct tensors {
    hvd_checkpoint_tensor *list;  /* owned, [count] */
    struct trainer_state *states; /* owned, [nstates] */
    struct state more;
    int nvariables, nstates, count;
};

static void tensors_fini(struct tensors *t)
{
    for (int i = 0; i < t->nstates && t->list; i++)
        free(t->list[t->nvariables + i].data);
    free(t->list);
    free(t->states);
    state_fini(&t->more);
}

/* Lists the tensors. The trainer's state gets memory, the others lie where they
 * are used. */
static int tensors_init(struct tensors *t, hvd_estimator *e)
{
    const struct model *m = trainer_model(e->trainer);
    struct trainer_state state;
    struct state more;
    int nvariables = 0, nstates = 0, status = state_init(&more, e);
    const int64_t *shape;
    int64_t count;
    int32_t ndim;

    while (net_variable(m, nvariables, &ndim, &shape, &count))
        nvariables++;
    while (trainer_state(e->trainer, nstates, &state))
        nstates++;
    *t = (struct tensors){
        .list = calloc((size_t)(nvariables + nstates + more.count) + 1,
                       sizeof *t->list),
        .states = calloc((size_t)nstates + 1, sizeof *t->states),
        .more = more,
        .nvariables = nvariables,
        .nstates = nstates,
        .count = nvariables + nstates + more.count};
    if (status < 0)
        return status;
    if (!t->list || !t->states)
        return problem_fail(HVD_ERR_MEMORY, "no memory for a checkpoint");
    for (int i = 0; i < nvariables; i++) {
        hvd_checkpoint_tensor *one = &t->list[i];

        one->name = net_variable(m, i, &one->ndim, &one->shape, &count);
        one->dtype = HVD_FLOAT32;
        one->data = trainer_values(e->trainer)[i];
    }
    for (int i = 0; i < nstates; i++) {
        struct trainer_state *s = &t->states[i];

        trainer_state(e->trainer, i, s);
        t->list[nvariables + i] = (hvd_checkpoint_tensor){
            .name = s->name,
            .dtype = s->is_int ? HVD_INT32 : HVD_FLOAT32,
            .ndim = s->ndim,
            .shape = s->shape,
            .data = malloc((size_t)s->count * sizeof(float) + 1)};
        if (!t->list[nvariables + i].data)
            return problem_fail(HVD_ERR_MEMORY, "no memory for a checkpoint");
    }
    for (int i = 0; i < more.count; i++)
        t->list[nvariables + nstates + i] = more.list[i];
    return 0;
}

static void *state_of(const struct tensors *t, int i)
{
    return t->list[t->nvariables + i].data;
}

/* ------------------------------------------------------------------- writing
 */

static int open_writer(hvd_estimator *e)
{
    hvd_checkpoint_options options;

    if (e->writer)
        return 0;
    hvd_checkpoint_options_init(&options, sizeof options);
    options.keep_max = e->options.keep_checkpoint_max;
    return hvd_checkpoint_writer_open(e->options.model_dir, &options,
                                      &e->writer);
}

/* Returns what a checkpoint says of the training, to be freed. */
static char *describe(const hvd_estimator *e)
{
    json_t *json =
        json_pack("{s:{s:I,s:I,s:s,s:i},s:s,s:i,s:i,s:i,s:i,s:s}", "data",
                  "epoch", (json_int_t)e->position.epoch, "samples",
                  (json_int_t)e->position.samples, "seed", "", "workers",
                  (int)e->position.workers, "optimizer", e->options.optimizer,
                  "accumulate", (int)e->options.accumulate, "workers",
                  hvd_size(), "replicas", (int)e->options.replicas, "stopped",
                  (int)e->stops, "version", hvd_version());
    char seed[24], *text;

    /* A seed may be larger than JSON's integers. */
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)e->position.seed);
    json_object_set_new(json_object_get(json, "data"), "seed",
                        json_string(seed));
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

int resume_save(hvd_estimator *e, bool final)
{
    hvd_checkpoint_info info;
    struct tensors t;
    char *text = NULL;
    int status = tensors_init(&t, e);

    for (int i = 0; i < t.nstates && status == 0; i++)
        status = trainer_state_read(e->trainer, &t.states[i], state_of(&t, i));
    if (status == 0)
        status = open_writer(e);
    if (status == 0 && !(text = describe(e)))
        status = problem_fail(HVD_ERR_MEMORY, "no memory for a checkpoint");
    if (status == 0) {
        hvd_checkpoint_info_init(&info, sizeof info);
        info.step = e->step;
        info.final = final;
        info.json = text;
        status = hvd_checkpoint_save(e->writer, &info, t.list, t.count);
    }
    if (status >= 0 && final)
        status = hvd_checkpoint_wait(e->writer);
    free(text);
    tensors_fini(&t);
    e->saved_at = clock_seconds();
    e->saved_step = e->step;
    return status < 0 ? status : 0;
}

/* ------------------------------------------------------------------- reading
 */

static int read_position(const hvd_checkpoint *checkpoint, hvd_position *p)
{
    const char *seed;
    int64_t workers;

    p->size = sizeof *p;
    if (hvd_checkpoint_get_int(checkpoint, "data.epoch", &p->epoch) < 0 ||
        hvd_checkpoint_get_int(checkpoint, "data.samples", &p->samples) < 0 ||
        hvd_checkpoint_get_int(checkpoint, "data.workers", &workers) < 0 ||
        hvd_checkpoint_get_text(checkpoint, "data.seed", &seed) < 0)
        return problem_fail(HVD_ERR_FILE,
                            "%s: it has no position in the data, as those of "
                            "an estimator have",
                            hvd_checkpoint_path(checkpoint));
    p->workers = (int32_t)workers;
    p->seed = strtoull(seed, NULL, 10);
    return 0;
}

/*
 * Reads the trainer's state. A training that begins to skip updates counts them
 * by itself: before that, all that there were.
 */
static int read_states(const hvd_estimator *e, const struct tensors *t,
                       const hvd_checkpoint *checkpoint, int64_t step)
{
    int status = 0;

    for (int i = 0; i < t->nstates && status >= 0; i++) {
        const hvd_checkpoint_tensor *one = &t->list[t->nvariables + i];
        hvd_checkpoint_tensor there;

        if (strcmp(one->name, "updates") == 0 && one->dtype == HVD_INT32 &&
            hvd_checkpoint_find(checkpoint, one->name, &there) < 0)
            *(int32_t *)one->data = (int32_t)(step / e->options.accumulate);
        else
            status = hvd_checkpoint_restore(checkpoint, one, 1, NULL, 0, 0);
    }
    return status;
}

/* Rank 0: reads the newest checkpoint. *step stays -1 if there is none. */
static int read_newest(hvd_estimator *e, struct tensors *t, int64_t *step)
{
    hvd_checkpoint *checkpoint = NULL;
    hvd_checkpoint_info info;
    int64_t stopped = 0;
    int status = hvd_checkpoint_open(e->options.model_dir, &checkpoint);

    if (status != 0)
        return status < 0 ? status : 0;
    hvd_checkpoint_info_init(&info, sizeof info);
    status = hvd_checkpoint_get_info(checkpoint, &info);
    if (status == 0)
        status = read_position(checkpoint, &e->position);
    if (status == 0)
        status = hvd_checkpoint_restore(checkpoint, t->list, t->nvariables,
                                        NULL, 0, 0);
    if (status >= 0)
        status = read_states(e, t, checkpoint, info.step);
    if (status >= 0)
        status = state_read(&t->more, checkpoint);
    if (status >= 0) {
        *step = info.step;
        e->final = info.final;
        hvd_checkpoint_get_int(checkpoint, "stopped", &stopped);
        e->stopped = stopped != 0;
    }
    hvd_checkpoint_close(checkpoint);
    if (status < 0)
        return problem_fail(status, "model_dir %s: %s", e->options.model_dir,
                            hvd_last_error());
    return 0;
}

static int send(void *data, int64_t count, hvd_dtype dtype)
{
    int status = hvd_broadcast(data, count, dtype, 0);

    return status < 0 ? agree_hvd_problem(status) : 0;
}

/* Sends what rank 0 has read, and gives it to the devices. */
static int spread(hvd_estimator *e, struct tensors *t)
{
    int status = send(&e->position, sizeof e->position, HVD_UINT8);

    for (int i = 0; i < t->count && status == 0; i++)
        status = send(t->list[i].data, estimator_elements(&t->list[i]),
                      t->list[i].dtype);
    if (status < 0)
        return status;
    status = trainer_write_values(e->trainer);
    for (int i = 0; i < t->nstates && status == 0; i++)
        status = trainer_state_write(e->trainer, &t->states[i], state_of(t, i));
    return estimator_agree(status);
}

int resume_load(hvd_estimator *e)
{
    struct tensors t;
    int64_t step = -1;
    int status = tensors_init(&t, e);

    if (status == 0 && e->options.model_dir && hvd_rank() == 0)
        status = read_newest(e, &t, &step);
    status = estimator_agree(status);
    if (status == 0)
        status = send(&step, 1, HVD_INT64);
    if (status == 0 && step < 0)
        evaluations_skip(e);
    if (status == 0 && step >= 0) {
        status = spread(e, &t);
        e->step = e->saved_step = step;
        e->placed = true;
    }
    tensors_fini(&t);
    averages_start(e);
    return status;
}
