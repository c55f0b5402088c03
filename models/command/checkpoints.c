/* SPDX-License-Identifier: Apache-2.0 */
#include "command/checkpoints.h"

#include "files/safetensors.h"
#include "output/problem.h"

#include <stdlib.h>

static const char option[] = CHECKPOINT_OPTION;

/* Puts the option in front of the text. Returns PROBLEM. */
static int set_failed(void)
{
    return problem_set("%s %s", option, problem_text());
}

int checkpoints_prepare(struct command *command, const char *folder)
{
    int64_t *steps;
    int count;

    if (!folder)
        return 0;
    count = hvd_checkpoint_list(folder, &steps);
    if (count < 0)
        return set_failed();
    free(steps);
    if (count > 0)
        return problem_set("%s %s: it has the checkpoints of another training: "
                           "name another folder, or remove them",
                           option, folder);
    return hvd_checkpoint_writer_open(folder, NULL, &command->checkpoints) < 0
               ? set_failed()
               : 0;
}

void checkpoints_close(struct command *command)
{
    hvd_checkpoint_writer_close(command->checkpoints);
    command->checkpoints = NULL;
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

static int save(const struct training_run *run, bool final)
{
    int count, status = PROBLEM;
    struct safetensors_tensor *tensors = trainer_tensors(run->trainer, &count);
    hvd_checkpoint_tensor *made =
        checkpoints_tensors(tensors, count, trainer_values(run->trainer));
    hvd_checkpoint_info info;
    char json[128];

    snprintf(json, sizeof json,
             "{\"program\":\"%s\",\"seed\":%llu,\"workers\":%d}",
             run->command->program, (unsigned long long)run->options->seed,
             run->command->size);
    hvd_checkpoint_info_init(&info, sizeof info);
    info.step = run->outcome.steps;
    info.final = final;
    info.json = json;
    if (made)
        status =
            hvd_checkpoint_save(run->command->checkpoints, &info, made, count);
    if (status == 0 && final)
        status = hvd_checkpoint_wait(run->command->checkpoints);
    free(made);
    return status < 0 ? set_failed() : 0;
}

int checkpoints_keep(const struct training_run *run, int count)
{
    const struct options *o = run->options;
    int64_t steps = run->outcome.steps;
    int status;

    /* The last one is written when the training is over. */
    if (!o->model_dir || o->checkpoint_every == 0 ||
        steps / o->checkpoint_every == (steps - count) / o->checkpoint_every ||
        steps >= run->plan.steps)
        return 0;
    status = trainer_read_statistics(run->trainer);
    return status < 0 || run->command->rank != 0 ? status : save(run, false);
}

int checkpoints_finish(const struct training_run *run)
{
    return run->command->checkpoints ? save(run, true) : 0;
}
