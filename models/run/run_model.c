/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run_model.h"

#include "run/run_tensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static ipu_onnx_value value_at(const struct run_model *run, bool input,
                               int32_t i)
{
    ipu_onnx_value value = {.size = sizeof value};

    if (input)
        ipu_onnx_input(run->model, i, &value);
    else
        ipu_onnx_output(run->model, i, &value);
    return value;
}

static int allocate(struct run_model *run)
{
    ipu_onnx_value value = {.size = sizeof value};

    while (ipu_onnx_input(run->model, run->ninputs, &value) > 0)
        run->ninputs++;
    while (ipu_onnx_output(run->model, run->noutputs, &value) > 0)
        run->noutputs++;
    run->inputs = calloc((size_t)run->ninputs + 1, sizeof *run->inputs);
    run->outputs = calloc((size_t)run->noutputs + 1, sizeof *run->outputs);
    run->device =
        calloc((size_t)(run->ninputs + run->noutputs) + 1, sizeof *run->device);
    return run->inputs && run->outputs && run->device ? IPU_OK : IPU_ERR_MEMORY;
}

int run_open(struct run_model *run, const char *path)
{
    int status;

    memset(run, 0, sizeof *run);
    status = ipu_onnx_load(path, &run->model);
    return status < 0 ? status : allocate(run);
}

void run_close(struct run_model *run)
{
    for (int32_t i = 0; i < run->ninputs && run->inputs; i++)
        free(run->inputs[i].data);
    for (int32_t i = 0; i < run->noutputs && run->outputs; i++)
        free(run->outputs[i].data);
    for (int32_t i = 0; i < run->ninputs + run->noutputs && run->device; i++)
        free(run->device[i]);
    free(run->inputs);
    free(run->outputs);
    free(run->device);
    free(run->labels);
    ipu_engine_free(run->engine);
    ipu_executable_free(run->executable);
    ipu_graph_free(run->graph);
    ipu_onnx_free(run->model);
    memset(run, 0, sizeof *run);
}

int run_offer(struct run_model *run, int32_t i, const ipu_onnx_tensor *tensor)
{
    run->inputs[i] = *tensor;
    return ipu_onnx_offer(run->model, value_at(run, true, i).name, tensor->type,
                          tensor->ndim, tensor->extents, tensor->data);
}

int run_build(struct run_model *run, const ipu_target *target, int chips)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = target,
                                         .allow_out_of_memory = 1,
                                         .brief = 1};
    int status = ipu_graph_new(&run->graph);

    if (status >= 0)
        status = ipu_onnx_no_gradients(run->model);
    if (status >= 0)
        status = ipu_onnx_build(run->model, run->graph);
    if (status >= 0 && chips > 1)
        status = ipu_shard_by_time(run->graph, &options, chips);
    if (status >= 0)
        status = ipu_compile_with(run->graph, &options, &run->executable);
    return status;
}

int run_write_profile(const struct run_model *run, const char *directory)
{
    ipu_profile *profile = NULL;
    int status = ipu_profile_new("ipu-run", &profile);

    if (status >= 0)
        status = ipu_profile_add(profile, "model", 0, run->executable, NULL);
    if (status >= 0)
        status = ipu_profile_write(profile, directory);
    ipu_profile_free(profile);
    return status;
}

/* ------------------------------------------------------------------ streams */

/* Makes the memory of a stream and connects it. Returns NULL if the program has
 * no such stream: an input that is bound, or that nothing needs. */
static int connect(struct run_model *run, int32_t slot,
                   const ipu_onnx_value *value)
{
    int64_t count = run_count(value->ndim, value->extents);
    size_t each =
        value->type == IPU_ONNX_FLOAT16 || value->type == IPU_ONNX_BFLOAT16 ? 2
                                                                            : 4;

    run->device[slot] = calloc((size_t)(count > 0 ? count : 1), each);
    if (!run->device[slot])
        return IPU_ERR_MEMORY;
    return ipu_engine_connect(run->engine, value->name, run->device[slot],
                              (size_t)count * each);
}

static int connect_input(struct run_model *run, int32_t i)
{
    const ipu_onnx_tensor *tensor = &run->inputs[i];
    ipu_onnx_value value = value_at(run, true, i);
    ipu_tensor found;
    int status;

    if (value.bound || ipu_graph_find(run->graph, value.name, &found) < 0)
        return IPU_OK;
    status = connect(run, i, &value);
    if (status == IPU_ERR_NAME) { /* nothing needs it */
        free(run->device[i]);
        run->device[i] = NULL;
        return IPU_OK;
    }
    if (status >= 0 && tensor->data) /* else each batch brings some */
        status = ipu_onnx_to_device(tensor->type,
                                    run_count(tensor->ndim, tensor->extents),
                                    tensor->data, run->device[i]);
    return status;
}

int run_connect(struct run_model *run)
{
    int status = ipu_engine_new(run->executable, &run->engine);

    for (int32_t i = 0; i < run->ninputs && status >= 0; i++)
        status = connect_input(run, i);
    for (int32_t i = 0; i < run->noutputs && status >= 0; i++) {
        ipu_onnx_value value = value_at(run, false, i);

        status = connect(run, run->ninputs + i, &value);
    }
    return status;
}

static int take_output(struct run_model *run, int32_t i)
{
    ipu_onnx_value value = value_at(run, false, i);
    int64_t count = run_count(value.ndim, value.extents);
    ipu_onnx_tensor *to = &run->outputs[i];

    free(to->data);
    *to = (ipu_onnx_tensor){
        .size = sizeof *to, .type = value.type, .ndim = value.ndim};
    memcpy(to->extents, value.extents, sizeof to->extents);
    to->data = calloc((size_t)(count > 0 ? count : 1),
                      ipu_onnx_type_bytes(value.type));
    if (!to->data)
        return IPU_ERR_MEMORY;
    return ipu_onnx_from_device(value.type, count,
                                run->device[run->ninputs + i], to->data);
}

int run_take_outputs(struct run_model *run)
{
    int status = IPU_OK;

    for (int32_t i = 0; i < run->noutputs && status >= 0; i++)
        status = take_output(run, i);
    return status;
}

int run_once(struct run_model *run)
{
    int status = run_connect(run);

    if (status >= 0)
        status = ipu_engine_run(run->engine);
    return status < 0 ? status : run_take_outputs(run);
}
