/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run_data.h"

#include "run/run_ranks.h"
#include "run/run_tensor.h"

#include <hvd_dataset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LABELS "labels"

enum { LEAST = 2 }; /* components: an input and labels */

struct run_data {
    const struct run_data_settings *settings; /* borrowed */
    int ninputs;                        /* of the model that the data has */
    int32_t inputs[HVD_MAX_COMPONENTS]; /* their numbers */
    hvd_component components[HVD_MAX_COMPONENTS]; /* those, and the labels */
    hvd_dataset *set;                             /* owned */
    hvd_iterator *iterator;                       /* owned */
    int64_t rows;                                 /* of this rank's batches */
    void *unused[HVD_MAX_COMPONENTS]; /* owned: for inputs that nothing needs */
};

static int hvd_complain(void)
{
    return -run_complain("%s", hvd_last_error());
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && !strcmp(text + n - m, end);
}

/* ------------------------------------------------------------------ folders */

/* Rows of one component, joined from the files of all sets. */
struct rows {
    char *data; /* owned */
    size_t bytes, row_bytes;
    int64_t count;
    ipu_onnx_tensor
        first; /* without data: the type and the shape of the rows */
};

static void free_rows(void *context)
{
    struct rows *rows = context;

    for (int i = 0; i < HVD_MAX_COMPONENTS; i++)
        free(rows[i].data);
    free(rows);
}

/* Adds the rows of a file; a scalar, and files of other rows, are refused. */
static int add_rows(struct rows *to, const char *path)
{
    ipu_onnx_tensor t;
    size_t bytes;
    char *more;

    if (run_read_tensor(path, &t) < 0)
        return 1;
    bytes = (size_t)run_count(t.ndim, t.extents) * ipu_onnx_type_bytes(t.type);
    if (to->count == 0 && t.ndim > 0)
        to->first = t;
    if (t.ndim < 1 || t.type != to->first.type || t.ndim != to->first.ndim ||
        memcmp(t.extents + 1, to->first.extents + 1,
               (size_t)(t.ndim - 1) * sizeof *t.extents) != 0) {
        free(t.data);
        return -run_complain("%s: %s has not the rows of the file before it",
                             path, run_shape(t.type, t.ndim, t.extents).text);
    }
    more = realloc(to->data, to->bytes + bytes + 1);
    if (more) {
        memcpy(more + to->bytes, t.data, bytes);
        to->data = more;
        to->bytes += bytes;
        to->count += t.extents[0];
    }
    free(t.data);
    return more ? 0 : -run_complain("there is too little memory for %s", path);
}

/* Returns the dtype of libhvd that a type of ONNX has in memory; -1: none. */
static hvd_dtype dtype_of(int32_t type)
{
    switch (type) {
    case IPU_ONNX_FLOAT: return HVD_FLOAT32;
    case IPU_ONNX_UINT8: return HVD_UINT8;
    case IPU_ONNX_INT8: return HVD_INT8;
    case IPU_ONNX_UINT16: return HVD_UINT16;
    case IPU_ONNX_INT16: return HVD_INT16;
    case IPU_ONNX_INT32: return HVD_INT32;
    case IPU_ONNX_INT64: return HVD_INT64;
    case IPU_ONNX_FLOAT16: return HVD_FLOAT16;
    case IPU_ONNX_DOUBLE: return HVD_FLOAT64;
    case IPU_ONNX_BFLOAT16: return HVD_BFLOAT16;
    default: return -1;
    }
}

/* Reads component i of all sets of the folder, and describes it. */
static int read_component(const struct run_data *d, int i, struct rows *rows,
                          hvd_component *component)
{
    char path[4096];
    struct stat status;

    for (int set = 0;; set++) {
        snprintf(path, sizeof path, "%s/test_data_set_%d/%s_%d.pb",
                 d->settings->path, set, i < d->ninputs ? "input" : "output",
                 i < d->ninputs ? (int)d->inputs[i] : 0);
        if (set > 0 && stat(path, &status) != 0)
            break;
        if (add_rows(rows, path))
            return 1;
    }
    *component = (hvd_component){.name = d->components[i].name,
                                 .dtype = dtype_of(rows->first.type),
                                 .ndim = rows->first.ndim - 1};
    if (component->dtype < 0 || component->ndim > HVD_MAX_COMPONENT_DIMS)
        return -run_complain("%s: data of this type or shape cannot be used",
                             path);
    for (int32_t k = 0; k < component->ndim; k++)
        component->shape[k] = rows->first.extents[1 + k];
    return 0;
}

