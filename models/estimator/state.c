/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - lists what a checkpoint keeps beside the variables and the state of
 * the optimiser: the numbers of the training ("estimator/numbers"), running
 * averages of variables ("average/VARIABLE"), and the tensors of hooks
 * ("hook/NAME/TENSOR"). A checkpoint that was written without a hook, or by an
 * earlier version, lacks some: these keep their first values.
 */
#include "estimator/estimator.h"
#include "net/make.h"
#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

static const int64_t numbers_shape[] = {NUMBERS};

/* Adds a tensor, with its name in a group. */
static int add(struct state *s, const char *group, const char *part,
               const hvd_checkpoint_tensor *tensor)
{
    size_t bytes = strlen(group) + strlen(part) + strlen(tensor->name) + 3;
    char *name = malloc(bytes);

    if (s->count == s->capacity) {
        int capacity = 2 * s->capacity + 16;
        void *list = realloc(s->list, (size_t)capacity * sizeof *s->list);
        char **names;

        if (list)
            s->list = list;
        names = realloc(s->names, (size_t)capacity * sizeof *s->names);
        if (names)
            s->names = names;
        if (list && names)
            s->capacity = capacity;
    }
    if (!name || s->count == s->capacity) {
        free(name);
        return problem_fail(HVD_ERR_MEMORY, "no memory for a checkpoint");
    }
    snprintf(name, bytes, "%s/%s%s%s", group, part, *part ? "/" : "",
             tensor->name);
    s->names[s->count] = name;
    s->list[s->count] = *tensor;
    s->list[s->count++].name = name;
    return 0;
}

static int add_averages(struct state *s, const hvd_estimator *e)
{
    int status = 0;

    for (int i = 0; i < e->naveraged && status == 0; i++) {
        hvd_checkpoint_tensor one = {.dtype = HVD_FLOAT32,
                                     .data = e->averages[i]};
        int64_t count;

        one.name = net_variable(trainer_model(e->trainer), i, &one.ndim,
                                &one.shape, &count);
        status = add(s, "average", "", &one);
    }
    return status;
}

static int add_hook(struct state *s, hvd_estimator *e, const hvd_hook *hook)
{
    const hvd_checkpoint_tensor *tensors;
    int32_t count = 0;
    int status = 0;

    if (!hook->tensors)
        return 0;
    tensors = hook->tensors(hook->context, e, &count);
    if (!tensors && count > 0)
        return problem_fail(HVD_ERR_MEMORY, "hook %s: no memory", hook->name);
    for (int32_t i = 0; i < count && status == 0; i++)
        status = add(s, "hook", hook->name, &tensors[i]);
    return status;
}

int state_init(struct state *s, hvd_estimator *e)
{
    const hvd_checkpoint_tensor numbers = {.name = "numbers",
                                           .dtype = HVD_FLOAT64,
                                           .ndim = 1,
                                           .shape = numbers_shape,
                                           .data = e->numbers};
    int status;

    *s = (struct state){0};
    status = add(s, "estimator", "", &numbers);
    if (status == 0)
        status = add_averages(s, e);
    for (int32_t i = 0; i < e->options.nhooks && status == 0; i++)
        status = add_hook(s, e, e->options.hooks[i]);
    return status;
}

void state_fini(struct state *s)
{
    for (int i = 0; i < s->count; i++)
        free(s->names[i]);
    free(s->names);
    free(s->list);
    *s = (struct state){0};
}

int state_read(const struct state *s, const hvd_checkpoint *checkpoint)
{
    int status = 0;

    for (int i = 0; i < s->count && status >= 0; i++) {
        hvd_checkpoint_tensor there;

        if (hvd_checkpoint_find(checkpoint, s->list[i].name, &there) >= 0)
            status =
                hvd_checkpoint_restore(checkpoint, &s->list[i], 1, NULL, 0, 0);
    }
    return status < 0 ? status : 0;
}
