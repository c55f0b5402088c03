/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic.c - a training that goes on without ranks that are lost, and with
 * ranks that join: its commits and restores.
 *
 * What a checkpoint keeps is kept in memory, too: every so many steps all of it
 * is copied to an image, which is a piece of libhvd's state (hvd_elastic.h),
 * and committed while the next steps run. The image does not change before the
 * next commit, so nobody waits for the copy.
 *
 *     loss          a step fails, and hvd_check says that a rank is lost
 *     recover       hvd_recover: the ranks that are left have a new world
 *     rebuild       the trainer is made anew, for other ranks and gradients
 *     restore       the image is that of the newest commit of all, and goes to
 *                   the devices; the data goes on from its position, divided
 *                   among the ranks that are left
 *
 * If processes wait to join at a commit, hvd_grow makes a world with them, and
 * the rest is as after a loss (elastic_worlds.c): they get the image.
 *
 * If too few ranks are left, and nobody can come, they restore the commit too,
 * in a last world. There rank 0 writes it as a checkpoint, if there is a
 * folder, and the call fails; a job that is started again goes on from it.
 * Checkpoints are of complete commits only: so what is on the disk is never of
 * a state that the training has gone back from.
 *
 * Samples since the commit are used again, for what was made of them is gone
 * with the loss: each sample of an epoch counts once, but for those at its end
 * that make no whole step. Events are lines of JSON, added by the rank that is
 * 0 at that time. What is trained follows from them: at which commits a
 * training went on, and with which ranks.
 */
#include "estimator/elastic.h"
#include "output/problem.h"
#include "trainer/snapshot.h"

#include <hvd_elastic.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- the image */

/* All that an image has: the trainer's tensors, and what else there is. */
struct parts {
    struct snapshot trainer;
    hvd_checkpoint_tensor *sorted; /* owned: the trainer's, by their names.
                                      Their own order is another one if there is
                                      one rank only, whose device updates */
    struct state more;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const hvd_checkpoint_tensor *)a)->name,
                  ((const hvd_checkpoint_tensor *)b)->name);
}

static int parts_init(struct parts *p, hvd_estimator *e)
{
    size_t count;
    int status;

    *p = (struct parts){0};
    status = snapshot_init(&p->trainer, e->trainer);
    if (status < 0)
        return status;
    count = (size_t)p->trainer.count;
    p->sorted = malloc((count + 1) * sizeof *p->sorted);
    if (!p->sorted)
        return problem_fail(HVD_ERR_MEMORY, "no memory for commits");
    memcpy(p->sorted, p->trainer.list, count * sizeof *p->sorted);
    qsort(p->sorted, count, sizeof *p->sorted, compare_names);
    return state_init(&p->more, e);
}

static void parts_fini(struct parts *p)
{
    free(p->sorted);
    snapshot_fini(&p->trainer);
    state_fini(&p->more);
}

static size_t copy_list(const hvd_checkpoint_tensor *list, int count,
                        char *image, bool out)
{
    size_t used = 0;

    for (int i = 0; i < count; i++) {
        const size_t bytes = (size_t)snapshot_elements(&list[i]) *
                             (size_t)hvd_dtype_size(list[i].dtype);

        if (image && out)
            memcpy(list[i].data, image + used, bytes);
        else if (image)
            memcpy(image + used, list[i].data, bytes);
        used += bytes;
    }
    return used;
}

/* Copies everything to the image, or from it. Returns its bytes. */
static size_t copy_parts(const struct parts *p, char *image, bool out)
{
    size_t used = copy_list(p->sorted, p->trainer.count, image, out);

    return used + copy_list(p->more.list, p->more.count,
                            image ? image + used : NULL, out);
}

