/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_run.c - compares the runs of two pipelines, figure by figure: the
 * time of a run by its parts, stages by their position, the fullest tile of all
 * chips, and what was measured.
 *
 * For the functions that print, it is one more pair of programs, the first.
 */

#include "report/compare.h"

enum { FIGURES = 12 }; /* besides those of stages */

static void add_figure(struct ipu__pair *pair, const char *name,
                       enum ipu__figure_unit unit, double before, double after)
{
    pair->figures[pair->nfigures++] = (struct ipu__figure){
        IPU__OF_PROGRAM, name, unit, before, after, false, false};
}

static void add_phases(struct ipu__pair *pair, const struct ipu__profile_run *a,
                       const struct ipu__profile_run *b)
{
    add_figure(pair, "cycles of a run", IPU__CYCLES, (double)a->total,
               (double)b->total);
    add_figure(pair, "  stages", IPU__CYCLES, (double)a->work, (double)b->work);
    add_figure(pair, "  between IPUs", IPU__CYCLES, (double)a->exchange,
               (double)b->exchange);
    add_figure(pair, "  sync", IPU__CYCLES, (double)a->sync, (double)b->sync);
    add_figure(pair, "  host", IPU__CYCLES, (double)a->host, (double)b->host);
    add_figure(pair, "  updates", IPU__CYCLES, (double)a->update,
               (double)b->update);
    add_figure(pair, "time of a run", IPU__NANOSECONDS,
               1e9 * (double)a->total / a->clock_hz,
               1e9 * (double)b->total / b->clock_hz);
}

/* Adds the stages by position: a stage that is cut elsewhere keeps its
 * position. */
static void add_stages(struct ipu__pair *pair, const struct ipu__profile_run *a,
                       const struct ipu__profile_run *b)
{
    for (int32_t i = 0; i < a->nstages && i < b->nstages; i++) {
        const struct ipu__profile_stage *x = &a->stages[i], *y = &b->stages[i];

        add_figure(pair, y->name, IPU__CYCLES,
                   (double)(x->forward + x->backward + x->recompute),
                   (double)(y->forward + y->backward + y->recompute));
    }
}

static double fullest(const struct ipu__profile_run *run)
{
    int64_t most = 0;

    for (int32_t i = 0; i < run->nchips; i++)
        if (most < run->chips[i].tile_bytes)
            most = run->chips[i].tile_bytes;
    return (double)most;
}

static void add_measured(struct ipu__pair *pair, const ipu_engine_times *a,
                         const ipu_engine_times *b)
{
    add_figure(pair, "measured, mean", IPU__NANOSECONDS,
               (double)a->run_ns / (double)a->runs,
               (double)b->run_ns / (double)b->runs);
    add_figure(pair, "measured, fastest", IPU__NANOSECONDS,
               (double)a->fastest_ns, (double)b->fastest_ns);
}

/* Makes a program that holds the facts about the chips for the pair's head. */
static struct ipu__program describe_chips(const struct ipu_profile *profile)
{
    struct ipu__program made = {.name = "the pipeline",
                                .ipus = profile->run.nchips};

    for (int32_t i = profile->nprograms - 1; i >= 0; i--)
        if (profile->programs[i].pipeline_cycles > 0)
            made.target = profile->programs[i].target;
    return made;
}

int ipu__compare_runs(struct ipu__comparison *c, struct ipu__pair *pair)
{
    const struct ipu__profile_run *a = &c->before->run, *b = &c->after->run;
    size_t most = FIGURES + (size_t)a->nstages;

    if (a->nstages == 0 || b->nstages == 0)
        return 0;
    c->pipelines[0] = describe_chips(c->before);
    c->pipelines[1] = describe_chips(c->after);
    *pair = (struct ipu__pair){.before = &c->pipelines[0],
                               .after = &c->pipelines[1]};
    IPU_TRY(ipu__new_array(&pair->figures, most, sizeof *pair->figures));
    add_phases(pair, a, b);
    add_stages(pair, a, b);
    add_figure(pair, "fullest tile", IPU__BYTES, fullest(a), fullest(b));
    if (a->measured && b->measured)
        add_measured(pair, &a->times, &b->times);
    return 1;
}
