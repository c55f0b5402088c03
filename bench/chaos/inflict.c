/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflict.c - draws faults, and hurts ranks.
 *
 * The times, the kinds and the places of victims among those that may be hurt
 * come from the seed alone: two runs with the same seed whose ranks live and
 * die alike are hurt alike. The first fault is drawn when the ranks are there.
 */
#include "chaos/inflict.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The ranks are there when nothing has changed for this many seconds: none has
 * come, and hvd_init has made progress in all that have libhvd, or in no more
 * of them for the longer time. */
#define SETTLED 1.0
#define NO_START 30.0

void inflict_init(struct inflict *inflict,
                  const struct chaos_settings *settings,
                  struct chaos_record *record)
{
    *inflict = (struct inflict){.settings = settings,
                                .record = record,
                                .state = settings->seed,
                                .start = chaos_now()};
}

/* ------------------------------------------------------------------ drawing */

/* The time from one fault to the next: half to one and a half of the average.
 */
static double draw_gap(struct inflict *inflict)
{
    return inflict->settings->every * (0.5 + chaos_draw_real(&inflict->state));
}

static bool may_kill(const struct inflict *inflict)
{
    const struct chaos_settings *s = inflict->settings;

    return s->most_dead < 0 || inflict->record->ndead < s->most_dead;
}

/* Draws one of the kinds that are wanted and allowed. Returns CHAOS_KINDS if
 * there is none. */
static enum chaos_kind draw_kind(struct inflict *inflict)
{
    enum chaos_kind kinds[CHAOS_KINDS] = {0};
    uint64_t drawn = chaos_draw(&inflict->state);
    int n = 0;

    for (int kind = 0; kind < CHAOS_KINDS; kind++)
        if (inflict->settings->wanted[kind] &&
            (kind != CHAOS_KILL || may_kill(inflict)))
            kinds[n++] = (enum chaos_kind)kind;
    return n ? kinds[drawn % (uint64_t)n] : CHAOS_KINDS;
}

/* Was this process killed already, and is only not gone yet? */
static bool is_dead(const struct inflict *inflict, pid_t pid)
{
    const struct chaos_record *record = inflict->record;

    for (int i = 0; i < record->n; i++)
        if (record->faults[i].pid == pid && !*record->faults[i].error &&
            record->faults[i].kind == CHAOS_KILL)
            return true;
    return false;
}

/* Returns whether any rank has been seen in which hvd_init had made progress.
 */
static bool has_seen_start(const struct job *job)
{
    for (int i = 0; i < job->nseen; i++)
        if (job->seen[i].likelihood == JOB_STARTED)
            return true;
    return false;
}

/* Returns whether the death of a rank would end all others: it may be in
 * MPI_Init, in a job that its launcher has started again. */
static bool is_in_mpi_init(const struct job *job, const struct job_rank *rank)
{
    return rank->likelihood == JOB_LOADED && !rank->is_task &&
           has_seen_start(job);
}

/* Draws one of the ranks that may be hurt. Returns NULL if there is none. */
static const struct job_rank *draw_victim(struct inflict *inflict,
                                          const struct job *job)
{
    const struct chaos_settings *s = inflict->settings;
    uint64_t drawn = chaos_draw(&inflict->state);
    const struct job_rank **those =
        calloc((size_t)job->nranks + 1, sizeof *those);
    const struct job_rank *victim = NULL;
    int n = 0, well = 0;

    for (int i = 0; those && i < job->nranks; i++) {
        if (harm_has(&inflict->harms, &job->ranks[i]) ||
            job->ranks[i].state == 'T' || is_dead(inflict, job->ranks[i].pid) ||
            is_in_mpi_init(job, &job->ranks[i]))
            continue;
        well++;
        if (!(s->spare_rank0 && job->ranks[i].order == 0))
            those[n++] = &job->ranks[i];
    }
    if (n > 0 && well > s->least_left)
        victim = those[drawn % (uint64_t)n];
    free(those);
    return victim;
}

/* ------------------------------------------------------------------ hurting */

