/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - the source of arrays in memory, which most other sources end in.
 */
#include "dataset/stage.h"

#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

struct arrays {
    const char *at[HVD_MAX_COMPONENTS];
    char *copies[HVD_MAX_COMPONENTS]; /* owned */
    int64_t count;
    void (*release)(void *context);
    void *context;
};

static int64_t count_rows(const hvd_dataset *set, const struct share *share)
{
    (void)share;
    return ((const struct arrays *)set->parameters)->count;
}

static int look_row(struct stage *stage, int64_t index, const void **at)
{
    const struct arrays *arrays = stage->set->parameters;

    for (int32_t i = 0; i < stage->set->ncomponents; i++)
        at[i] = arrays->at[i] + (size_t)index * stage->bytes[i];
    return 0;
}

static void free_arrays(hvd_dataset *set)
{
    struct arrays *arrays = set->parameters;

    for (int i = 0; i < HVD_MAX_COMPONENTS; i++)
        free(arrays->copies[i]);
    if (arrays->release)
        arrays->release(arrays->context);
}

static const struct kind memory_kind = {.name = "memory",
                                        .count = count_rows,
                                        .look = look_row,
                                        .free = free_arrays};

/* Copies an array that does not lie at a multiple of its elements' size. */
static bool align_array(const hvd_dataset *set, struct arrays *arrays,
                        int32_t i)
{
    size_t size = (size_t)hvd_dtype_size(set->components[i].dtype);
    size_t bytes = component_bytes(&set->components[i]) * (size_t)arrays->count;

    if ((uintptr_t)arrays->at[i] % size == 0)
        return true;
    arrays->copies[i] = malloc(bytes + 1);
    if (!arrays->copies[i])
        return false;
    memcpy(arrays->copies[i], arrays->at[i], bytes);
    arrays->at[i] = arrays->copies[i];
    return true;
}

hvd_dataset *hvd_dataset_memory(int32_t n, const hvd_component *components,
                                const void *const *at, int64_t count,
                                void (*release)(void *), void *context)
{
    hvd_dataset *set = node_make(&memory_kind, 0, NULL, sizeof(struct arrays));

    if (!set) {
        if (release)
            release(context);
        return NULL;
    }
    struct arrays *arrays = set->parameters;
    arrays->count = count;
    arrays->release = release;
    arrays->context = context;
    set->random = true;
    set = node_components(set, n, components);
    if (!set)
        return NULL;
    if (count < 0)
        return node_fail(set, HVD_ERR_ARGUMENT, "data set: %lld elements",
                         (long long)count);
    for (int32_t i = 0; i < n; i++) {
        if (!at || (!at[i] && count > 0))
            return node_fail(set, HVD_ERR_ARGUMENT,
                             "data set: the array of \"%s\" is NULL",
                             set->components[i].name);
        arrays->at[i] = at[i];
        if (!align_array(set, arrays, i))
            return node_fail(set, HVD_ERR_MEMORY,
                             "data set: no memory for \"%s\"",
                             set->components[i].name);
    }
    return set;
}