static hvd_dataset *read_folder(const struct run_data *d)
{
    hvd_component components[HVD_MAX_COMPONENTS];
    const void *arrays[HVD_MAX_COMPONENTS];
    struct rows *rows = calloc(HVD_MAX_COMPONENTS, sizeof *rows);

    if (!rows) {
        run_complain("there is too little memory");
        return NULL;
    }
    for (int i = 0; i <= d->ninputs; i++) {
        if (read_component(d, i, &rows[i], &components[i])) {
            free_rows(rows);
            return NULL;
        }
        arrays[i] = rows[i].data;
        if (rows[i].count != rows[0].count) {
            run_complain("%s: '%s' has not as many rows as '%s'",
                         d->settings->path, components[i].name,
                         components[0].name);
            free_rows(rows);
            return NULL;
        }
    }
    return hvd_dataset_memory(d->ninputs + 1, components, arrays, rows[0].count,
                              free_rows, rows);
}

/* -------------------------------------------------------------------- files */

static hvd_dataset *open_archive(const struct run_data_settings *s, int n,
                                 const char *const *names)
{
    return ends_with(s->path, ".npz")
               ? hvd_dataset_npz(s->path, n, names)
               : hvd_dataset_safetensors(s->path, n, names);
}

/* Opens the arrays of an archive in the order of the components. Arrays of two
 * other names are the one input and the labels. */
static hvd_dataset *read_archive(const struct run_data *d)
{
    hvd_dataset *all = open_archive(d->settings, 0, NULL);
    const char *names[HVD_MAX_COMPONENTS];
    const hvd_component *found;
    hvd_dataset *set;
    int32_t count, known = 0;

    found = hvd_dataset_components(all, &count);
    if (!found)
        return NULL;
    for (int i = 0; i <= d->ninputs; i++) {
        names[i] = d->components[i].name;
        for (int32_t k = 0; k < count; k++)
            known += !strcmp(found[k].name, names[i]);
    }
    for (int i = 0; i < 2 && known == 0 && d->ninputs == 1 && count == 2; i++)
        names[i] = found[i].name;
    set = open_archive(d->settings, d->ninputs + 1, names);
    hvd_dataset_free(all);
    return set;
}

static hvd_dataset *read_pair(const struct run_data *d)
{
    const struct run_data_settings *s = d->settings;
    const char *const names[] = {d->components[0].name, LABELS};
    const char *const paths[] = {s->path, s->labels};
    hvd_dataset *parts[2];

    if (d->ninputs != 1 || !s->labels) {
        run_complain("--data %s: a file of one array is for a model of one "
                     "input, with a second one of --labels",
                     s->path);
        return NULL;
    }
    if (!ends_with(s->path, ".npy") && !ends_with(s->labels, ".npy"))
        return hvd_dataset_idx(2, names, paths);
    for (int i = 0; i < 2; i++)
        parts[i] = ends_with(paths[i], ".npy")
                       ? hvd_dataset_npy(paths[i], names[i])
                       : hvd_dataset_idx(1, &names[i], &paths[i]);
    return hvd_dataset_zip(2, parts);
}

static hvd_dataset *read_set(const struct run_data *d)
{
    const char *path = d->settings->path;
    struct stat status;

    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return read_folder(d);
    return ends_with(path, ".npz") || ends_with(path, ".safetensors")
               ? read_archive(d)
               : read_pair(d);
}

/* ---------------------------------------------------------------- the model */

static ipu_onnx_value input_at(const struct run_model *run, int32_t i)
{
    ipu_onnx_value value = {.size = sizeof value};

    ipu_onnx_input(run->model, i, &value);
    return value;
}

