/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - decides when a phase is drawn, and owns the bar on the terminal.
 * At most one bar is drawn at a time; every line erases it first.
 *
 * The window's width is asked for whenever the bar is drawn, so SIGWINCH needs
 * no handler. A bar that was drawn in a wider window may have been wrapped by
 * the terminal; what is then left of it above stays, because whether terminals
 * wrap or cut differs, and lines above may be others.
 *
 * The rate that people see is a mean in which older updates count less, by half
 * after five seconds. The time that is left follows from the mean rate since
 * the phase began, because that has all interruptions in it, such as
 * evaluations.
 */
#include "output/clock.h"
#include "output/launcher.h"
#include "output/problem.h"
#include "output/progress_text.h"
#include "output/terminal.h"

#include <hvd.h>
#include <hvd_progress.h>

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 96, UNIT_BYTES = 32, NOTE_BYTES = 256 };

static const double between_bars = 0.1, first_line = 0.4, half_life = 5;
static const char erase[] = "\r\033[K";

struct hvd_progress {
    pthread_mutex_t lock;
    hvd_progress_options options;
    bool talks; /* this rank prints */
    bool live;  /* on a terminal */
    bool colour;
    int fd; /* of out; -1: it has none */
    /* The rest is guarded by lock. */
    bool drawn;  /* a bar is on the screen */
    bool spoken; /* a line was printed */
    double last; /* by clock_seconds, when something was last printed */
    bool active; /* there is a phase */
    char name[NAME_BYTES], unit[UNIT_BYTES], note[NOTE_BYTES];
    int64_t from, done, total; /* from: where the phase began */
    double began, updated;     /* by clock_seconds */
    double seconds, units;     /* with older ones counting less */
};

/* The file on which a bar is drawn; -1: none is. For signal handlers, which may
 * not take the lock: stored before the bar is drawn, and after it is erased. */
static atomic_int drawn_on = -1;

/* --------------------------------------------------------------- the output */

static void clear_bar(hvd_progress *p)
{
    if (!p->drawn)
        return;
    fputs(erase, p->options.out);
    fflush(p->options.out);
    p->drawn = false;
    atomic_store(&drawn_on, -1);
}

static struct progress_view view_of(const hvd_progress *p, double now)
{
    double since = now - p->began, made = (double)(p->done - p->from);

    return (struct progress_view){
        .name = p->name,
        .note = p->note,
        .unit = p->unit[0] ? p->unit : NULL,
        .done = p->done,
        .total = p->total,
        .rate = p->seconds > 0 ? p->units / p->seconds : 0,
        .left = made > 0 ? (double)(p->total - p->done) * since / made : -1,
    };
}

static void draw_bar(hvd_progress *p, double now)
{
    const struct progress_view view = view_of(p, now);
    char text[PROGRESS_TEXT_BYTES];

    progress_bar(&view, terminal_width(p->fd), p->colour, text);
    atomic_store(&drawn_on, p->fd);
    fprintf(p->options.out, "%s%s", erase, text);
    fflush(p->options.out);
    p->drawn = true;
    p->last = now;
}

static void print_plain(hvd_progress *p, double now)
{
    const struct progress_view view = view_of(p, now);
    char text[PROGRESS_TEXT_BYTES];

    progress_plain(&view, text);
    fprintf(p->options.out, "%s\n", text);
    fflush(p->options.out);
    p->spoken = true;
    p->last = now;
}

/* Shows the phase if it is time. */
static void show(hvd_progress *p, double now)
{
    if (p->live) {
        if (now - p->last >= between_bars)
            draw_bar(p, now);
    } else if (p->spoken ? now - p->last >= p->options.interval
                         : now - p->began >= first_line) {
        print_plain(p, now);
    }
}

/* ------------------------------------------------------------------- phases */

/* Copies a text that may be cut, without control characters. */
static void take_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text ? text : "");
    for (; *to; to++)
        if ((unsigned char)*to < ' ' || *to == 0x7f)
            *to = '?';
}

static void count_on(hvd_progress *p, int64_t done, double now)
{
    double since = now - p->updated;

    if (since > 0) {
        double keeps = exp2(-since / half_life);

        p->seconds = p->seconds * keeps + since;
        p->units = p->units * keeps + (double)(done - p->done);
        p->updated = now;
        p->done = done;
    }
}

