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

/* Without a folder, only what hooks have is listed. */
static int tensors_init(struct tensors *t, hvd_estimator *e)
{
    int status = 0;

    *t = (struct tensors){0};
    if (e->options.model_dir)
        status = snapshot_init(&t->trainer, e->trainer);
    return status < 0 ? status : state_init(&t->more, e);
}

static void tensors_fini(struct tensors *t)
{
    snapshot_fini(&t->trainer);
    state_fini(&t->more);
}

/* ------------------------------------------------------------------ writing */

static int open_writer(hvd_estimator *e)
{
    hvd_checkpoint_options options;

    if (e->writer)
        return 0;
    hvd_checkpoint_options_init(&options, sizeof options);
    options.keep_max = e->options.keep_checkpoint_max;
    options.inherits = elastic_has_changed(e);
    return hvd_checkpoint_writer_open(e->options.model_dir, &options,
                                      &e->writer);
}

/* A number of an elastic training has this name in checkpoints. */
struct number {
    const char *name;
    int64_t *value;
};

enum { ELASTIC_NUMBERS = 7 + ESTIMATOR_OWN };

static void list_elastic(struct elastic_kept *k,
                         struct number list[ELASTIC_NUMBERS])
{
    struct elastic_counts *c = &k->counts;
    const struct number numbers[ELASTIC_NUMBERS] = {
        {"elastic.rows", &k->rows},
        {"elastic.numbered", &c->numbered},
        {"elastic.first_size", &c->first_size},
        {"elastic.most", &c->most},
        {"elastic.used_again", &c->used_again},
        {"elastic.restarts", &c->restarts},
        {"elastic.restarted", &c->restarted},
        {"elastic.own0", &k->own[0]},
        {"elastic.own1", &k->own[1]}};

    memcpy(list, numbers, sizeof numbers);
}

static void describe_elastic(const hvd_estimator *e, json_t *json)
{
    struct elastic_kept kept = elastic_keep(e);
    struct number list[ELASTIC_NUMBERS];
    json_t *numbers = json_object();

    list_elastic(&kept, list);
    for (int i = 0; i < ELASTIC_NUMBERS; i++)
        json_object_set_new(numbers, strchr(list[i].name, '.') + 1,
                            json_integer(*list[i].value));
    if (kept.rows >= 0)
        json_object_set(json, "elastic", numbers);
    json_decref(numbers);
}

/* Returns what a checkpoint says of the training, to be freed. */
static char *describe(const hvd_estimator *e)
{
    const struct estimator_program *p = e->program;
    json_t *json =
        json_pack("{s:{s:I,s:I,s:s,s:i},s:s,s:i,s:i,s:i,s:i,s:s}", "data",
                  "epoch", (json_int_t)e->position.epoch, "samples",
                  (json_int_t)e->position.samples, "seed", "", "workers",
                  (int)e->position.workers, "optimizer", e->options.optimizer,
                  "accumulate", (int)e->options.accumulate, "workers",
                  e->workers, "replicas", (int)e->options.replicas, "stopped",
                  (int)e->stops, "version", hvd_version());
    char seed[24], *text;

    describe_elastic(e, json);
    if (p)
        json_object_set_new(json, "program", json_string(p->name));
    for (int i = 0; p && i < p->nmarks; i++)
        json_object_set_new(json, p->marks[i].name,
                            json_integer(p->marks[i].value));
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
    e->final = final && status >= 0;
    return status < 0 ? status : 0;
}

/* ------------------------------------------------------------------ reading */

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

/* Reads what an elastic training keeps, before a training, which must be
 * elastic if that one was: the steps are others. */
static int read_elastic(const hvd_estimator *e,
                        const hvd_checkpoint *checkpoint,
                        struct elastic_kept *kept)
{
    struct number list[ELASTIC_NUMBERS];

    *kept = (struct elastic_kept){.rows = -1};
    list_elastic(kept, list);
    for (int i = 0; i < ELASTIC_NUMBERS; i++)
        hvd_checkpoint_get_int(checkpoint, list[i].name, list[i].value);
    if (!e->input || (kept->rows >= 0) == (e->elastic != NULL))
        return 0;
    return problem_fail(HVD_ERR_FILE,
                        "%s: it is of a training %s %s, whose steps have not "
                        "as many rows: train as that one did, or name another "
                        "folder",
                        hvd_checkpoint_path(checkpoint),
                        e->elastic ? "without" : "with",
                        e->program ? "--elastic" : "elastic");
}

/* Checks that a pipeline, which makes whole updates, can go on from a step. */
static int check_step(const hvd_estimator *e, const hvd_checkpoint *checkpoint,
                      int64_t step)
{
    int64_t update = 1;

    hvd_checkpoint_get_int(checkpoint, "accumulate", &update);
    if (e->once == 1 || update < 1 || step % update == 0)
        return 0;
    return problem_fail(HVD_ERR_UNSUPPORTED,
                        "%s: step %lld is between two updates, of %lld steps "
                        "each, and stages make whole ones: train it to the "
                        "next without stages",
                        hvd_checkpoint_path(checkpoint), (long long)step,
                        (long long)update);
}

