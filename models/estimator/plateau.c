/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plateau.c - a hook that lets the learning rate fall when a value no longer
 * improves. The rules are those of Keras 3: after patience values without
 * improvement the rate is multiplied by a factor, but does not fall below
 * min_rate; cooldown values after that do not count as without improvement.
 */
#include "estimator/estimator.h"
#include "estimator/monitor.h"
#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

/* Numbers that a checkpoint keeps. */
enum { BEST, WAITED, COOLING, KEPT };

struct plateau {
    hvd_hook hook;
    struct monitor monitor;
    char name[300];
    double factor, min_rate;
    int64_t patience, cooldown;
    double numbers[KEPT];
    hvd_checkpoint_tensor tensor;
};

static const int64_t shape[] = {KEPT};

void hvd_plateau_options_init(hvd_plateau_options *options, size_t size)
{
    memset(options, 0, size);
    options->size = (uint32_t)size;
    options->monitor = "eval/loss";
    options->factor = 0.1;
    options->patience = 10;
    options->min_delta = 1e-4;
}

static void reduce(struct plateau *p, hvd_event *event)
{
    double factor = event->rate_factor * p->factor;

    if (event->rate * event->rate_factor <= p->min_rate)
        return;
    if (event->rate * factor < p->min_rate)
        factor = p->min_rate / event->rate;
    event->rate_factor = factor;
    p->numbers[COOLING] = (double)p->cooldown;
    p->numbers[WAITED] = 0;
}

static int look(void *context, hvd_estimator *e, hvd_event *event)
{
    struct plateau *p = context;
    double *n = p->numbers, value;
    int status = monitor_find(&p->monitor, event, &value);

    (void)e;
    if (status <= 0)
        return status;
    if (n[COOLING] > 0) {
        n[COOLING]--;
        n[WAITED] = 0;
    }
    if (monitor_improves(&p->monitor, value, n[BEST])) {
        n[BEST] = value;
        n[WAITED] = 0;
    } else if (n[COOLING] <= 0 && ++n[WAITED] >= (double)p->patience) {
        reduce(p, event);
    }
    return 0;
}

static const hvd_checkpoint_tensor *list_tensors(void *context,
                                                 hvd_estimator *e,
                                                 int32_t *count)
{
    struct plateau *p = context;

    (void)e;
    *count = 1;
    return &p->tensor;
}

static int check_options(const hvd_plateau_options *o)
{
    if (!o || o->size < sizeof *o || o->patience < 0 || o->cooldown < 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "plateau: the options must be set by "
                            "hvd_plateau_options_init, and patience and "
                            "cooldown not be negative");
    if (!(o->factor > 0 && o->factor < 1 && o->min_rate >= 0))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "plateau: factor is %g and min_rate %g: the first "
                            "must be between 0 and 1, and the other 0 or more",
                            o->factor, o->min_rate);
    return 0;
}

int hvd_plateau_new(const hvd_plateau_options *o, hvd_hook **hook)
{
    struct plateau *p = calloc(1, sizeof *p);
    int status = check_options(o);

    *hook = NULL;
    if (!p)
        return problem_fail(HVD_ERR_MEMORY, "no memory for a hook");
    if (status == 0)
        status = monitor_init(&p->monitor, "plateau", o->monitor, o->largest,
                              o->min_delta);
    if (status < 0) {
        free(p);
        return status;
    }
    p->factor = o->factor;
    p->min_rate = o->min_rate;
    p->patience = o->patience;
    p->cooldown = o->cooldown;
    p->numbers[BEST] = monitor_worst(&p->monitor);
    p->tensor = (hvd_checkpoint_tensor){.name = "numbers",
                                        .dtype = HVD_FLOAT64,
                                        .ndim = 1,
                                        .shape = shape,
                                        .data = p->numbers};
    snprintf(p->name, sizeof p->name, "plateau/%s", o->monitor);
    p->hook = (hvd_hook){.size = sizeof p->hook,
                         .name = p->name,
                         .context = p,
                         .after_average = look,
                         .after_evaluation = look,
                         .tensors = list_tensors,
                         .free = free};
    *hook = &p->hook;
    return 0;
}
