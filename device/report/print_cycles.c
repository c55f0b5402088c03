/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_cycles.c - prints the time of a program: by phase, by op, by step, and
 * along the run, one sign for each part of it.
 *
 * The longest lists are cut after MOST_ROWS, with a count of the rest. print.c
 * calls ipu__print_cycles for each program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/analysis.h"
#include "report/print.h"
#include "report/totals.h"

enum { BAR = 24, STRIP = 76, MOST_ROWS = 20, MOST_REASONS = 16 };

static void print_phase(const struct ipu__program *p, const char *name,
                        int64_t cycles, struct ipu__text *text)
{
    ipu__text_put(text, "  %-10s %15s %11s %5.1f %%", name,
                  ipu__count_within(cycles, 15).text,
                  ipu__seconds_text(ipu_model_seconds(&p->target, cycles)).text,
                  ipu__percent((double)cycles, (double)p->cycles.total));
    ipu__text_put_bar(text, (double)cycles / (double)p->cycles.total, BAR);
    ipu__text_put(text, "\n");
}

static void print_phases(const struct ipu__program *p, struct ipu__text *text)
{
    ipu__text_put(text, "\ncycles of a run\n");
    print_phase(p, "compute", p->cycles.compute - p->cycles.waiting, text);
    print_phase(p, "waiting", p->cycles.waiting, text);
    print_phase(p, "exchange", p->cycles.exchange, text);
    print_phase(p, "sync", p->cycles.sync, text);
    print_phase(p, "host", p->cycles.host, text);
    ipu__text_put(text, "  %-10s %15s %11s%s\n", "in all",
                  ipu__count_within(p->cycles.total, 15).text,
                  ipu__seconds_text(p->cycles.seconds).text,
                  p->target.io_tiles > 0 ? "  host goes on beside the rest"
                                         : "");
    for (int32_t i = 0; i < p->nstreams; i++) {
        const struct ipu__profile_stream *s = &p->streams[i];

        if (s->cycles == 0 || i >= MOST_ROWS)
            continue;
        ipu__text_put(
            text, "  %s '%.30s': %s, %s\n", s->kind, s->name,
            ipu__bytes_text((double)s->bytes).text,
            ipu__seconds_text(ipu_model_seconds(&p->target, s->cycles)).text);
    }
}

/* Returns the sign of the phase that takes most of a slice of the run. */
static char sign_of(const double phases[4])
{
    int most = 0;

    for (int i = 1; i < 4; i++)
        if (phases[i] > phases[most])
            most = i;
    return phases[most] > 0 ? "#=.h"[most] : ' ';
}

/* Spreads a phase that begins at *at over the slices; drops the part beyond the
 * last. */
static void spread_phase(double (*slices)[4], int phase, double *at,
                         double cycles)
{
    double end = *at + cycles;

    if (!(end <= STRIP))
        end = STRIP;
    for (int i = (int)*at; i < STRIP && i < end; i++) {
        double from = *at > i ? *at : i, to = end < i + 1 ? end : i + 1;

        if (to > from)
            slices[i][phase] += to - from;
    }
    *at = end;
}

static void print_strip(const struct ipu__program *p, struct ipu__text *text)
{
    double slices[STRIP][4] = {{0}}, at = 0;
    double all = (double)(p->cycles.compute + p->cycles.exchange +
                          p->cycles.sync + p->cycles.host);

    if (!(all > 0))
        return;
    for (int32_t i = 0; i < p->nstreams; i++)
        if (strcmp(p->streams[i].kind, "input") == 0)
            spread_phase(slices, 3, &at,
                         (double)p->streams[i].cycles / all * STRIP);
    for (int32_t i = 0; i < p->nsteps; i++) {
        const struct ipu__profile_step *s = &p->steps[i];
        double scale = s->times / all * STRIP;

        spread_phase(slices, 2, &at, (double)s->sync * scale);
        spread_phase(slices, 1, &at, (double)s->exchange * scale);
        spread_phase(slices, 0, &at, (double)s->compute * scale);
        spread_phase(slices, 3, &at, (double)s->host * scale);
    }
    for (int32_t i = 0; i < p->nstreams; i++)
        if (strcmp(p->streams[i].kind, "output") == 0)
            spread_phase(slices, 3, &at,
                         (double)p->streams[i].cycles / all * STRIP);
    ipu__text_put(text,
                  "\nalong the run: # compute, = exchange, . sync, h host\n  ");
    for (int i = 0; i < STRIP; i++)
        ipu__text_put(text, "%c", sign_of(slices[i]));
    ipu__text_put(text, "\n");
}

/* ------------------------------------------------------------------- tables */