/* Checks that a checkpoint is of the same optimiser. */
static int check_optimizer(const hvd_estimator *e,
                           const hvd_checkpoint *checkpoint)
{
    const char *other;

    if (e->watches ||
        hvd_checkpoint_get_text(checkpoint, "optimizer", &other) < 0 ||
        strcmp(other, e->options.optimizer) == 0)
        return 0;
    return problem_fail(HVD_ERR_FILE,
                        "%s: it has the state of %s: train by that optimizer, "
                        "or name another folder",
                        hvd_checkpoint_path(checkpoint), other);
}

static int check_mark(const hvd_checkpoint *checkpoint,
                      const struct estimator_mark *mark)
{
    int64_t saved;

    if (hvd_checkpoint_get_int(checkpoint, mark->name, &saved) < 0)
        return problem_fail(HVD_ERR_FILE,
                            "%s: it does not say \"%s\", so that its "
                            "training cannot go on: name another folder",
                            hvd_checkpoint_path(checkpoint), mark->name);
    if (saved == mark->value)
        return 0;
    return problem_fail(HVD_ERR_FILE,
                        "%s: it is of another training: %s: %lld then, %lld "
                        "now. Give what was given then, or name another folder",
                        hvd_checkpoint_path(checkpoint), mark->what,
                        (long long)saved, (long long)mark->value);
}

/* Checks that a checkpoint is of a training like this one. */
static int check_marks(const hvd_estimator *e, const hvd_checkpoint *checkpoint)
{
    const struct estimator_program *p = e->program;
    const char *name;
    int status = 0;

    if (p && !e->watches &&
        (hvd_checkpoint_get_text(checkpoint, "program", &name) < 0 ||
         strcmp(name, p->name) != 0))
        return problem_fail(HVD_ERR_FILE,
                            "%s: it is no checkpoint of %s: name another "
                            "folder",
                            hvd_checkpoint_path(checkpoint), p->name);
    for (int i = 0; p && !e->watches && i < p->nmarks && status == 0; i++)
        status = check_mark(checkpoint, &p->marks[i]);
    return status < 0 ? status : check_optimizer(e, checkpoint);
}

/* Rank 0: reads the newest checkpoint. *step stays -1 if there is none. */
static int read_newest(hvd_estimator *e, struct tensors *t, int64_t *step,
                       struct elastic_kept *kept)
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
        status = read_elastic(e, checkpoint, kept);
    if (status == 0)
        status = check_marks(e, checkpoint);
    if (status == 0)
        status = read_position(checkpoint, &e->position);
    if (status == 0)
        status = check_step(e, checkpoint, info.step);
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
        e->written = (double)info.time;
        snprintf(e->resumed, sizeof e->resumed, "%s",
                 hvd_checkpoint_path(checkpoint));
        snprintf(e->passed_over, sizeof e->passed_over, "%s",
                 hvd_checkpoint_passed_over(checkpoint));
    }
    hvd_checkpoint_close(checkpoint);
    return status < 0 ? status : 0;
}

/* Rank 0: does so; before a training, once it is certain that checkpoints can
 * be written. */
static int look_for_newest(hvd_estimator *e, struct tensors *t, int64_t *step,
                           struct elastic_kept *kept)
{
    int status = e->input ? open_writer(e) : 0;

    if (status == 0)
        status = read_newest(e, t, step, kept);
    if (status < 0)
        return problem_fail(status, "%s %s: %s",
                            e->program ? e->program->folder : "model_dir",
                            e->options.model_dir, hvd_last_error());
    return 0;
}

/* Sends what rank 0 has read, and gives it to the devices. */
static int spread(hvd_estimator *e, struct tensors *t,
                  struct elastic_kept *kept)
{
    int status = agree_send(&e->position, sizeof e->position, HVD_UINT8);

    if (status == 0)
        status = agree_send(kept, sizeof *kept, HVD_UINT8);
    if (status == 0)
        status = snapshot_send(t->more.list, t->more.count);
    if (status == 0)
        status = snapshot_spread(&t->trainer);
    return estimator_agree(status);
}

int resume_load(hvd_estimator *e)
{
    struct elastic_kept kept = {.rows = -1};
    struct tensors t;
    int64_t step = -1;
    int status = tensors_init(&t, e);

    if (status == 0 && e->options.model_dir && hvd_rank() == 0 &&
        !elastic_is_committed(e))
        status = look_for_newest(e, &t, &step, &kept);
    status = estimator_agree(status);
    if (status == 0)
        status = agree_send(&step, 1, HVD_INT64);
    if (status == 0 && step < 0 && !elastic_has_changed(e))
        evaluations_skip(e);
    if (status == 0 && step >= 0) {
        status = spread(e, &t, &kept);
        e->step = e->saved_step = step;
        elastic_take_up(e, &kept);
    }
    tensors_fini(&t);
    averages_start(e);
    return status;
}
