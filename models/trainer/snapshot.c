/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/snapshot.h"

#include "files/safetensors.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <stdlib.h>
#include <string.h>

static int no_memory(void)
{
    return problem_fail(HVD_ERR_MEMORY, "no memory for a checkpoint");
}

static void list_variables(struct snapshot *s,
                           const struct safetensors_tensor *variables)
{
    for (int i = 0; i < s->nvariables; i++)
        s->list[i] =
            (hvd_checkpoint_tensor){.name = variables[i].name,
                                    .dtype = HVD_FLOAT32,
                                    .ndim = variables[i].ndim,
                                    .shape = variables[i].shape,
                                    .data = trainer_values(s->trainer)[i]};
}

static int list_states(struct snapshot *s)
{
    static const hvd_dtype dtypes[] = {[TRAINER_FLOAT32] = HVD_FLOAT32,
                                       [TRAINER_INT32] = HVD_INT32,
                                       [TRAINER_INT64] = HVD_INT64};

    for (int i = s->nvariables; i < s->count; i++) {
        const struct trainer_state *state = &s->states[i - s->nvariables];

        s->list[i] = (hvd_checkpoint_tensor){
            .name = state->name,
            .dtype = dtypes[state->dtype],
            .ndim = state->ndim,
            .shape = state->shape,
            .data = calloc((size_t)state->count + 1, sizeof(int64_t))};
        if (!s->list[i].data)
            return no_memory();
        s->data[i - s->nvariables] = s->list[i].data;
        s->nlocal += !state->on_host;
    }
    return 0;
}

int snapshot_init(struct snapshot *s, struct trainer *trainer)
{
    struct safetensors_tensor *variables;
    int nstates;

    *s = (struct snapshot){.trainer = trainer};
    nstates = trainer_states(trainer, &s->states);
    if (nstates < 0)
        return PROBLEM;
    variables = trainer_tensors(trainer, &s->nvariables);
    s->list = calloc((size_t)(s->nvariables + nstates) + 1, sizeof *s->list);
    s->data = calloc((size_t)nstates + 1, sizeof *s->data);
    if (variables && s->list && s->data) {
        s->count = s->nvariables + nstates;
        s->nlocal = s->nvariables;
        list_variables(s, variables);
    }
    free(variables);
    return s->count > 0 ? list_states(s) : no_memory();
}

void snapshot_fini(struct snapshot *s)
{
    for (int i = s->nvariables; i < s->count; i++)
        free(s->list[i].data);
    free(s->data);
    free(s->list);
    free(s->states);
    *s = (struct snapshot){0};
}

int snapshot_take(struct snapshot *s)
{
    return trainer_state_read(s->trainer, s->data);
}

/* ------------------------------------------------------------------ reading */

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), least = strlen(end);

    return length >= least && strcmp(name + length - least, end) == 0;
}

/* Returns how many updates the device has counted, or would have. */
static int32_t count_updates(const hvd_checkpoint *checkpoint, int64_t steps,
                             int accumulate)
{
    int32_t updates = 0;
    const hvd_checkpoint_tensor counter = {
        .name = "updates", .dtype = HVD_INT32, .data = &updates};
    hvd_checkpoint_tensor found;

    return hvd_checkpoint_find(checkpoint, counter.name, &found) == 0 &&
                   hvd_checkpoint_restore(checkpoint, &counter, 1, NULL, 0,
                                          0) >= 0
               ? updates
               : (int32_t)(steps / accumulate);
}

/* Sets a state that a checkpoint lacks, as far as that can be done. */
static bool derive(const hvd_checkpoint_tensor *state,
                   const hvd_checkpoint *checkpoint, int64_t steps,
                   int accumulate)
{
    const int32_t updates = count_updates(checkpoint, steps, accumulate);

    if (strcmp(state->name, "step") == 0)
        *(int32_t *)state->data = (int32_t)steps;
    else if (strcmp(state->name, "updates") == 0)
        *(int32_t *)state->data = updates;
    else if (ends_with(state->name, "/updates"))
        *(int64_t *)state->data = updates;
    else
        return ends_with(state->name, "/accumulator") ||
               ends_with(state->name, "/mini_batch");
    return true;
}

int snapshot_read(struct snapshot *s, const hvd_checkpoint *checkpoint,
                  int64_t steps, int accumulate)
{
    hvd_checkpoint_tensor *wanted =
        malloc(((size_t)s->count + 1) * sizeof *wanted);
    hvd_checkpoint_tensor found;
    int count = 0, status;

    if (!wanted)
        return no_memory();
    for (int i = 0; i < s->count; i++)
        if (hvd_checkpoint_find(checkpoint, s->list[i].name, &found) == 0 ||
            i < s->nvariables ||
            !derive(&s->list[i], checkpoint, steps, accumulate))
            wanted[count++] = s->list[i];
    status = hvd_checkpoint_restore(checkpoint, wanted, count, NULL, 0, 0);
    free(wanted);
    return status < 0 ? status : 0;
}

int64_t snapshot_elements(const hvd_checkpoint_tensor *tensor)
{
    int64_t count = 1;

    for (int32_t d = 0; d < tensor->ndim; d++)
        count *= tensor->shape[d];
    return count;
}

int snapshot_send(const hvd_checkpoint_tensor *tensors, int count)
{
    int status = 0;

    for (int i = 0; i < count && status >= 0; i++)
        status = agree_send(tensors[i].data, snapshot_elements(&tensors[i]),
                            tensors[i].dtype);
    return status;
}

int snapshot_spread(struct snapshot *s)
{
    int status = snapshot_send(s->list, s->nlocal);

    if (status == 0)
        status = agree(trainer_write_values(s->trainer));
    return status < 0
               ? status
               : trainer_state_write(s->trainer, (const void *const *)s->data);
}