/* Notes the inputs that were not given, and the labels. */
static int list_components(struct run_data *d, const struct run_model *run)
{
    for (int32_t i = 0; i < run->ninputs; i++) {
        if (run->inputs[i].data)
            continue;
        if (d->ninputs == HVD_MAX_COMPONENTS - 1)
            return -run_complain("--data is for at most %d inputs",
                                 HVD_MAX_COMPONENTS - 1);
        d->components[d->ninputs].name = input_at(run, i).name;
        d->inputs[d->ninputs++] = i;
    }
    if (d->ninputs == 0)
        return -run_complain("--data: all inputs were given");
    d->components[d->ninputs].name = LABELS;
    return 0;
}

/* Sets an open dimension of an input, by its name, to what the data has. */
static int set_extent(struct run_model *run, const ipu_onnx_value *value,
                      int32_t d, int64_t extent)
{
    if (value->extents[d] >= 0 || d == 0)
        return 0;
    if (!value->symbols[d])
        return -run_complain("input '%s' leaves dimension %d open, without a "
                             "name",
                             value->name, (int)d);
    return ipu_onnx_set_dim(run->model, value->symbols[d], extent) < 0
               ? -run_complain("%s", ipu_last_error())
               : 0;
}

/* Checks that rows of the data are those of an input, but for dimensions of 1
 * and other divisions of as many elements. */
static int fit_input(struct run_model *run, int32_t i,
                     const hvd_component *component)
{
    ipu_onnx_value value = input_at(run, i);
    int64_t wanted = 1, have = run_count(component->ndim, component->shape);

    for (int32_t d = 1; d < value.ndim; d++)
        if (component->ndim == value.ndim - 1 &&
            set_extent(run, &value, d, component->shape[d - 1]))
            return 1;
    value = input_at(run, i);
    for (int32_t d = 1; d < value.ndim; d++)
        wanted *= value.extents[d];
    if (value.ndim < 1 || wanted != have)
        return -run_complain(
            "--data: rows of '%s' have %lld elements, and the model's input "
            "has "
            "%s",
            value.name, (long long)have,
            run_shape(value.type, value.ndim, value.extents).text);
    return 0;
}

/* Finds how many rows a batch of this rank has: those of --batch, or of a model
 * that has a batch of its own. */
static int set_rows(struct run_data *d, struct run_model *run)
{
    int64_t own = input_at(run, d->inputs[0]).extents[0], ranks = run_ranks();

    if (own < 0 && d->settings->batch == 0)
        return -run_complain("--data needs --batch");
    d->rows = own < 0 ? d->settings->batch / ranks : own;
    if (d->settings->batch > 0 && d->rows * ranks != d->settings->batch)
        return -run_complain("--batch %d: %s", d->settings->batch,
                             own < 0 ? "it must divide by the number of ranks"
                                     : "the model's own batch, times the "
                                       "ranks, is another");
    if (own < 0 && ipu_onnx_set_dim(run->model, NULL, d->rows) < 0)
        return -run_complain("%s", ipu_last_error());
    return 0;
}

/* ----------------------------------------------------------------- pipeline */

static bool is_whole(hvd_dtype dtype)
{
    return dtype != HVD_FLOAT16 && dtype != HVD_FLOAT32 &&
           dtype != HVD_FLOAT64 && dtype != HVD_BFLOAT16;
}

/* Returns the dtype that the device has a component in. */
static hvd_dtype wanted_dtype(const struct run_data *d,
                              const struct run_model *run, int i)
{
    if (i == d->ninputs)
        return d->settings->classes ? HVD_INT32 : HVD_FLOAT32;
    switch (ipu_onnx_type_dtype(input_at(run, d->inputs[i]).type)) {
    case IPU_INT32: return HVD_INT32;
    case IPU_FLOAT16: return HVD_FLOAT16;
    case IPU_BFLOAT16: return HVD_BFLOAT16;
    default: return HVD_FLOAT32;
    }
}

