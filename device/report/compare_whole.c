/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_whole.c - joins all programs of a profile into one, so that profiles
 * can be compared whose programs are not the same: one chip with a pipeline,
 * for example.
 *
 * The steps of the whole are those of all programs, each as often as a run
 * executes it; so its ops, modules and vertices are sums of work. The time of a
 * run is that of the pipeline, whose chips work at the same time, or else the
 * sum of the programs. A body of a loop is part of the step that runs it and is
 * left out. Tiles are not joined: the programs of a chip share them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/compare.h"
#include "target/target.h"

int64_t ipu__executions(const struct ipu_profile *profile,
                        const struct ipu__program *program)
{
    static const char update[] = "update on IPU ";

    if (program->parent)
        return 0;
    if (profile->run.nstages == 0 || program->pipeline_cycles == 0)
        return 1;
    return strncmp(program->name, update, sizeof update - 1) == 0
               ? profile->run.updates
               : profile->run.mini_batches;
}

static void join_program(struct ipu__program *whole,
                         const struct ipu__program *p, int64_t times)
{
    ipu_program_cycles *sum = &whole->cycles;

    for (int32_t i = 0; i < p->nsteps && times > 0; i++) {
        struct ipu__profile_step *s = &whole->steps[whole->nsteps++];
        int64_t all = p->steps[i].times * times;

        *s = p->steps[i];
        s->times = all < INT32_MAX ? (int32_t)all : INT32_MAX;
    }
    sum->compute += times * p->cycles.compute;
    sum->exchange += times * p->cycles.exchange;
    sum->sync += times * p->cycles.sync;
    sum->host += times * p->cycles.host;
    sum->total += times * p->cycles.total;
    sum->flops += (double)times * p->cycles.flops;
    if (times > 0 &&
        whole->memory.fullest_tile_bytes < p->memory.fullest_tile_bytes)
        whole->memory.fullest_tile_bytes = p->memory.fullest_tile_bytes;
    if (times > 0) {
        whole->memory.always_live_bytes += p->memory.always_live_bytes;
        whole->memory.peak_bytes += p->memory.peak_bytes;
    }
    if (whole->ipus < p->ipu + p->ipus)
        whole->ipus = p->ipu + p->ipus;
}

/* The programs of a pipeline share the memory of their chips. */
static void take_run(struct ipu__program *whole,
                     const struct ipu__profile_run *run)
{
    ipu_memory_info *m = &whole->memory;

    m->fullest_tile_bytes = m->always_live_bytes = m->peak_bytes = 0;
    for (int32_t i = 0; i < run->nchips; i++) {
        const struct ipu__profile_chip *c = &run->chips[i];

        if (m->fullest_tile_bytes < c->tile_bytes)
            m->fullest_tile_bytes = c->tile_bytes;
        m->always_live_bytes += c->variable_bytes;
        m->peak_bytes += c->variable_bytes + c->stash_bytes + c->program_bytes;
    }
    whole->ipus = run->nchips;
    whole->cycles.total = run->total;
    whole->cycles.host = run->host;
    whole->cycles.seconds = (double)run->total / run->clock_hz;
    whole->measured = run->measured;
    whole->times = run->times;
}

int ipu__join_programs(const struct ipu_profile *profile,
                       struct ipu__program *whole)
{
    size_t nsteps = 0;

    *whole = (struct ipu__program){.name = "all programs"};
    for (int32_t i = 0; i < profile->nprograms; i++)
        nsteps += (size_t)profile->programs[i].nsteps;
    IPU_TRY(ipu__new_array(&whole->steps, nsteps + 1, sizeof *whole->steps));
    if (profile->nprograms > 0)
        whole->target = profile->programs[0].target;
    for (int32_t i = 0; i < profile->nprograms; i++)
        join_program(whole, &profile->programs[i],
                     ipu__executions(profile, &profile->programs[i]));
    whole->cycles.seconds =
        ipu_model_seconds(&whole->target, whole->cycles.total);
    if (profile->run.nstages > 0) {
        take_run(whole, &profile->run);
    } else if (profile->nprograms == 1) {
        whole->measured = profile->programs[0].measured;
        whole->times = profile->programs[0].times;
    }
    return IPU_OK;
}

/* -------------------------------------------------------------------- words */

static void say_side(const struct ipu_profile *p, const char *which,
                     const struct ipu__program *of, bool whole, char *text,
                     size_t size)
{
    const struct ipu__profile_run *run = &p->run;

    if (!whole)
        snprintf(text, size,
                 "Of the %s profile it is the program '%.60s' on %d IPU%s, "
                 "which a run executes once.",
                 which, of->name, (int)of->ipus, of->ipus == 1 ? "" : "s");
    else if (run->nstages > 0)
        snprintf(text, size,
                 "The %s profile is a pipeline of %d stages on %d IPUs: a run "
                 "takes %" PRId64 " mini-batches through %" PRId64
                 " slots, and makes %" PRId64 " update%s.",
                 which, (int)run->nstages, (int)run->nchips, run->mini_batches,
                 run->slots, run->updates, run->updates == 1 ? "" : "s");
    else
        snprintf(text, size,
                 "Of the %s profile it is all programs, each of which a run is "
                 "taken to execute once, one after the other.",
                 which);
}

void ipu__say_whole(const struct ipu__comparison *c,
                    const struct ipu__pair *pair,
                    char (*sentences)[IPU__WHOLE_TEXT])
{
    bool pipelines = c->before->run.nstages > 0 || c->after->run.nstages > 0;

    say_side(c->before, "first", pair->before, pair->before == &c->wholes[0],
             sentences[0], sizeof sentences[0]);
    say_side(c->after, "second", pair->after, pair->after == &c->wholes[1],
             sentences[1], sizeof sentences[1]);
    snprintf(sentences[2], sizeof sentences[2],
             "Steps, ops, modules and vertices are those of all programs, each "
             "as often as a run executes it%s.",
             pipelines ? ", on all IPUs. IPUs of a pipeline work at the same "
                         "time, so these cycles are work, not the time of a run"
                       : "");
    snprintf(sentences[3], sizeof sentences[3],
             "What tiles hold has no counterpart but the fullest of them and "
             "the sums%s.",
             pipelines ? "; nor have what passes between IPUs, their waiting "
                         "for each other, and stashes"
                       : "");
}
