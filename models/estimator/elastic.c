/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic.c - a training that goes on without ranks that are lost.
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
 * Samples since the commit are used again, for what was made of them is gone
 * with the loss: each sample of an epoch counts once, but for those at its end
 * that make no whole step. Events are lines of JSON, added by the rank that is
 * 0 at that time. What is trained follows from them: at which commits a
 * training went on, and with which ranks.
 */
#include "estimator/estimator.h"
#include "output/problem.h"
#include "trainer/agree.h"
#include "trainer/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <hvd_elastic.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RANKS = 1024 };

/* The numbers of a commit, the same on all ranks. A thread may be copying them
 * until hvd_commit_wait or hvd_restore has returned. */
struct moment_state {
    int64_t step, rows; /* rows of all ranks, as many as are in the variables */
    hvd_position position;
};

struct elastic {
    char *image; /* owned; a piece; NULL: not made yet */
    size_t bytes;
    struct moment_state now;   /* the other piece */
    int32_t size;              /* ranks of this world, */
    int32_t ranks[MOST_RANKS]; /* and their numbers in the first, [size] */
    int64_t reached, rows;     /* steps and rows of the world that was lost */
    bool failed;               /* there was a loss, and nothing restored yet */
};

/* ------------------------------------------------------------------ events */

/* Adds a line to the file of events. Takes json over. */
static int write_event(const hvd_estimator *e, json_t *json)
{
    const char *path = e->options.elastic_log;
    char *text = NULL;
    int file, status = 0;

    if (path && hvd_rank() == 0) {
        text = json_dumps(json, JSON_COMPACT);
        file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        if (!text || file < 0 || dprintf(file, "%s\n", text) < 0)
            status =
                problem_fail(HVD_ERR_FILE, "%s: %s", path, strerror(errno));
        if (file >= 0)
            close(file);
    }
    free(text);
    json_decref(json);
    return status;
}

/* Makes an event with what is known at each. */
static json_t *event(const hvd_estimator *e, const char *name)
{
    const struct moment_state *now = &e->elastic->now;
    json_t *ranks = json_array();

    for (int32_t i = 0; i < e->elastic->size; i++)
        json_array_append_new(ranks, json_integer(e->elastic->ranks[i]));
    return json_pack("{s:s,s:I,s:I,s:I,s:I,s:o}", "event", name, "step",
                     (json_int_t)now->step, "epoch",
                     (json_int_t)now->position.epoch, "samples",
                     (json_int_t)now->position.samples, "rows",
                     (json_int_t)now->rows, "ranks", ranks);
}

/* --------------------------------------------------------------- the image */

/* All that an image has: the trainer's tensors, and what else there is. */
struct parts {
    struct snapshot trainer;
    struct state more;
};

static int parts_init(struct parts *p, hvd_estimator *e)
{
    int status;

    *p = (struct parts){0};
    status = snapshot_init(&p->trainer, e->trainer);
    return status < 0 ? status : state_init(&p->more, e);
}

static void parts_fini(struct parts *p)
{
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
    size_t used = copy_list(p->trainer.list, p->trainer.count, image, out);

    return used + copy_list(p->more.list, p->more.count,
                            image ? image + used : NULL, out);
}

static int make_image(hvd_estimator *e, const struct parts *p)
{
    struct elastic *x = e->elastic;

    if (x->image)
        return 0;
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

/* The failure of a function of libhvd. */
static int failed(int status)
{
    return status < 0 ? problem_fail(status, "%s", hvd_last_error()) : 0;
}

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
    status = failed(hvd_commit_start());
    return status < 0 ? status
                      : estimator_agree(write_event(e, event(e, "commit")));
}

int elastic_commit(hvd_estimator *e, bool due)
{
    struct elastic *x = e->elastic;
    struct parts p;
    int status;

    if (!x || !due)
        return 0;
    /* The copier has had all steps since then. */
    status = failed(hvd_commit_wait());
    if (status < 0)
        return status;
    status = estimator_agree(parts_init(&p, e));
    if (status == 0)
        status = commit(e, &p);
    parts_fini(&p);
    return status;
}

int elastic_finish(hvd_estimator *e)
{
    int status;

    if (!e->elastic)
        return 0;
    status = elastic_commit(e, true);
    if (status == 0)
        status = failed(hvd_commit_wait());
    if (status == 0)
        status = estimator_agree(write_event(e, event(e, "end")));
    return status;
}

void elastic_count(hvd_estimator *e)
{
    if (e->elastic)
        e->elastic->rows +=
            e->capacity * e->options.replicas * e->workers * e->once;
}

/* ------------------------------------------------------------------ restores
 */

/* Goes on from the image: the devices, the counters and the data. */
static int adopt(hvd_estimator *e, struct parts *p)
{
    struct elastic *x = e->elastic;
    int status;

    copy_parts(p, x->image, true);
    e->step = x->now.step;
    e->position = x->now.position;
    e->placed = e->step > 0;
    status = estimator_agree(trainer_write_values(e->trainer));
    return status < 0 ? status
                      : trainer_state_write(
                            e->trainer, (const void *const *)p->trainer.data);
}

