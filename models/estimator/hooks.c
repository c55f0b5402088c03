/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks.c - calls the hooks of an estimator (hvd_hook.h). After each round one
 * reduction says whether a rank has failed or wants to stop, and what rank 0
 * makes of the rate; without hooks that listen there is none. A hook may
 * evaluate, which calls hooks in turn: what these make of the rate stays.
 */
#include "estimator/estimator.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <math.h>
#include <string.h>

int hvd_event_value(const hvd_event *event, const char *name, double *value)
{
    for (int32_t i = 0; i < event->nvalues; i++)
        if (strcmp(event->values[i].name, name) == 0) {
            *value = event->values[i].value;
            return 0;
        }
    return problem_fail(HVD_ERR_ARGUMENT, "the event has no value '%s'", name);
}

void hvd_hook_free(hvd_hook *hook)
{
    if (hook && hook->free)
        hook->free(hook->context);
}

int hooks_check(const hvd_estimator_options *o)
{
    if (o->nhooks < 0 || (o->nhooks > 0 && !o->hooks))
        return problem_fail(HVD_ERR_ARGUMENT, "estimator: nhooks is %d%s",
                            (int)o->nhooks,
                            o->nhooks < 0 ? "" : ", and hooks is NULL");
    for (int32_t i = 0; i < o->nhooks; i++) {
        const hvd_hook *h = o->hooks[i];

        if (!h || h->size < sizeof *h || (h->tensors && !h->name))
            return problem_fail(HVD_ERR_ARGUMENT, "estimator: hook %d %s",
                                (int)i,
                                !h                     ? "is NULL"
                                : h->size < sizeof(*h) ? "has no size"
                                                       : "has tensors, and "
                                                         "no name");
        for (int32_t k = 0; h->name && k < i; k++)
            if (o->hooks[k]->name && strcmp(o->hooks[k]->name, h->name) == 0)
                return problem_fail(HVD_ERR_ARGUMENT,
                                    "estimator: two hooks have the name '%s'",
                                    h->name);
    }
    return 0;
}

static hvd_hook_fn *function_of(const hvd_hook *hook, enum moment moment)
{
    switch (moment) {
    case MOMENT_BEGIN: return hook->begin;
    case MOMENT_BEFORE_STEP: return hook->before_step;
    case MOMENT_AFTER_STEP: return hook->after_step;
    case MOMENT_AFTER_AVERAGE: return hook->after_average;
    case MOMENT_AFTER_EVALUATION: return hook->after_evaluation;
    case MOMENT_AFTER_CHECKPOINT: return hook->after_checkpoint;
    default: return hook->end;
    }
}

/* Calls all functions of a moment. Returns how many there are. */
static int call_all(hvd_estimator *e, enum moment moment, hvd_event *event,
                    bool *stops, int *failure)
{
    int count = 0;

    for (int32_t i = 0; i < e->options.nhooks; i++) {
        const hvd_hook *hook = e->options.hooks[i];
        hvd_hook_fn *call = function_of(hook, moment);

        if (!call)
            continue;
        count++;
        if (*failure == 0) {
            int status = call(hook->context, e, event);

            *stops |= status == HVD_HOOK_STOP;
            *failure = status < 0 ? status : 0;
        }
    }
    return count;
}

int hooks_call(hvd_estimator *e, enum moment moment, double loss,
               const struct values *values)
{
    const bool next = moment == MOMENT_BEFORE_STEP || e->step == 0;
    hvd_event event = {
        .size = sizeof event,
        .step = e->step,
        .last = e->last,
        .evaluated = values ? values->step : e->step,
        .loss = loss,
        .rate = hvd_schedule_rate(&e->options.rate,
                                  next ? e->step + e->once - 1 : e->step - 1),
        .rate_factor = e->numbers[NUMBER_RATE_FACTOR],
        .nvalues = values ? values->count : 0,
        .values = values ? values->list : NULL};
    const bool skipped = moment == MOMENT_AFTER_STEP && e->skip.variable;
    const double before = event.rate_factor;
    bool stops = false;
    int failure = 0;
    double sums[4];

    event.skipped = skipped ? e->skip.text : NULL;
    event.skipped_variable = skipped ? e->skip.variable : NULL;
    event.skipped_rank = skipped ? e->skip.rank : -1;
    if (call_all(e, moment, &event, &stops, &failure) == 0)
        return 0;
    if (failure < 0)
        problem_set("a hook: %s", hvd_last_error());
    sums[0] = failure < 0;
    sums[1] = stops;
    sums[2] = hvd_rank() == 0 && event.rate_factor != before;
    sums[3] = sums[2] > 0 ? event.rate_factor : 0;
    if (agree_sum(sums, 4) < 0)
        return problem_fail(HVD_ERR_PEER, "%s", problem_text());
    if (sums[0] > 0)
        return estimator_agree(failure);
    e->stops |= sums[1] > 0;
    if (sums[2] > 0)
        e->numbers[NUMBER_RATE_FACTOR] = sums[3];
    return 0;
}
