/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - gives safetensors files the names and shapes of a model. */
#include "model/weights.h"

#include "data/fnv1a.h"
#include "output/outfile.h"
#include "output/problem.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint64_t weights_hash(const struct model *model, float *const *values)
{
    uint64_t hash = FNV1A_START;

    for (int i = 0; i < model->nvariables; i++)
        hash = fnv1a(hash, values[i],
                     (size_t)model->variables[i].count * sizeof(float));
    return hash;
}

/* ------------------------------------------------------------------ writing */

struct safetensors_tensor *weights_tensors(const struct model *model)
{
    struct safetensors_tensor *tensors =
        calloc((size_t)model->nvariables + 1, sizeof *tensors);

    if (!tensors)
        problem_set("out of memory");
    for (int i = 0; tensors && i < model->nvariables; i++) {
        const struct model_variable *v = &model->variables[i];

        tensors[i] = (struct safetensors_tensor){.name = v->name,
                                                 .dtype = SAFETENSORS_F32,
                                                 .ndim = v->ndim,
                                                 .shape = v->shape};
        if (safetensors_measure(&tensors[i]) < 0) {
            free(tensors);
            return NULL;
        }
    }
    return tensors;
}

int weights_save(const char *path, const struct model *model,
                 float *const *values)
{
    static const char option[] = "--save-weights";
    const int statistics = model_statistics(model);
    struct safetensors_tensor *tensors = weights_tensors(model);
    json_t *metadata = json_object();
    struct outfile out;
    char *header = NULL;
    size_t bytes = 0;
    int status = PROBLEM;

    if (statistics > 0)
        json_object_set_new(metadata, "statistics",
                            json_sprintf("%d", statistics));
    if (tensors)
        header =
            safetensors_header(tensors, model->nvariables, metadata, &bytes);
    json_decref(metadata);
    free(tensors);
    if (!header)
        return problem_set("%s %s: %s", option, path, problem_text());
    if (outfile_open(&out, option, path) == 0) {
        fwrite(header, 1, bytes, out.file);
        for (int i = 0; i < model->nvariables; i++)
            fwrite(values[i], sizeof(float), (size_t)model->variables[i].count,
                   out.file);
        status = outfile_commit(&out);
    }
    free(header);
    return status;
}

/* ------------------------------------------------------------------ reading */

/* A file, and the option that named it, for messages. */
struct reading {
    const char *option;
    struct safetensors *file;
};

/* Sets the problem of a file that is not as it should be. Returns PROBLEM. */
static int set_wrong(const struct reading *r, const char *what)
{
    return problem_set("%s: %s: %s", r->option, r->file->path, what);
}

/* Opens a file; reading_fini is accepted after a failure, too. */
static int reading_init(struct reading *r, const char *option, const char *path)
{
    *r = (struct reading){.option = option};
    if (safetensors_open(path, &r->file) < 0)
        return problem_set("%s: %s", option, problem_text());
    return 0;
}

static void reading_fini(struct reading *r)
{
    safetensors_close(r->file);
}

static bool has_shape(const struct safetensors_tensor *t,
                      const struct model_variable *v)
{
    return t->ndim == v->ndim &&
           memcmp(t->shape, v->shape, (size_t)v->ndim * sizeof *v->shape) == 0;
}

/* Writes "2,3" to text. */
static void put_shape(char *text, size_t bytes, const int64_t *shape,
                      int32_t ndim)
{
    size_t n = 0;

    text[0] = '\0';
    for (int32_t i = 0; i < ndim && n < bytes; i++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%" PRId64,
                              i > 0 ? "," : "", shape[i]);
}

/* Sets the problem of a variable that the file has in another shape. */
static int wrong_shape(const struct reading *r, const struct model_variable *v,
                       const struct safetensors_tensor *t)
{
    char there[80], here[128];

    put_shape(there, sizeof there, t->shape, t->ndim);
    put_shape(here, sizeof here, v->shape, v->ndim);
    return problem_set("%s: %s: '%s' is of the shape [%s] there, and "
                       "[%s] in this network",
                       r->option, r->file->path, v->name, there, here);
}

