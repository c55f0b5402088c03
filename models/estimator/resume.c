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
#include "trainer/snapshot.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* All tensors of a checkpoint: those of the trainer, and what else there is. */
struct tensors {
    struct snapshot trainer;
    struct state more;
};

static int tensors_init(struct tensors *t, hvd_estimator *e)
{
    int status;

    *t = (struct tensors){0};
    status = snapshot_init(&t->trainer, e->trainer);
    return status < 0 ? status : state_init(&t->more, e);
}

static void tensors_fini(struct tensors *t)
{
    snapshot_fini(&t->trainer);
    state_fini(&t->more);
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

static int save(hvd_estimator *e, const struct tensors *t,
                const hvd_checkpoint_info *info)
{
    const int count = t->trainer.count + t->more.count;
    hvd_checkpoint_tensor *list = malloc(((size_t)count + 1) * sizeof *list);
    int status;

    if (!list)
        return problem_fail(HVD_ERR_MEMORY, "no memory for a checkpoint");
    memcpy(list, t->trainer.list, (size_t)t->trainer.count * sizeof *list);
    memcpy(list + t->trainer.count, t->more.list,
           (size_t)t->more.count * sizeof *list);
    status = hvd_checkpoint_save(e->writer, info, list, count);
    free(list);
    return status;
}

int resume_save(hvd_estimator *e, bool final)
{
    hvd_checkpoint_info info;
    struct tensors t;
    char *text = NULL;
    int status = tensors_init(&t, e);

    if (status == 0)
        status = snapshot_take(&t.trainer);
    if (status == 0)
        status = open_writer(e);
    if (status == 0 && !(text = describe(e)))
        status = problem_fail(HVD_ERR_MEMORY, "no memory for a checkpoint");
    if (status == 0) {
        hvd_checkpoint_info_init(&info, sizeof info);
        info.step = e->step;
        info.final = final;
        info.json = text;
        status = save(e, &t, &info);
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
        status = snapshot_read(&t->trainer, checkpoint, info.step,
                               e->options.accumulate);
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

    if (status == 0)
        status = snapshot_send(t->more.list, t->more.count);
    if (status == 0)
        status = snapshot_spread(&t->trainer);
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
