/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run_save.h"

#include "disk/disk.h"
#include "files/safetensors.h"
#include "output/problem.h"
#include "run/run_tensor.h"

#include <stdlib.h>
#include <string.h>

/* The tensors of a file, with their memory. */
struct tensors {
    int32_t count;
    struct safetensors_tensor *at;
    ipu_onnx_value *values; /* whose names and extents they have */
    void **data;            /* their elements, each owned */
};

static enum safetensors_dtype dtype_of(int32_t type)
{
    switch (ipu_onnx_type_dtype(type)) {
    case IPU_FLOAT16: return SAFETENSORS_F16;
    case IPU_BFLOAT16: return SAFETENSORS_BF16;
    default: return SAFETENSORS_F32;
    }
}

static int read_one(const struct run_model *run, struct tensors *t, int32_t i)
{
    struct safetensors_tensor *to = &t->at[i];
    ipu_onnx_value *value = &t->values[i];

    *value = (ipu_onnx_value){.size = sizeof *value};
    ipu_onnx_variable(run->model, i, value);
    *to = (struct safetensors_tensor){.name = value->name,
                                      .dtype = dtype_of(value->type),
                                      .ndim = value->ndim,
                                      .shape = value->extents};
    if (safetensors_measure(to) < 0)
        return -run_complain("%s", problem_text());
    to->data = t->data[i] = malloc(to->bytes + 1);
    if (!t->data[i])
        return -run_complain("there is too little memory");
    return ipu_engine_read(run->engine, value->name, t->data[i], to->bytes) < 0
               ? -run_complain("%s", ipu_last_error())
               : 0;
}

static int save_tensors(const struct run_model *run, struct tensors *t,
                        const char *path)
{
    for (int32_t i = 0; i < t->count; i++)
        if (read_one(run, t, i))
            return 1;
    if (safetensors_order(t->at, t->count) < 0 ||
        safetensors_save(path, t->at, t->count, NULL,
                         DISK__DIRECT | DISK__SYNC | DISK__SWEEP) < 0)
        return -run_complain("%s", problem_text());
    return 0;
}

static int save_variables(const struct run_model *run, const char *path)
{
    ipu_onnx_value value = {.size = sizeof value};
    struct tensors t = {.count = 0};
    int status;

    while (ipu_onnx_variable(run->model, t.count, &value) > 0)
        t.count++;
    t.at = calloc((size_t)t.count + 1, sizeof *t.at);
    t.values = calloc((size_t)t.count + 1, sizeof *t.values);
    t.data = calloc((size_t)t.count + 1, sizeof *t.data);
    status = t.at && t.values && t.data
                 ? save_tensors(run, &t, path)
                 : -run_complain("there is too little memory");
    for (int32_t i = 0; t.data && i < t.count; i++)
        free(t.data[i]);
    free(t.data);
    free(t.at);
    free(t.values);
    return status;
}

bool run_saves_variables(const char *path)
{
    size_t n = strlen(path), m = strlen(".safetensors");

    return n > m && !strcmp(path + n - m, ".safetensors");
}

int run_save(const struct run_model *run, const char *path)
{
    if (run_saves_variables(path))
        return save_variables(run, path);
    return ipu_onnx_save(run->model, run->engine, path) < 0
               ? -run_complain("%s", ipu_last_error())
               : 0;
}