static void print_ns(double ns, double runs, struct ipu__text *text)
{
    if (ns < 0 || !(runs > 0))
        ipu__text_put(text, " %9s", "-");
    else
        ipu__text_put(text, " %9s", ipu__seconds_text(ns / runs / 1e9).text);
}

static int print_ops(const struct ipu__program *p, struct ipu__text *text)
{
    struct ipu__total *totals = NULL;
    int n = ipu__totals(p, IPU__BY_OP, &totals);

    IPU_TRY(n);
    ipu__text_put(text, "\n  %-22s %5s %13s %6s %6s %10s %9s\n", "op", "steps",
                  "cycles", "%", "exch %", "operations", "here");
    for (int i = 0; i < n && i < MOST_ROWS; i++) {
        const struct ipu__total *t = &totals[i];

        ipu__text_put(text, "  ");
        ipu__text_put_name(text, t->name, 22);
        ipu__text_put(text, " %5d%c%13s %6.1f %6.1f %10s", (int)t->steps,
                      t->estimated ? '~' : ' ',
                      ipu__count_within(t->cycles, 13).text,
                      ipu__percent((double)t->cycles, (double)p->cycles.total),
                      ipu__percent((double)t->exchange, (double)t->cycles),
                      ipu__scaled_text(t->flops, "").text);
        print_ns((double)t->ns, (double)p->times.runs, text);
        ipu__text_put(text, "\n");
    }
    if (n > MOST_ROWS)
        ipu__text_put(text, "  and %d more\n", n - MOST_ROWS);
    free(totals);
    return IPU_OK;
}

struct row {
    int32_t step;
    int64_t cycles;
};

static int by_cycles(const void *first, const void *second)
{
    const struct row *a = first, *b = second;

    if (a->cycles != b->cycles)
        return a->cycles < b->cycles ? 1 : -1;
    return a->step < b->step ? -1 : a->step > b->step;
}

static void print_step(const struct ipu__program *p, int32_t i,
                       struct ipu__text *text)
{
    const struct ipu__profile_step *s = &p->steps[i];

    ipu__text_put(text, "  %5d ", (int)i);
    ipu__text_put_name(text, s->op, 13);
    ipu__text_put(text, " ");
    ipu__text_put_name(text, s->tensor, 16);
    ipu__text_put(
        text, "%c%11s %5.1f %6.1f %6d", s->estimate ? '~' : ' ',
        ipu__count_within(s->total * s->times, 11).text,
        ipu__percent((double)s->total * s->times, (double)p->cycles.total),
        ipu__percent((double)s->exchange, (double)s->total),
        (int)s->busy_tiles);
    print_ns((double)s->ns, (double)p->times.runs, text);
    ipu__text_put(text, "\n");
}

static int print_steps(const struct ipu__program *p, struct ipu__text *text)
{
    struct row *rows;

    IPU_TRY(ipu__new_array(&rows, (size_t)p->nsteps, sizeof *rows));
    for (int32_t i = 0; i < p->nsteps; i++)
        rows[i] = (struct row){i, p->steps[i].total * p->steps[i].times};
    qsort(rows, (size_t)p->nsteps, sizeof *rows, by_cycles);
    ipu__text_put(text, "\n  %5s %-13s %-16s %11s %5s %6s %6s %9s\n", "step",
                  "op", "tensor", "cycles", "%", "exch %", "tiles", "here");
    for (int32_t i = 0; i < p->nsteps && i < MOST_ROWS; i++)
        print_step(p, rows[i].step, text);
    if (p->nsteps > MOST_ROWS)
        ipu__text_put(text, "  and %d more\n", (int)p->nsteps - MOST_ROWS);
    free(rows);
    return IPU_OK;
}

/* ---------------------------------------------------------------- estimates */

static void print_reasons(const struct ipu__program *p, struct ipu__text *text)
{
    const char *reasons[MOST_REASONS];
    int n = 0;

    for (int32_t i = 0; i < p->nsteps && n < MOST_REASONS; i++) {
        const char *reason = p->steps[i].estimate;
        int k = 0;

        while (reason && k < n && strcmp(reasons[k], reason) != 0)
            k++;
        if (reason && k == n)
            reasons[n++] = reason;
    }
    if (n > 0)
        ipu__text_put(text, "\nwhy figures marked ~ are estimates\n");
    for (int i = 0; i < n; i++)
        ipu__text_put_wrapped(text, "  ~ ", 4, reasons[i]);
}

int ipu__print_cycles(const struct ipu__program *program,
                      struct ipu__text *text)
{
    print_phases(program, text);
    print_strip(program, text);
    if (program->nsteps == 0)
        return IPU_OK;
    IPU_TRY(print_ops(program, text));
    IPU_TRY(print_steps(program, text));
    print_reasons(program, text);
    return IPU_OK;
}
