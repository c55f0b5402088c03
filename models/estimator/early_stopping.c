/* SPDX-License-Identifier: Apache-2.0 */
/*
 * early_stopping.c - a hook that ends a training which no longer improves. The
 * rules are those of Keras 3: each value that is not better than the best by
 * more than min_delta makes the hook wait; when it has waited for patience
 * values, the training stops, but not after the first.
 *
 * The best variables are kept in memory: those that are trained, statistics,
 * and the running averages of all.
 */
#include "estimator/estimator.h"
#include "estimator/monitor.h"
#include "net/make.h"
#include "output/problem.h"
#include "trainer/snapshot.h"

#include <stdlib.h>
#include <string.h>

/* Numbers that a checkpoint keeps. */
enum { BEST, WAITED, VALUES, STOPPED, KEPT };

struct stopping {
    hvd_hook hook;
    struct monitor monitor;
    char name[300];
    int64_t patience, start;
    bool restore_best;
    double numbers[KEPT];
    hvd_checkpoint_tensor *tensors; /* owned, [count]: the numbers, and then the
                                       best variables, whose data is owned */
    int32_t count;
    char (*names)[64]; /* owned: of averages */
};

void hvd_early_stopping_options_init(hvd_early_stopping_options *options,
                                     size_t size)
{
    memset(options, 0, size);
    options->size = (uint32_t)size;
    options->monitor = "eval/loss";
}

/* Copies the variables as they are now, or gives them back. */
static int copy_best(const struct stopping *s, hvd_estimator *e, bool back)
{
    float *const *values = trainer_values(e->trainer);
    const int32_t variables = s->count - 1 - e->naveraged;

    for (int32_t i = 1; i < s->count; i++) {
        const int64_t count = snapshot_elements(&s->tensors[i]);
        float *now =
            i <= variables ? values[i - 1] : e->averages[i - 1 - variables];

        memcpy(back ? now : s->tensors[i].data, back ? s->tensors[i].data : now,
               (size_t)count * sizeof *now);
    }
    return back ? trainer_write_values(e->trainer) : 0;
}

static int begin(void *context, hvd_estimator *e, hvd_event *event)
{
    const struct stopping *s = context;

    (void)e, (void)event;
    return s->numbers[STOPPED] > 0 ? HVD_HOOK_STOP : 0;
}

static int look(void *context, hvd_estimator *e, hvd_event *event)
{
    struct stopping *s = context;
    double *n = s->numbers, value;
    int status = monitor_find(&s->monitor, event, &value);

    if (status <= 0 || event->step < s->start)
        return status < 0 ? status : 0;
    if (s->restore_best && event->evaluated != event->step)
        return problem_fail(HVD_ERR_UNSUPPORTED,
                            "early stopping: restore_best needs the variables "
                            "that were evaluated, and an evaluator of its own "
                            "has done it: evaluate in the training");
    n[VALUES]++;
    n[WAITED]++;
    if (monitor_improves(&s->monitor, value, n[BEST])) {
        n[BEST] = value;
        n[WAITED] = 0;
    }
    if (s->restore_best && (n[WAITED] == 0 || n[VALUES] == 1))
        copy_best(s, e, false);
    n[STOPPED] =
        n[WAITED] > 0 && n[WAITED] >= (double)s->patience && n[VALUES] > 1;
    return n[STOPPED] > 0 ? HVD_HOOK_STOP : 0;
}

static int restore(void *context, hvd_estimator *e, hvd_event *event)
{
    const struct stopping *s = context;

    (void)event;
    return s->numbers[VALUES] > 0 ? copy_best(s, e, true) : 0;
}

/* Has room for the best values of all variables. */
static const hvd_checkpoint_tensor *list_tensors(void *context,
                                                 hvd_estimator *e,
                                                 int32_t *count)
{
    static const int64_t shape[] = {KEPT};
    struct stopping *s = context;
    const struct model *m = trainer_model(e->trainer);
    hvd_checkpoint_tensor *t;
    int64_t elements;
    int variables = 0, all;

    while (s->restore_best && net_variable(m, variables, &(int32_t){0},
                                           &(const int64_t *){NULL}, &elements))
        variables++;
    all = variables + (s->restore_best ? e->naveraged : 0);
    *count = all + 1;
    if (!s->tensors)
        s->tensors = calloc((size_t)all + 1, sizeof *s->tensors);
    if (!s->names)
        s->names = calloc((size_t)e->naveraged + 1, sizeof *s->names);
    if (!s->tensors || !s->names)
        return NULL;
    s->tensors[0] = (hvd_checkpoint_tensor){.name = "numbers",
                                            .dtype = HVD_FLOAT64,
                                            .ndim = 1,
                                            .shape = shape,
                                            .data = s->numbers};
    for (s->count = 1; s->count <= all; s->count++) {
        const int number = variables > 0 ? (s->count - 1) % variables : 0;

        t = &s->tensors[s->count];
        t->name = net_variable(m, number, &t->ndim, &t->shape, &elements);
        if (s->count > variables) {
            snprintf(s->names[number], sizeof *s->names, "average/%s", t->name);
            t->name = s->names[number];
        }
        t->dtype = HVD_FLOAT32;
        if (!t->data)
            t->data = calloc((size_t)elements + 1, sizeof(float));
        if (!t->data)
            return NULL;
    }
    return s->tensors;
}

static void stopping_free(void *context)
{
    struct stopping *s = context;

    for (int32_t i = 1; i < s->count; i++)
        free(s->tensors[i].data);
    free(s->tensors);
    free(s->names);
    free(s);
}

int hvd_early_stopping_new(const hvd_early_stopping_options *o, hvd_hook **hook)
{
    struct stopping *s = calloc(1, sizeof *s);
    int status = 0;

    *hook = NULL;
    if (!s)
        return problem_fail(HVD_ERR_MEMORY, "no memory for a hook");
    if (!o || o->size < sizeof *o || o->patience < 0 || o->start < 0)
        status = problem_fail(HVD_ERR_ARGUMENT,
                              "early stopping: the options must be set by "
                              "hvd_early_stopping_options_init, and patience "
                              "and start not be negative");
    if (status == 0)
        status = monitor_init(&s->monitor, "early stopping", o->monitor,
                              o->largest, o->min_delta);
    if (status < 0) {
        free(s);
        return status;
    }
    s->patience = o->patience;
    s->start = o->start;
    s->restore_best = o->restore_best;
    s->numbers[BEST] = monitor_worst(&s->monitor);
    snprintf(s->name, sizeof s->name, "early_stopping/%s", o->monitor);
    s->hook = (hvd_hook){.size = sizeof s->hook,
                         .name = s->name,
                         .context = s,
                         .begin = begin,
                         .after_average = look,
                         .after_evaluation = look,
                         .end = s->restore_best ? restore : NULL,
                         .tensors = list_tensors,
                         .free = stopping_free};
    *hook = &s->hook;
    return 0;
}
