/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiler.c - a hook that looks closely at a few steps of a training: a
 * timeline of all ranks, which libhvd writes, and a report of rank 0's device.
 */
#include "estimator/estimator.h"
#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

struct profiler {
    hvd_hook hook;
    int64_t first, steps;
    char *timeline, *report; /* owned; NULL: there is none */
    bool runs;
};

void hvd_profiler_options_init(hvd_profiler_options *options, size_t size)
{
    memset(options, 0, size);
    options->size = (uint32_t)size;
    options->first = 10;
    options->steps = 10;
}

static int start(void *context, hvd_estimator *e, hvd_event *event)
{
    struct profiler *p = context;
    int status = 0;

    if (event->step != p->first || p->runs)
        return 0;
    if (p->timeline && e->options.servers > 0)
        return problem_fail(HVD_ERR_UNSUPPORTED,
                            "profiler: a timeline is of all ranks, and "
                            "parameter servers only serve: leave it out, and "
                            "set HVD_TIMELINE for all of them");
    p->runs = true;
    if (p->report && hvd_rank() == 0)
        status = trainer_record(e->trainer, true);
    status = estimator_agree(status);
    return status == 0 && p->timeline ? hvd_start_timeline(p->timeline)
                                      : status;
}

static int stop(void *context, hvd_estimator *e, hvd_event *event)
{
    struct profiler *p = context;
    char title[64];
    int status = 0;

    if (!p->runs)
        return 0;
    p->runs = false;
    if (p->timeline)
        hvd_stop_timeline();
    if (!p->report || hvd_rank() != 0)
        return 0;
    snprintf(title, sizeof title, "steps %lld to %lld", (long long)p->first,
             (long long)event->step);
    status = trainer_write_profile(e->trainer, p->report, title);
    if (status == 0)
        status = trainer_record(e->trainer, false);
    return status;
}

static int stop_if_due(void *context, hvd_estimator *e, hvd_event *event)
{
    const struct profiler *p = context;

    return event->step >= p->first + p->steps ? stop(context, e, event) : 0;
}

static void profiler_free(void *context)
{
    struct profiler *p = context;

    free(p->timeline);
    free(p->report);
    free(p);
}

int hvd_profiler_new(const hvd_profiler_options *o, hvd_hook **hook)
{
    struct profiler *p;

    *hook = NULL;
    if (!o || o->size < sizeof *o || o->first < 0 || o->steps < 1 ||
        (!o->timeline && !o->report))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "profiler: the options must be set by "
                            "hvd_profiler_options_init, have a timeline or a "
                            "report, a first step of 0 or more, and a step at "
                            "least");
    p = calloc(1, sizeof *p);
    if (p) {
        p->first = o->first;
        p->steps = o->steps;
        p->timeline = o->timeline ? strdup(o->timeline) : NULL;
        p->report = o->report ? strdup(o->report) : NULL;
    }
    if (!p || !p->timeline != !o->timeline || !p->report != !o->report) {
        if (p)
            profiler_free(p);
        return problem_fail(HVD_ERR_MEMORY, "no memory for a hook");
    }
    p->hook = (hvd_hook){.size = sizeof p->hook,
                         .context = p,
                         .before_step = start,
                         .after_step = stop_if_due,
                         .end = stop,
                         .free = profiler_free};
    *hook = &p->hook;
    return 0;
}
