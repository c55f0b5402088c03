/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.c - sources of arrays that files hold whole: IDX, .npy, .npz and
 * safetensors. The first dimension of each is the number of the element.
 */
#include "dataset/stage.h"

#include "files/gz.h"
#include "files/idx.h"
#include "files/npy.h"
#include "files/safetensors.h"
#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

/* A source keeps these until it is freed. */
struct hold {
    int32_t n;
    void *memory[HVD_MAX_COMPONENTS]; /* owned */
    struct npz *npz;
    struct safetensors *file;
};

static void release(void *context)
{
    struct hold *hold = context;

    for (int32_t i = 0; i < hold->n; i++)
        free(hold->memory[i]);
    npz_close(hold->npz);
    safetensors_close(hold->file);
    free(hold);
}

/* Describes an array by the shape of its elements. */
static int describe_array(const char *path, const char *name, int dtype,
                          int32_t ndim, const int64_t *shape,
                          hvd_component *component)
{
    if (ndim < 1 || ndim - 1 > HVD_MAX_COMPONENT_DIMS)
        return problem_fail(HVD_ERR_FILE,
                            "%s: \"%s\" has %d dimensions, expected 1 to %d, "
                            "the first of which is the number of the element",
                            path, name, (int)ndim, HVD_MAX_COMPONENT_DIMS + 1);
    if (dtype < 0)
        return problem_fail(HVD_ERR_UNSUPPORTED,
                            "%s: \"%s\" has a dtype that hvd.h does not have: "
                            "save it as another",
                            path, name);
    *component = (hvd_component){name, dtype, ndim - 1, {0}};
    for (int32_t i = 1; i < ndim; i++)
        component->shape[i - 1] = shape[i];
    return 0;
}

/* Checks that an array has as many elements as those before. */
static int check_rows(const char *path, const char *name, int64_t rows,
                      const char *first, int64_t *count)
{
    if (*count >= 0 && rows != *count)
        return problem_fail(
            HVD_ERR_FILE, "%s: %lld elements of \"%s\", but %lld of \"%s\"",
            path, (long long)rows, name, (long long)*count, first);
    *count = rows;
    return 0;
}

static struct hold *new_hold(void)
{
    struct hold *hold = calloc(1, sizeof *hold);

    if (!hold)
        problem_fail(HVD_ERR_MEMORY, "data set: no memory");
    return hold;
}

/* Checks the number and the texts of a list. */
static bool is_list(const char *what, int32_t n, const char *const *names)
{
    bool good = n >= 1 && n <= HVD_MAX_COMPONENTS && names;

    for (int32_t i = 0; good && i < n; i++)
        good = names[i];
    if (!good)
        problem_fail(HVD_ERR_ARGUMENT,
                     "data set: %d %s, expected 1 to %d, none of them NULL",
                     (int)n, what, HVD_MAX_COMPONENTS);
    return good;
}

/* --------------------------------------------------------------------- IDX */

hvd_dataset *hvd_dataset_idx(int32_t n, const char *const *names,
                             const char *const *paths)
{
    hvd_component components[HVD_MAX_COMPONENTS] = {{.name = NULL}};
    struct hold *hold;
    int64_t count = -1;

    if (!is_list("names of components", n, names) ||
        !is_list("paths", n, paths) || !(hold = new_hold()))
        return NULL;
    for (int32_t i = 0; i < n; i++) {
        struct idx_array array;
        int status = idx_read(paths[i], NULL, &array);

        if (status == 0) {
            hold->memory[hold->n++] = array.elements;
            status = describe_array(paths[i], names[i], array.dtype, array.ndim,
                                    array.shape, &components[i]);
        }
        if (status == 0)
            status = check_rows(paths[i], names[i], array.shape[0], names[0],
                                &count);
        if (status < 0) {
            release(hold);
            return NULL;
        }
    }
    return hvd_dataset_memory(n, components, (const void *const *)hold->memory,
                              count, release, hold);
}

/* --------------------------------------------------------------------- npy */