static void note(struct inflict *inflict, const struct job_rank *rank,
                 enum chaos_kind kind, const char *error)
{
    struct chaos_record *record = inflict->record;
    struct chaos_fault *more = realloc(
        record->faults, ((size_t)record->n + 1) * sizeof *record->faults);
    struct chaos_fault fault = {
        .kind = kind, .pid = rank->pid, .at = chaos_now() - inflict->start};

    if (!more)
        return;
    record->faults = more;
    snprintf(fault.rank, sizeof fault.rank, "%s", rank->name);
    snprintf(fault.program, sizeof fault.program, "%s", rank->program);
    snprintf(fault.error, sizeof fault.error, "%s", error);
    more[record->n++] = fault;
    record->ndone += !*error;
    record->ndead += kind == CHAOS_KILL && !*error;
    if (inflict->settings->quiet)
        return;
    chaos_say("%.2f s: %s rank %s (process %d, %s)%s%s", fault.at,
              chaos_names[kind], rank->name, (int)rank->pid, rank->program,
              *error ? ": not done: " : "", error);
}

static void hurt(struct inflict *inflict, const struct job *job,
                 enum chaos_kind kind)
{
    const struct job_rank *victim = draw_victim(inflict, job);
    char error[sizeof inflict->record->faults->error] = "";

    if (!victim) {
        inflict->record->nheld++;
        return;
    }
    harm_begin(&inflict->harms, inflict->settings, victim, kind, error,
               sizeof error);
    note(inflict, victim, kind, error);
}

static void strike(struct inflict *inflict, const struct job *job)
{
    enum chaos_kind kind = draw_kind(inflict);
    int n = kind == CHAOS_KILL ? inflict->settings->together : 1;

    inflict->next = kind == CHAOS_KINDS ? 0 : chaos_now() + draw_gap(inflict);
    for (int i = 0; i < n && kind != CHAOS_KINDS; i++) {
        if (i > 0)
            usleep((useconds_t)(chaos_draw_real(&inflict->state) * 5000 / n));
        if (i > 0 && !may_kill(inflict))
            return;
        hurt(inflict, job, kind);
    }
}

/* --------------------------------------------------------------------- time */

/* Are the ranks there? If so, draws the first fault. */
static void await_ranks(struct inflict *inflict, const struct job *job,
                        double now)
{
    const struct chaos_settings *s = inflict->settings;
    int nstarting = 0, seen = 0;

    for (int i = 0; i < job->nranks; i++) {
        nstarting += job->ranks[i].likelihood == JOB_LOADED;
        seen += 1 + job->ranks[i].likelihood;
    }
    if (seen != inflict->seen) {
        inflict->seen = seen;
        inflict->since = now;
    }
    if (job->nranks == 0 || job->nranks < s->nranks ||
        now - inflict->since < (nstarting ? NO_START : SETTLED))
        return;
    inflict->record->from = now - inflict->start;
    inflict->next = now + s->after + draw_gap(inflict);
    if (s->duration > 0)
        inflict->end = now + s->after + s->duration;
    if (!s->quiet)
        chaos_say("%.2f s: %d rank%s, seed %llu", now - inflict->start,
                  job->nranks, job->nranks > 1 ? "s" : "",
                  (unsigned long long)s->seed);
}

double inflict_continue(struct inflict *inflict, const struct job *job,
                        double now)
{
    double harm;

    if (job->nranks > inflict->record->most_ranks)
        inflict->record->most_ranks = job->nranks;
    if (inflict->record->from == 0)
        await_ranks(inflict, job, now);
    if (inflict->end > 0 && now >= inflict->end)
        inflict->next = 0;
    else if (inflict->next > 0 && now >= inflict->next)
        strike(inflict, job);
    harm = harm_continue(&inflict->harms, now);
    if (inflict->next == 0 || (harm > 0 && harm < inflict->next))
        return harm;
    return inflict->next;
}

void inflict_end(struct inflict *inflict)
{
    inflict->next = 0;
    harm_end(&inflict->harms);
}