/* Converts, shuffles and divides the data. */
static int make_batches(struct run_data *d, const struct run_model *run)
{
    const struct run_data_settings *s = d->settings;

    for (int i = 0; i <= d->ninputs; i++) {
        hvd_dtype dtype = wanted_dtype(d, run, i);
        bool scaled = i < d->ninputs && is_whole(d->components[i].dtype) &&
                      !is_whole(dtype);

        if (d->components[i].dtype != dtype)
            d->set = hvd_dataset_cast(d->set, d->components[i].name, dtype,
                                      scaled ? s->divisor : 1);
        d->components[i].dtype = dtype;
    }
    if (!s->in_order)
        d->set = hvd_dataset_shuffle(d->set, (uint64_t)s->seed, 0);
    d->set = hvd_dataset_prefetch(hvd_dataset_batch(d->set, d->rows, 1), 2);
    return d->set ? 0 : hvd_complain();
}

static int make_iterator(struct run_data *d)
{
    hvd_input_context context;

    hvd_input_context_init(&context, sizeof context);
    context.num_input_pipelines = run_ranks();
    context.input_pipeline_id = run_rank();
    context.auto_shard = HVD_SHARD_DATA;
    if (hvd_iterator_new(d->set, &context, &d->iterator) < 0)
        return hvd_complain();
    if (hvd_iterator_steps(d->iterator) > 0)
        return 0;
    return -run_complain("--data %s: it has fewer rows than a batch of %lld",
                         d->settings->path, (long long)d->rows * run_ranks());
}

static int open_all(struct run_data *d, struct run_model *run)
{
    const hvd_component *components;

    if (list_components(d, run))
        return 1;
    d->set = read_set(d);
    components = hvd_dataset_components(d->set, NULL);
    if (!components) /* the first complaint counts */
        return hvd_complain();
    memcpy(d->components, components,
           (size_t)(d->ninputs + 1) * sizeof *components);
    for (int i = 0; i < d->ninputs; i++)
        if (fit_input(run, d->inputs[i], &components[i]))
            return 1;
    return set_rows(d, run) || make_batches(d, run) || make_iterator(d);
}

int run_data_open(const struct run_data_settings *settings,
                  struct run_model *run, struct run_data **data)
{
    *data = calloc(1, sizeof **data);
    if (!*data)
        return -run_complain("there is too little memory");
    (*data)->settings = settings;
    return open_all(*data, run);
}

void run_data_close(struct run_data *d)
{
    if (!d)
        return;
    hvd_iterator_free(d->iterator);
    hvd_dataset_free(d->set);
    for (int i = 0; i < HVD_MAX_COMPONENTS; i++)
        free(d->unused[i]);
    free(d);
}

int64_t run_data_steps(const struct run_data *d)
{
    return hvd_iterator_steps(d->iterator);
}

ipu_onnx_tensor run_data_labels(const struct run_data *d)
{
    const hvd_component *c = &d->components[d->ninputs];
    ipu_onnx_tensor t = {.size = sizeof t,
                         .type = d->settings->classes ? IPU_ONNX_INT64
                                                      : IPU_ONNX_FLOAT,
                         .ndim = c->ndim + 1,
                         .extents = {d->rows}};

    for (int32_t i = 0; i < c->ndim; i++)
        t.extents[1 + i] = c->shape[i];
    return t;
}

/* Returns where component i goes. */
static void *buffer_of(struct run_data *d, struct run_model *run, int i)
{
    void *place = i == d->ninputs ? run->labels : run->device[d->inputs[i]];
    const hvd_component *c = &d->components[i];

    if (!place && !d->unused[i])
        d->unused[i] =
            malloc((size_t)(d->rows * run_count(c->ndim, c->shape)) * 4 + 1);
    return place ? place : d->unused[i];
}

int run_data_next(struct run_data *d, struct run_model *run)
{
    void *buffers[HVD_MAX_COMPONENTS];
    hvd_batch batch;
    int status;

    for (int i = 0; i <= d->ninputs; i++) {
        buffers[i] = buffer_of(d, run, i);
        if (!buffers[i])
            return -run_complain("there is too little memory for a batch");
    }
    status = hvd_iterator_next_into(d->iterator, buffers, &batch);
    if (status == HVD_END_OF_DATA)
        status = hvd_iterator_next_into(d->iterator, buffers, &batch);
    return status < 0 ? hvd_complain() : 0;
}
