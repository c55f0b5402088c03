/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/backend_state.h"

#include "output/problem.h"
#include "output/profile.h"
#include "trainer/agree.h"

#include <ipu.h>
#include <stdlib.h>
#include <string.h>

static bool is_of_model(const struct model *m, const char *name)
{
    for (int i = 0; i < m->nvariables; i++)
        if (strcmp(m->variables[i].name, name) == 0)
            return true;
    return false;
}

/* Describes number k = 0, 1, ... of what the devices keep. */
static bool is_kept(const struct profile_program *program, int32_t k,
                    ipu_variable_info *info)
{
    if (program->executable)
        return ipu_executable_variable(program->executable, k, info) == IPU_OK;
    return program->pipeline &&
           ipu_pipeline_state(program->pipeline, k, info) == IPU_OK;
}

static struct trainer_state state_of(const ipu_variable_info *info)
{
    struct trainer_state state = {
        .name = info->name,
        .dtype = info->dtype == IPU_INT32 ? TRAINER_INT32 : TRAINER_FLOAT32,
        .ndim = info->ndim,
        .count = 1};

    for (int32_t d = 0; d < info->ndim; d++)
        state.count *= state.shape[d] = info->shape[d];
    return state;
}

/* Makes room for all that the devices and an optimiser elsewhere can have. */
static int make_room(const struct backend *backend,
                     const struct profile_program *program,
                     struct trainer_state **states)
{
    const struct exchange *x = backend->exchange;
    ipu_variable_info info = {.size = sizeof info};
    struct trainer_state state;
    int32_t kept = 0;
    int others = 0;

    while (is_kept(program, kept, &info))
        kept++;
    while (x && x->functions->state && x->functions->state(x, others, &state))
        others++;
    *states = calloc((size_t)kept + (size_t)others + 1, sizeof **states);
    return *states ? 0 : problem_set("no memory for a list of tensors");
}

/* Lists the tensors of the devices, in an array that has room for the others,
 * too. Returns how many. */
static int list_devices(const struct backend *backend,
                        const struct model *model,
                        struct trainer_state **states)
{
    struct profile_program program = {0};
    ipu_variable_info info = {.size = sizeof info};
    int count = 0;

    backend->functions->describe(backend, &program);
    if (make_room(backend, &program, states) < 0)
        return PROBLEM;
    for (int32_t k = 0; is_kept(&program, k, &info); k++)
        if (!info.own && !is_of_model(model, info.name))
            (*states)[count++] = state_of(&info);
    return count;
}

int backend_states(const struct backend *backend, const struct model *model,
                   struct trainer_state **states)
{
    const struct exchange *x = backend->exchange;
    int first = list_devices(backend, model, states), count = first;

    while (count >= 0 && x && x->functions->state &&
           x->functions->state(x, count - first, &(*states)[count]))
        count++;
    return count;
}

static size_t bytes_of(const struct trainer_state *state)
{
    return (size_t)state->count * sizeof(float);
}

int backend_state_read(const struct backend *backend, const struct model *model,
                       void *const *data)
{
    const struct exchange *x = backend->exchange;
    struct trainer_state *states = NULL;
    int count = list_devices(backend, model, &states);
    int status = count < 0 ? count : 0;

    for (int i = 0; status == 0 && i < count; i++)
        status = backend->functions->read(backend, states[i].name, data[i],
                                          bytes_of(&states[i]));
    free(states);
    return status < 0 || !x || !x->functions->read_state
               ? status
               : x->functions->read_state(x, data + count);
}

int backend_state_write(struct backend *backend, const struct model *model,
                        const void *const *data)
{
    const struct exchange *x = backend->exchange;
    struct trainer_state *states = NULL;
    int count = list_devices(backend, model, &states);
    int status = count < 0 ? count : 0;

    for (int i = 0; status == 0 && i < count; i++)
        status = backend->functions->write(backend, states[i].name, data[i],
                                           bytes_of(&states[i]));
    free(states);
    status = agree(status);
    return status < 0 || !x || !x->functions->write_state
               ? status
               : x->functions->write_state(x, data + count);
}
