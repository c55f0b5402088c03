/* SPDX-License-Identifier: Apache-2.0 */
#include "command/checkpoints.h"

#include "files/safetensors.h"
#include "output/problem.h"
#include "trainer/agree.h"
#include "trainer/snapshot.h"

#include <stdlib.h>
#include <string.h>

static const char option[] = CHECKPOINT_OPTION;

/* Puts the option in front of the text. Returns PROBLEM. */
static int set_failed(void)
{
    return problem_set("%s %s", option, problem_text());
}

int checkpoints_prepare(struct command *command, const char *folder)
{
    if (!folder)
        return 0;
    return hvd_checkpoint_writer_open(folder, NULL, &command->checkpoints) < 0
               ? set_failed()
               : 0;
}

void checkpoints_close(struct training_run *run)
{
    hvd_checkpoint_close(run->resumed);
    hvd_checkpoint_writer_close(run->command->checkpoints);
    run->resumed = NULL;
    run->command->checkpoints = NULL;
}

hvd_checkpoint_tensor *checkpoints_tensors(struct safetensors_tensor *tensors,
                                           int count, float *const *values)
{
    hvd_checkpoint_tensor *made =
        tensors ? calloc((size_t)count + 1, sizeof *made) : NULL;

    if (tensors && !made)
        problem_set("out of memory");
    for (int i = 0; made && i < count; i++)
        made[i] = (hvd_checkpoint_tensor){tensors[i].name, HVD_FLOAT32,
                                          tensors[i].ndim, tensors[i].shape,
                                          values[i]};
    free(tensors);
    return made;
}

/* ------------------------------------------------------------------ going on
 */

/* What must be the same for a training to go on with the steps that it would
 * have had: each follows from the number of the step, and from these. */
struct mark {
    const char *name; /* in the checkpoint */
    const char *what; /* in messages */
    int64_t value;
};

enum { MARKS = 3 };

static void set_marks(const struct training_run *run, struct mark marks[MARKS])
{
    const struct outcome *o = &run->outcome;

    marks[0] = (struct mark){"seed", "--seed", (int64_t)run->options->seed};
    marks[1] =
        (struct mark){"examples", "so many examples to train on", o->examples};
    marks[2] = (struct mark){"global_batch",
                             "so many in a step of all ranks (--global-batch)",
                             o->per_step * o->world_size};
}

/* Rank 0: checks that a checkpoint is of a training like this one. */
static int check_marks(const struct training_run *run,
                       const hvd_checkpoint *checkpoint)
{
    struct mark marks[MARKS];
    const char *optimizer = optimizer_names[run->options->optimizer.optimizer];
    const char *program, *other;
    int64_t saved;

    if (hvd_checkpoint_get_text(checkpoint, "program", &program) < 0 ||
        strcmp(program, run->command->program) != 0)
        return problem_set("%s %s: it is no checkpoint of %s: name another "
                           "folder",
                           option, hvd_checkpoint_path(checkpoint),
                           run->command->program);
    if (hvd_checkpoint_get_text(checkpoint, "optimizer", &other) == 0 &&
        strcmp(other, optimizer) != 0)
        return problem_set("%s %s: it has the state of %s: give --optimizer "
                           "%s, or name another folder",
                           option, hvd_checkpoint_path(checkpoint), other,
                           other);
    set_marks(run, marks);
    for (int i = 0; i < MARKS; i++) {
        if (hvd_checkpoint_get_int(checkpoint, marks[i].name, &saved) < 0)
            return problem_set("%s %s: it does not say \"%s\", so that its "
                               "training cannot go on: name another folder",
                               option, hvd_checkpoint_path(checkpoint),
                               marks[i].name);
        if (saved != marks[i].value)
            return problem_set("%s %s: it is of another training: %s: %lld "
                               "then, %lld now. Give what was given then, or "
                               "name another folder",
                               option, hvd_checkpoint_path(checkpoint),
                               marks[i].what, (long long)saved,
                               (long long)marks[i].value);
    }
    return 0;
}