static int make_image(hvd_estimator *e, const struct parts *p)
{
    struct elastic *x = e->elastic;

    if (x->image)
        return copy_parts(p, NULL, false) == x->bytes
                   ? 0
                   : problem_fail(HVD_ERR_INTERNAL,
                                  "the state of this training has not the "
                                  "%zu bytes that it had in an earlier world",
                                  x->bytes);
    x->bytes = copy_parts(p, NULL, false);
    x->image = calloc(1, x->bytes + 1);
    if (!x->image)
        return problem_fail(HVD_ERR_MEMORY, "no memory for commits");
    if (hvd_state_register("estimator/tensors", x->image, x->bytes, 0) < 0 ||
        hvd_state_register("estimator/numbers", &x->now, sizeof x->now, 0) < 0)
        return problem_fail(HVD_ERR_ARGUMENT, "%s", hvd_last_error());
    return 0;
}

/* ------------------------------------------------------------------ commits */

/* Collective: fills the image with what is now, and commits it. */
static int commit(hvd_estimator *e, struct parts *p)
{
    struct elastic *x = e->elastic;
    int status = trainer_read_statistics(e->trainer);

    if (status == 0)
        status = agree_average(&e->numbers[NUMBER_RECENT], 1);
    if (status == 0)
        status = estimator_agree(snapshot_take(&p->trainer));
    if (status < 0)
        return status;
    copy_parts(p, x->image, false);
    x->now.step = e->step;
    x->now.rows = x->rows;
    x->now.position = e->position;
    x->now.first_step = e->first_step;
    x->now.log_step_count_steps = e->options.log_step_count_steps;
    x->now.saved_step = e->saved_step;
    x->now.rate = e->options.rate;
    x->now.rate.boundaries = NULL;
    x->now.rate.values = NULL;
    memcpy(x->now.own, e->own, sizeof e->own);
    status = elastic_failed(hvd_commit_start());
    return status < 0
               ? status
               : estimator_agree(elastic_write(e, elastic_event(e, "commit")));
}

/* Collective: does so when the commit before is complete. */
static int commit_next(hvd_estimator *e)
{
    struct parts p;
    /* The copier has had all steps since then. */
    int status = elastic_failed(hvd_commit_wait());

    if (status < 0)
        return status;
    status = estimator_agree(parts_init(&p, e));
    if (status == 0)
        status = commit(e, &p);
    parts_fini(&p);
    return status;
}

int elastic_commit(hvd_estimator *e, bool whole)
{
    int status = commit_next(e);

    return status < 0 || !whole ? status : elastic_failed(hvd_commit_wait());
}

int elastic_save(hvd_estimator *e)
{
    const int status =
        estimator_agree(hvd_rank() == 0 ? resume_save(e, false) : 0);

    if (status == 0)
        e->saved_step = e->step;
    return status;
}

/* Saves the committed end, unless rank 0 knows that it has been saved. */
static int save_end(hvd_estimator *e)
{
    const bool is_there = e->final && e->saved_step == e->step;
    int status;

    if (!e->options.model_dir)
        return 0;
    status = estimator_agree(hvd_rank() == 0 && !is_there ? resume_save(e, true)
                                                          : 0);
    return status < 0
               ? status
               : hooks_call(e, MOMENT_AFTER_CHECKPOINT, (double)NAN, NULL);
}

/* No rank is over before all have dismissed the spares: the last agreement is
 * behind that. */
int elastic_finish(hvd_estimator *e)
{
    int status;

    if (!e->elastic)
        return 0;
    status = elastic_commit(e, true);
    if (status == 0)
        status = save_end(e);
    if (status == 0)
        status = elastic_failed(hvd_dismiss_spares());
    if (status == 0)
        status = estimator_agree(elastic_write(e, elastic_event(e, "end")));
    return status;
}

void elastic_count(hvd_estimator *e)
{
    if (e->elastic)
        e->elastic->rows +=
            e->capacity * e->options.replicas * e->workers * e->once;
}

/* ----------------------------------------------------------------- restores */

/* Goes on from the image: the devices, the counters and the data. */
static int adopt(hvd_estimator *e, struct parts *p)
{
    struct elastic *x = e->elastic;
    int status;

    copy_parts(p, x->image, true);
    e->step = x->now.step;
    e->position = x->now.position;
    e->first_step = x->now.first_step;
    e->saved_step = x->now.saved_step;
    e->options.log_step_count_steps = x->now.log_step_count_steps;
    x->now.rate.boundaries = e->options.rate.boundaries;
    x->now.rate.values = e->options.rate.values;
    e->options.rate = x->now.rate;
    memcpy(e->own, x->now.own, sizeof e->own);
    status = estimator_agree(trainer_write_values(e->trainer));
    return status < 0 ? status
                      : trainer_state_write(
                            e->trainer, (const void *const *)p->trainer.data);
}