void hvd_progress_phase(hvd_progress *progress, const char *name, int64_t done,
                        int64_t total, const char *unit)
{
    hvd_progress *p = progress;

    if (!p || !p->talks)
        return;
    pthread_mutex_lock(&p->lock);
    take_text(p->name, sizeof p->name, name);
    take_text(p->unit, sizeof p->unit, unit);
    p->note[0] = '\0';
    p->active = true;
    p->from = p->done = done;
    p->total = total;
    p->seconds = p->units = 0;
    p->began = p->updated = clock_seconds();
    if (p->live)
        draw_bar(p, p->began);
    pthread_mutex_unlock(&p->lock);
}

void hvd_progress_rename(hvd_progress *progress, const char *name)
{
    if (!progress || !progress->talks)
        return;
    pthread_mutex_lock(&progress->lock);
    take_text(progress->name, sizeof progress->name, name);
    if (progress->live && progress->active)
        draw_bar(progress, clock_seconds());
    pthread_mutex_unlock(&progress->lock);
}

int hvd_progress_check(const hvd_progress *progress)
{
    return progress && progress->options.check
               ? progress->options.check(progress->options.check_context)
               : 0;
}

int hvd_progress_update(hvd_progress *progress, int64_t done, const char *note)
{
    hvd_progress *p = progress;

    if (p && p->talks) {
        pthread_mutex_lock(&p->lock);
        double now = clock_seconds();

        count_on(p, done, now);
        if (note)
            take_text(p->note, sizeof p->note, note);
        if (p->active)
            show(p, now);
        pthread_mutex_unlock(&p->lock);
    }
    return hvd_progress_check(p);
}

void hvd_progress_end(hvd_progress *progress)
{
    if (!progress || !progress->talks)
        return;
    pthread_mutex_lock(&progress->lock);
    clear_bar(progress);
    progress->active = false;
    pthread_mutex_unlock(&progress->lock);
}

void hvd_progress_line(hvd_progress *progress, const char *format, ...)
{
    hvd_progress *p = progress;
    va_list arguments;

    if (!p || !p->talks)
        return;
    pthread_mutex_lock(&p->lock);
    clear_bar(p);
    va_start(arguments, format);
    vfprintf(p->options.out, format, arguments);
    va_end(arguments);
    fputc('\n', p->options.out);
    fflush(p->options.out);
    p->spoken = true;
    p->last = clock_seconds();
    if (p->live && p->active)
        draw_bar(p, p->last);
    pthread_mutex_unlock(&p->lock);
}

void hvd_progress_interrupt(void)
{
    int fd = atomic_load(&drawn_on);

    if (fd >= 0 && write(fd, erase, sizeof erase - 1) < 0)
        return;
}

/* ------------------------------------------------------------ begin and end */

void hvd_progress_options_init(hvd_progress_options *options, size_t size)
{
    const hvd_progress_options all = {
        .size = (uint32_t)size, .rank = -1, .out = stdout, .interval = 10};

    memcpy(options, &all, size < sizeof all ? size : sizeof all);
}

int hvd_progress_new(const hvd_progress_options *options,
                     hvd_progress **progress)
{
    hvd_progress *p = calloc(1, sizeof *p);

    *progress = p;
    if (!p)
        return problem_fail(HVD_ERR_MEMORY, "no memory for a progress");
    hvd_progress_options_init(&p->options, sizeof p->options);
    if (options)
        memcpy(&p->options, options,
               options->size < sizeof *options ? options->size
                                               : sizeof *options);
    pthread_mutex_init(&p->lock, NULL);
    if (p->options.rank < 0)
        p->options.rank = launcher_rank();
    p->talks = p->options.rank == 0 && !p->options.quiet;
    p->fd = p->talks ? fileno(p->options.out) : -1;
    p->live = p->talks && terminal_present(p->fd);
    p->colour = p->live && terminal_has_colour();
    return 0;
}

void hvd_progress_free(hvd_progress *progress)
{
    if (!progress)
        return;
    hvd_progress_end(progress);
    pthread_mutex_destroy(&progress->lock);
    free(progress);
}
