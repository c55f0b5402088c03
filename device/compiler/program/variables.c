/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variables.c - the variables of a compiled program, by number and by name.
 *
 * A loop or a store that changes a variable in place makes another value of the
 * same name, in the same memory. The first value stands for all of them.
 */
#include "base/error.h"
#include "compiler/program.h"

#include <stdlib.h>
#include <string.h>

/* Orders two variables by name, and those of one name as they were made: values
 * lie in one array. */
static int compare_names(const void *a, const void *b)
{
    const struct ipu__value *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);

    return order != 0 ? order : (*x > *y) - (*x < *y);
}

static int compare_places(const void *a, const void *b)
{
    const struct ipu__value *const *x = a, *const *y = b;

    return (*x > *y) - (*x < *y);
}

/* Keeps the first of each name in a sorted list, and returns how many. */
static int32_t drop_repeats(const struct ipu__value **list, int32_t count)
{
    int32_t kept = 0;

    for (int32_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(list[kept - 1]->name, list[i]->name) != 0)
            list[kept++] = list[i];
    return kept;
}

int ipu__find_variables(struct ipu_executable *e)
{
    const size_t each = sizeof *e->variables;
    int32_t count = 0;

    IPU_TRY(ipu__new_array(&e->by_name, (size_t)e->nvalues, each));
    for (int32_t v = 0; v < e->nvalues; v++)
        if (e->values[v].kind == IPU__VARIABLE)
            e->by_name[count++] = &e->values[v];
    qsort(e->by_name, (size_t)count, each, compare_names);
    count = drop_repeats(e->by_name, count);
    IPU_TRY(ipu__new_array(&e->variables, (size_t)count, each));
    memcpy(e->variables, e->by_name, (size_t)count * each);
    qsort(e->variables, (size_t)count, each, compare_places);
    e->nvariables = count;
    return IPU_OK;
}

static int compare_to(const void *name, const void *variable)
{
    const struct ipu__value *const *v = variable;

    return strcmp(name, (*v)->name);
}

int32_t ipu__variable_named(const struct ipu_executable *e, const char *name)
{
    const struct ipu__value **found =
        e->nvariables == 0 ? NULL
                           : bsearch(name, e->by_name, (size_t)e->nvariables,
                                     sizeof(*e->by_name), compare_to);

    return found ? (int32_t)(*found - e->values) : -1;
}

int ipu_executable_variable(const ipu_executable *executable, int32_t variable,
                            ipu_variable_info *info)
{
    const struct ipu__value *v;

    IPU_TRY(ipu__check_info("variable", executable, info));
    IPU_TRY(ipu__check_size("variable info", info->size, sizeof *info));
    if (variable < 0 || variable >= executable->nvariables)
        return ipu__fail(IPU_ERR_NAME,
                         "the program has no variable of number %d",
                         (int)variable);
    v = executable->variables[variable];
    info->name = v->name;
    info->dtype = v->shape.dtype;
    info->ndim = v->shape.ndim;
    memcpy(info->shape, v->shape.extents,
           (size_t)v->shape.ndim * sizeof *info->shape);
    info->own = v->own != 0 || strcmp(v->name, IPU__REPLICA_INDEX) == 0;
    return IPU_OK;
}