/* Says from where the training goes on, and who has joined. */
static int tell_restore(const hvd_estimator *e, json_t *joined)
{
    const struct elastic *x = e->elastic;
    json_t *json = elastic_event(e, x->lost ? "restore" : "join");

    json_object_set_new(json, "reached", json_integer(x->reached));
    json_object_set_new(json, "again", json_integer(x->rows - x->now.rows));
    if (json_array_size(joined) > 0)
        json_object_set(json, "joined", joined);
    return estimator_agree(elastic_write(e, json));
}

/* Saves the commit that was restored, for a job of more ranks to go on from. */
static int end_short(hvd_estimator *e)
{
    char more[600];
    int status;

    if (!e->options.model_dir)
        return elastic_stop(e);
    status = estimator_agree(hvd_rank() == 0 ? resume_save(e, false) : 0);
    if (status == 0)
        status = estimator_agree(
            hvd_rank() == 0 ? hvd_checkpoint_wait(e->writer) : 0);
    if (status == 0)
        status = estimator_agree(elastic_write(e, elastic_describe_stop(e)));
    e->has_too_few = true;
    if (status < 0)
        return status;
    snprintf(more, sizeof more, "; it goes on from step %lld, in %s",
             (long long)e->step, e->options.model_dir);
    return elastic_fail_short(e, more);
}

/* Returns 1 if there is no commit. */
static int restore(hvd_estimator *e, struct parts *p)
{
    struct elastic *x = e->elastic;
    json_t *joined = NULL;
    int status = hvd_restore();

    if (status <= 0)
        return status < 0 ? elastic_failed(status) : 1;
    status = adopt(e, p);
    if (e->counts.number == ELASTIC_NEWCOMER)
        x->rows = x->now.rows;
    else
        e->counts.used_again += x->rows - x->now.rows;
    if (status == 0)
        status = elastic_meet(e, &joined);
    if (status == 0)
        status = tell_restore(e, joined);
    json_decref(joined);
    if (status < 0)
        return status;
    x->rows = x->now.rows;
    x->goes_on = x->lost = false;
    x->committed = true;
    elastic_note_told(x);
    return x->ends ? end_short(e) : 0;
}

/* Returns whether a rank is here that has no number yet, as all ranks know. */
static bool has_newcomer(const struct elastic *x)
{
    bool found = false;

    for (int32_t i = 0; i < x->size; i++)
        found |= x->ranks[i] == ELASTIC_NEWCOMER;
    return found;
}

static int begin(hvd_estimator *e, struct parts *p)
{
    struct elastic *x = e->elastic;
    json_t *joined = NULL;
    int status = estimator_agree(make_image(e, p));

    if (status < 0)
        return status;
    status = x->goes_on ? restore(e, p) : 1;
    if (status <= 0)
        return status;
    if (x->ends)
        return elastic_stop(e);
    if (x->goes_on && !x->resumed && (e->step > 0 || has_newcomer(x))) {
        e->starts_again = has_newcomer(x);
        return problem_fail(HVD_ERR_LOST,
                            "a rank was lost before the first commit of this "
                            "training: begin it again");
    }
    status = elastic_meet(e, &joined);
    json_decref(joined);
    if (status == 0)
        status = estimator_agree(elastic_write(e, elastic_describe_start(e)));
    x->goes_on = x->lost = false;
    if (status == 0)
        elastic_note_told(x);
    e->first_step = e->step;
    if (status == 0)
        status = commit(e, p);
    if (status == 0)
        status = elastic_failed(hvd_commit_wait());
    x->committed = status == 0;
    return status;
}

int elastic_begin(hvd_estimator *e)
{
    struct parts p;
    int status;

    if (!e->elastic)
        return 0;
    status = estimator_agree(parts_init(&p, e));
    if (status == 0)
        status = begin(e, &p);
    parts_fini(&p);
    return status;
}