/* Rank 0: opens the newest checkpoint, if there is one, and sets *steps. */
static int open_newest(struct training_run *run, int64_t *steps)
{
    const struct options *o = run->options;
    hvd_checkpoint_info info;

    if (!o->model_dir)
        return 0;
    if (hvd_checkpoint_open(o->model_dir, &run->resumed) < 0)
        return set_failed();
    if (!run->resumed)
        return 0;
    if (o->variables_on_host || o->strategy == STRATEGY_PARAMETER_SERVER)
        return problem_set("%s %s: it has checkpoints, which do not have the "
                           "state of an optimizer on the host: name another "
                           "folder, or train without %s",
                           option, o->model_dir,
                           o->variables_on_host
                               ? "--variables-on-host"
                               : "--strategy parameter-server");
    hvd_checkpoint_info_init(&info, sizeof info);
    if (hvd_checkpoint_get_info(run->resumed, &info) < 0)
        return set_failed();
    *steps = info.step;
    return check_marks(run, run->resumed);
}

int checkpoints_find(struct training_run *run)
{
    double steps = 0;
    int64_t newest = 0;
    int status = agree(run->command->rank == 0 ? open_newest(run, &newest) : 0);

    steps = (double)newest;
    if (status == 0)
        status = agree_sum(&steps, 1);
    run->first = run->outcome.steps = (int64_t)steps;
    return status;
}

static int restore(struct training_run *run, struct snapshot *s)
{
    int status = snapshot_init(s, run->trainer);

    if (status == 0 && run->resumed)
        status = snapshot_read(s, run->resumed, run->first,
                               run->options->optimizer.accumulate);
    return agree(status < 0 ? set_failed() : 0);
}

int checkpoints_resume(struct training_run *run)
{
    struct snapshot s;
    int status;

    if (run->first == 0)
        return 0;
    status = restore(run, &s);
    if (status == 0)
        status = snapshot_spread(&s);
    snapshot_fini(&s);
    if (status == 0 && run->resumed) {
        const char *passed_over = hvd_checkpoint_passed_over(run->resumed);

        hvd_progress_line(
            run->command->progress, "goes on after step %lld, from %s%s%s",
            (long long)run->first, hvd_checkpoint_path(run->resumed),
            *passed_over ? "; " : "", passed_over);
    }
    return status;
}

/* -------------------------------------------------------------------- saving
 */

/* Writes what a checkpoint says of the training. */
static void describe_run(const struct training_run *run, char *json, size_t size)
{
    struct mark marks[MARKS];
    int at = snprintf(
        json, size, "{\"program\":\"%s\",\"optimizer\":\"%s\",\"workers\":%d",
        run->command->program,
        optimizer_names[run->options->optimizer.optimizer], run->command->size);

    set_marks(run, marks);
    for (int i = 0; i < MARKS; i++)
        at += snprintf(json + at, size - (size_t)at, ",\"%s\":%lld",
                       marks[i].name, (long long)marks[i].value);
    snprintf(json + at, size - (size_t)at, "}");
}

static int save(const struct training_run *run, bool final)
{
    hvd_checkpoint_writer *writer = run->command->checkpoints;
    hvd_checkpoint_info info;
    struct snapshot s;
    char json[256];
    int status = snapshot_init(&s, run->trainer);

    describe_run(run, json, sizeof json);
    hvd_checkpoint_info_init(&info, sizeof info);
    info.step = run->outcome.steps;
    info.final = final;
    info.json = json;
    if (status == 0)
        status = snapshot_take(&s);
    if (status == 0)
        status = hvd_checkpoint_save(writer, &info, s.list, s.count);
    if (status == 0 && final)
        status = hvd_checkpoint_wait(writer);
    snapshot_fini(&s);
    return status < 0 ? set_failed() : 0;
}

int checkpoints_keep(const struct training_run *run)
{
    const struct options *o = run->options;
    const int64_t steps = run->outcome.steps, every = o->checkpoint_every;
    const int update = o->optimizer.accumulate;
    int status;

    /* One that is due between two updates waits for the next: each device has a
       sum of gradients of its own until then. The last one is written when the
       training is over. */
    if (!o->model_dir || every == 0 || steps % update != 0 ||
        steps / every == (steps - update) / every || steps >= run->plan.steps)
        return 0;
    status = trainer_read_statistics(run->trainer);
    return status < 0 || run->command->rank != 0 ? status : save(run, false);
}

int checkpoints_finish(const struct training_run *run)
{
    return run->command->checkpoints ? save(run, true) : 0;
}