/* Finds the floats of a variable. */
static int find_floats(const struct reading *r, const struct model_variable *v,
                       const void **data)
{
    const struct safetensors_tensor *t = safetensors_find(r->file, v->name);

    if (!t)
        return problem_set("%s: %s: there is no '%s' in it; was it "
                           "written for another network?",
                           r->option, r->file->path, v->name);
    if (t->dtype != SAFETENSORS_F32)
        return problem_set("%s: %s: '%s' is of dtype %s, not F32", r->option,
                           r->file->path, v->name, safetensors_name(t->dtype));
    if (!has_shape(t, v))
        return wrong_shape(r, v, t);
    *data = t->data;
    return 0;
}

static int read_values(struct reading *r, const struct model *model,
                       float *const *values)
{
    int status = 0;

    for (int i = 0; i < model->nvariables && status == 0; i++) {
        const struct model_variable *v = &model->variables[i];
        const void *data = NULL;

        status = find_floats(r, v, &data);
        if (status == 0 && data)
            memcpy(values[i], data, (size_t)v->count * sizeof(float));
    }
    return status;
}

int weights_load(const char *path, const struct model *model,
                 float *const *values)
{
    struct reading r;
    int status = reading_init(&r, "--load-weights", path);

    if (status == 0)
        status = read_values(&r, model, values);
    reading_fini(&r);
    return status;
}

/* -------------------------------------------------- the variables of a file */

static int adopt_variable(const struct reading *r, struct model *model,
                          const struct safetensors_tensor *t)
{
    if (t->ndim > 4 || t->bytes == 0 || strlen(t->name) == 0 ||
        strlen(t->name) >= sizeof model->variables->name)
        return problem_set("%s: %s: '%.60s' is no variable: it needs a name of "
                           "at most 47 bytes and a shape of at most 4 "
                           "dimensions, none of them 0",
                           r->option, r->file->path, t->name);
    if (t->dtype != SAFETENSORS_F32)
        return problem_set("%s: %s: '%s' is of dtype %s, not F32", r->option,
                           r->file->path, t->name, safetensors_name(t->dtype));
    return model_add(model, t->name, MODEL_ZEROS, 0, t->ndim, t->shape) < 0
               ? PROBLEM
               : 0;
}

/* Has the last variables be statistics, as many as the header says. */
static int adopt_statistics(const struct reading *r, struct model *model)
{
    const char *text =
        json_string_value(json_object_get(r->file->metadata, "statistics"));
    char *end = NULL;
    const long count = text ? strtol(text, &end, 10) : 0;

    if (text && (!isdigit((unsigned char)*text) || *end ||
                 count >= (long)model->nvariables))
        return set_wrong(r, "its metadata has statistics that are not the "
                            "number of some of its variables");
    model->trained = model->nvariables - (int)count;
    return 0;
}

int weights_adopt(const char *path, struct model *model)
{
    struct reading r;
    int status = reading_init(&r, "--graphs", path);

    model->nvariables = model->trained = 0;
    for (int i = 0; status == 0 && i < r.file->count; i++)
        status = adopt_variable(&r, model, &r.file->tensors[i]);
    if (status == 0 && model->nvariables == 0)
        status = set_wrong(&r, "it has no variables");
    if (status == 0)
        status = adopt_statistics(&r, model);
    reading_fini(&r);
    return status;
}

bool weights_match(const struct model *model, const struct model *other)
{
    if (model->nvariables != other->nvariables ||
        model->trained != other->trained)
        return false;
    for (int i = 0; i < model->nvariables; i++) {
        const struct model_variable *a = &model->variables[i];
        const struct model_variable *b = &other->variables[i];

        if (strcmp(a->name, b->name) != 0 || a->ndim != b->ndim ||
            memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) != 0)
            return false;
    }
    return true;
}
