/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/backend_state.h"

#include "output/profile.h"
#include "trainer/agree.h"

#include <ipu.h>
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

/* Describes number i of the tensors of the devices. If there are not so many,
 * returns false and sets *count to how many there are. */
static bool describe_device(const struct backend *backend,
                            const struct model *model, int i,
                            struct trainer_state *state, int *count)
{
    struct profile_program program = {0};
    ipu_variable_info info = {.size = sizeof info};

    *count = 0;
    backend->functions->describe(backend, &program);
    for (int32_t k = 0; is_kept(&program, k, &info); k++) {
        if (info.own || is_of_model(model, info.name) || (*count)++ < i)
            continue;
        *state = (struct trainer_state){
            .name = info.name,
            .dtype = info.dtype == IPU_INT32 ? TRAINER_INT32 : TRAINER_FLOAT32,
            .ndim = info.ndim,
            .count = 1};
        for (int32_t d = 0; d < info.ndim; d++)
            state->count *= state->shape[d] = info.shape[d];
        return true;
    }
    return false;
}

bool backend_state(const struct backend *backend, const struct model *model,
                   int i, struct trainer_state *state)
{
    const struct exchange *x = backend->exchange;
    int count;

    return describe_device(backend, model, i, state, &count) ||
           (x && x->functions->state &&
            x->functions->state(x, i - count, state));
}

int backend_state_read(const struct backend *backend, const struct model *model,
                       void *const *data)
{
    const struct exchange *x = backend->exchange;
    struct trainer_state state;
    int count, status = 0;

    for (int i = 0;
         status == 0 && describe_device(backend, model, i, &state, &count); i++)
        status = backend->functions->read(backend, state.name, data[i],
                                          (size_t)state.count * sizeof(float));
    return status < 0 || !x || !x->functions->read_state
               ? status
               : x->functions->read_state(x, data + count);
}

int backend_state_write(struct backend *backend, const struct model *model,
                        const void *const *data)
{
    const struct exchange *x = backend->exchange;
    struct trainer_state state;
    int count, status = 0;

    for (int i = 0;
         status == 0 && describe_device(backend, model, i, &state, &count); i++)
        status = backend->functions->write(backend, state.name, data[i],
                                           (size_t)state.count * sizeof(float));
    status = agree(status);
    return status < 0 || !x || !x->functions->write_state
               ? status
               : x->functions->write_state(x, data + count);
}