hvd_dataset *hvd_dataset_npy(const char *path, const char *name)
{
    hvd_component component = {.name = NULL};
    struct npy npy = {0};
    char *bytes;
    size_t length;
    struct hold *hold = new_hold();

    if (!hold)
        return NULL;
    int status = gz_read_file(path, &bytes, &length);
    if (status == 0)
        status = npy_parse(path, bytes, length, length, &npy);
    if (status == 0)
        status = describe_array(path, name ? name : "",
                                safetensors_to_hvd(npy.dtype), npy.ndim,
                                npy.shape, &component);
    if (status == 0) {
        hold->memory[0] = malloc(npy.bytes + 1);
        hold->n = 1;
        if (hold->memory[0])
            npy_copy(&npy, bytes + npy.first, hold->memory[0]);
        else
            status = problem_fail(HVD_ERR_MEMORY, "%s: no memory for %zu bytes",
                                  path, npy.bytes);
    }
    free(bytes);
    if (status < 0) {
        release(hold);
        return NULL;
    }
    return hvd_dataset_memory(1, &component, (const void *const *)hold->memory,
                              npy.shape[0], release, hold);
}

/* ------------------------------------------------- npz and safetensors */

/* The tensors of a file. */
struct listing {
    const char *path;
    int count;
    const struct safetensors_tensor *tensors;
};

static const struct safetensors_tensor *find_tensor(const struct listing *list,
                                                    const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->tensors[i].name, name) == 0)
            return &list->tensors[i];
    problem_fail(HVD_ERR_FILE,
                 "%s: there is no \"%s\" in it; the first of %d "
                 "is \"%s\"",
                 list->path, name, list->count,
                 list->count ? list->tensors[0].name : "");
    return NULL;
}

/* Makes the source. Takes hold over. */
static hvd_dataset *from_listing(const struct listing *list, int32_t n,
                                 const char *const *names, struct hold *hold)
{
    hvd_component components[HVD_MAX_COMPONENTS] = {{.name = NULL}};
    const void *at[HVD_MAX_COMPONENTS];
    int32_t all = n ? n : list->count;
    int64_t count = -1;

    if (all < 1 || all > HVD_MAX_COMPONENTS) {
        problem_fail(HVD_ERR_ARGUMENT,
                     "%s: %d arrays, expected 1 to %d: name those you need",
                     list->path, (int)all, HVD_MAX_COMPONENTS);
        release(hold);
        return NULL;
    }
    for (int32_t i = 0; i < all; i++) {
        const struct safetensors_tensor *t =
            n ? find_tensor(list, names[i]) : &list->tensors[i];

        if (!t ||
            describe_array(list->path, t->name, safetensors_to_hvd(t->dtype),
                           t->ndim, t->shape, &components[i]) < 0 ||
            check_rows(list->path, t->name, t->shape[0], components[0].name,
                       &count) < 0) {
            release(hold);
            return NULL;
        }
        at[i] = t->data;
    }
    return hvd_dataset_memory(all, components, at, count, release, hold);
}

static struct hold *open_hold(const char *path, int32_t n,
                              const char *const *names)
{
    if (!path) {
        problem_fail(HVD_ERR_ARGUMENT, "data set: the path is NULL");
        return NULL;
    }
    return n != 0 && !is_list("names", n, names) ? NULL : new_hold();
}

hvd_dataset *hvd_dataset_npz(const char *path, int32_t n,
                             const char *const *names)
{
    struct hold *hold = open_hold(path, n, names);

    if (!hold)
        return NULL;
    if (npz_open(path, &hold->npz) < 0) {
        release(hold);
        return NULL;
    }
    const struct listing list = {path, hold->npz->count, hold->npz->tensors};
    return from_listing(&list, n, names, hold);
}

hvd_dataset *hvd_dataset_safetensors(const char *path, int32_t n,
                                     const char *const *names)
{
    struct hold *hold = open_hold(path, n, names);

    if (!hold)
        return NULL;
    if (safetensors_open(path, &hold->file) < 0) {
        release(hold);
        return NULL;
    }
    const struct listing list = {path, hold->file->count, hold->file->tensors};
    return from_listing(&list, n, names, hold);
}
