/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - what all data sets have: components, references, inputs. */
#include "dataset/stage.h"

#include "output/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t component_count(const hvd_component *component)
{
    int64_t count = 1;

    for (int32_t i = 0; i < component->ndim; i++)
        count *= component->shape[i];
    return count;
}

size_t component_bytes(const hvd_component *component)
{
    return (size_t)component_count(component) *
           (size_t)hvd_dtype_size(component->dtype);
}

bool component_equal(const hvd_component *a, const hvd_component *b)
{
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype &&
           a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

/* Checks one component of a user. */
static int check_component(const hvd_component *c)
{
    int64_t count = 1;

    if (!c->name || !*c->name || strlen(c->name) > HVD_MAX_COMPONENT_NAME)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "data set: a component needs a name of 1 to %d "
                            "bytes",
                            HVD_MAX_COMPONENT_NAME);
    if (hvd_dtype_size(c->dtype) < 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "data set: component \"%s\": no dtype %d", c->name,
                            (int)c->dtype);
    if (c->ndim < 0 || c->ndim > HVD_MAX_COMPONENT_DIMS)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "data set: component \"%s\" has %d dimensions, "
                            "expected 0 to %d",
                            c->name, (int)c->ndim, HVD_MAX_COMPONENT_DIMS);
    for (int32_t i = 0; i < c->ndim; i++)
        if (c->shape[i] < 1 ||
            __builtin_mul_overflow(count, c->shape[i], &count) ||
            count > (int64_t)1 << 40)
            return problem_fail(HVD_ERR_ARGUMENT,
                                "data set: component \"%s\": dimension %d is "
                                "%lld, expected 1 or more, and at most 2^40 "
                                "numbers in all",
                                c->name, (int)i, (long long)c->shape[i]);
    return 0;
}

int check_components(int32_t n, const hvd_component *components)
{
    if (n < 1 || n > HVD_MAX_COMPONENTS || !components)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "data set: %d components, expected 1 to %d", (int)n,
                            HVD_MAX_COMPONENTS);
    for (int32_t i = 0; i < n; i++) {
        int status = check_component(&components[i]);

        if (status < 0)
            return status;
        for (int32_t j = 0; j < i; j++)
            if (strcmp(components[i].name, components[j].name) == 0)
                return problem_fail(HVD_ERR_ARGUMENT,
                                    "data set: two components are called "
                                    "\"%s\"",
                                    components[i].name);
    }
    return 0;
}

hvd_dataset *node_components(hvd_dataset *set, int32_t n,
                             const hvd_component *components)
{
    hvd_component fresh[HVD_MAX_COMPONENTS];

    if (!set)
        return NULL;
    if (check_components(n, components) < 0) {
        hvd_dataset_free(set);
        return NULL;
    }
    memcpy(fresh, components, (size_t)n * sizeof *fresh);
    for (int32_t i = 0; i < n; i++) {
        memmove(set->names[i], fresh[i].name, strlen(fresh[i].name) + 1);
        fresh[i].name = set->names[i];
    }
    memcpy(set->components, fresh, (size_t)n * sizeof *fresh);
    set->ncomponents = n;
    return set;
}

hvd_dataset *node_make(const struct kind *kind, int32_t ninputs,
                       hvd_dataset *const *inputs, size_t parameters)
{
    hvd_dataset *set = calloc(1, sizeof *set);
    bool whole = set;

    if (set) {
        set->kind = kind;
        atomic_init(&set->references, 1);
        set->inputs = calloc((size_t)ninputs + 1, sizeof(hvd_dataset *));
        set->parameters = calloc(1, parameters + 1);
        whole = set->inputs && set->parameters;
    }
    if (!whole)
        problem_fail(HVD_ERR_MEMORY, "data set: no memory for %s", kind->name);
    for (int32_t i = 0; i < ninputs; i++)
        whole = whole && inputs[i];
    if (!whole) {
        for (int32_t i = 0; i < ninputs; i++)
            hvd_dataset_free(inputs[i]);
        if (set) {
            free(set->inputs);
            free(set->parameters);
        }
        free(set);
        return NULL;
    }
    set->random = set->batched = false;
    set->ninputs = ninputs;
    for (int32_t i = 0; i < ninputs; i++) {
        set->inputs[i] = inputs[i];
        set->batched = set->batched || inputs[i]->batched;
        set->endless = set->endless || inputs[i]->endless;
    }
    if (ninputs == 0)
        return set;
    set->random = true;
    for (int32_t i = 0; i < ninputs; i++)
        set->random = set->random && inputs[i]->random;
    return node_components(set, inputs[0]->ncomponents, inputs[0]->components);
}

hvd_dataset *node_fail(hvd_dataset *set, int status, const char *format, ...)
{
    char text[2048];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    problem_fail(status, "%s", text);
    hvd_dataset_free(set);
    return NULL;
}

hvd_dataset *hvd_dataset_keep(hvd_dataset *dataset)
{
    if (dataset)
        atomic_fetch_add_explicit(&dataset->references, 1,
                                  memory_order_relaxed);
    return dataset;
}

void hvd_dataset_free(hvd_dataset *dataset)
{
    /* Whoever drops the last reference sees what the others did. */
    if (!dataset || atomic_fetch_sub_explicit(&dataset->references, 1,
                                              memory_order_acq_rel) > 1)
        return;
    if (dataset->kind->free)
        dataset->kind->free(dataset);
    for (int32_t i = 0; i < dataset->ninputs; i++)
        hvd_dataset_free(dataset->inputs[i]);
    free(dataset->inputs);
    free(dataset->parameters);
    free(dataset);
}

const hvd_component *hvd_dataset_components(const hvd_dataset *dataset,
                                            int32_t *count)
{
    if (!dataset)
        return NULL;
    if (count)
        *count = dataset->ncomponents;
    return dataset->components;
}

int32_t node_find(const hvd_dataset *set, const char *name)
{
    for (int32_t i = 0; name && i < set->ncomponents; i++)
        if (strcmp(set->components[i].name, name) == 0)
            return i;
    return -1;
}

int64_t node_count(const hvd_dataset *set, const struct share *share)
{
    if (set->kind->count)
        return set->kind->count(set, share);
    return node_count(set->inputs[0], share);
}

int64_t hvd_dataset_count(const hvd_dataset *dataset)
{
    static const struct share alone = {.workers = 1, .replicas = 1};

    return dataset ? node_count(dataset, &alone) : -1;
}