/* Says which ranks are left, by their numbers in the first world. */
static void list_left(struct elastic *x)
{
    hvd_lost_rank lost[MOST_RANKS];
    const int nlost = hvd_lost_ranks(lost, MOST_RANKS);
    int32_t kept = 0;

    for (int32_t rank = 0, at = 0; rank < x->size; rank++) {
        if (at < nlost && lost[at].rank == rank)
            at++;
        else
            x->ranks[kept++] = x->ranks[rank];
    }
    x->size = kept;
}

/* Collective: lists who is here now, whatever is known of losses. */
static int exchange_ranks(hvd_estimator *e)
{
    struct elastic *x = e->elastic;

    x->size = hvd_size();
    return failed(hvd_allgather(&e->first_rank, x->ranks, 1, HVD_INT32));
}

static int restore(hvd_estimator *e, struct parts *p)
{
    struct elastic *x = e->elastic;
    json_t *json;
    int status = hvd_restore();

    if (status <= 0)
        return status < 0 ? failed(status) : 1;
    status = exchange_ranks(e);
    if (status == 0)
        status = adopt(e, p);
    if (status < 0)
        return status;
    e->used_again += x->rows - x->now.rows;
    json = event(e, "restore");
    json_object_set_new(json, "reached", json_integer(x->reached));
    json_object_set_new(json, "again", json_integer(x->rows - x->now.rows));
    x->rows = x->now.rows;
    x->failed = false;
    return estimator_agree(write_event(e, json));
}

static int begin(hvd_estimator *e, struct parts *p)
{
    struct elastic *x = e->elastic;
    int status = estimator_agree(make_image(e, p));

    if (status < 0)
        return status;
    if (x->failed)
        status = restore(e, p);
    else
        status = 1;
    if (status <= 0)
        return status;
    if (x->failed && e->step > 0)
        return problem_fail(HVD_ERR_LOST,
                            "a rank was lost before the first commit of this "
                            "training: begin it again");
    status = exchange_ranks(e);
    if (status == 0)
        status = estimator_agree(write_event(e, event(e, "start")));
    x->failed = false;
    if (status == 0)
        status = commit(e, p);
    return status < 0 ? status : failed(hvd_commit_wait());
}

int elastic_open(hvd_estimator *e)
{
    if (e->options.elastic == 0 || e->elastic)
        return 0;
    if (hvd_size() > MOST_RANKS)
        return problem_fail(HVD_ERR_UNSUPPORTED,
                            "elastic: there are %d ranks, and it knows %d at "
                            "most",
                            hvd_size(), MOST_RANKS);
    e->first_rank = hvd_rank();
    e->elastic = calloc(1, sizeof *e->elastic);
    return e->elastic ? 0
                      : problem_fail(HVD_ERR_MEMORY, "no memory for commits");
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

void elastic_end(hvd_estimator *e)
{
    if (!e->elastic)
        return;
    if (e->elastic->image) {
        hvd_state_unregister("estimator/tensors");
        hvd_state_unregister("estimator/numbers");
    }
    free(e->elastic->image);
    free(e->elastic);
    e->elastic = NULL;
}

/* -------------------------------------------------------------------- losses
 */

static bool is_loss(void)
{
    const int status = hvd_check();

    return status == HVD_ERR_LOST || status == HVD_ERR_STALLED;
}

static json_t *describe_lost(const hvd_estimator *e)
{
    hvd_lost_rank lost[MOST_RANKS];
    const int n = hvd_lost_ranks(lost, MOST_RANKS);
    json_t *json = event(e, "loss"), *list = json_array();

    for (int i = 0; i < n && i < MOST_RANKS; i++)
        if (lost[i].rank < e->elastic->size)
            json_array_append_new(
                list, json_integer(e->elastic->ranks[lost[i].rank]));
    json_object_set_new(json, "lost", list);
    json_object_set_new(json, "reached", json_integer(e->step));
    return json;
}

int elastic_recover(hvd_estimator *e)
{
    struct elastic *x = e->elastic;
    json_t *json;

    if (!x || !is_loss())
        return 0;
    x->reached = e->step;
    x->failed = true;
    if (hvd_recover(NULL, 0) < 0)
        return problem_fail(HVD_ERR_LOST, "%s", hvd_last_error());
    json = describe_lost(e);
    list_left(x);
    /* Until hvd_recover returned, requests that failed could use this memory.
     */
    averages_fini(e);
    trainer_free(e->trainer);
    e->trainer = NULL;
    e->workers = hvd_size();
    if (write_event(e, json) < 0)
        return HVD_ERR_FILE;
    if (hvd_size() < e->options.elastic)
        return problem_fail(
            HVD_ERR_LOST,
            "%d %s left, and %s asks for %d at least: start "
            "the training again with more",
            hvd_size(), hvd_size() == 1 ? "rank is" : "ranks are",
            e->program ? "--elastic" : "elastic", (int)e->options.elastic);
    if (e->program && e->program->changed)
        e->program->changed(e->program->context, e);
    return 1;
}
