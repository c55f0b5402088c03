/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - owns the bar on the terminal. At most one bar is drawn at a
 * time; every line erases it first. A rank that does not print has no stream,
 * and all functions do nothing.
 */
#include "output/progress.h"

#include "output/clock.h"
#include "output/launcher.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEFAULT_WIDTH = 80, MAX_WIDTH = 500, MAX_BAR = 30 };

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value && *value != '\0';
}

static bool has_terminal(FILE *out)
{
    const char *told = getenv("HVD_TTY");
    const char *term = getenv("TERM");

    if (term && strcmp(term, "dumb") == 0)
        return false;
    if (told && *told != '\0')
        return strcmp(told, "1") == 0;
    return !launcher_present() && isatty(fileno(out));
}

static int terminal_width(FILE *out)
{
    const char *told = getenv("COLUMNS");
    int width = told ? atoi(told) : 0;
    struct winsize window;

    if (width <= 0 && !launcher_present() &&
        ioctl(fileno(out), TIOCGWINSZ, &window) == 0)
        width = window.ws_col;
    if (width <= 0)
        width = DEFAULT_WIDTH;
    return width < MAX_WIDTH ? width : MAX_WIDTH;
}

void progress_init(struct progress *progress, FILE *out, bool talks)
{
    *progress = (struct progress){.out = talks ? out : NULL};
    if (!talks)
        return;
    progress->live = has_terminal(out);
    progress->width = terminal_width(out);
    progress->colour = progress->live && !is_set("NO_COLOR");
    progress->last = clock_seconds();
}

void progress_clear(struct progress *progress)
{
    if (!progress->drawn)
        return;
    fputs("\r\033[K", progress->out);
    fflush(progress->out);
    progress->drawn = false;
}

void progress_line(struct progress *progress, const char *format, ...)
{
    va_list arguments;

    if (!progress->out)
        return;
    progress_clear(progress);
    va_start(arguments, format);
    vfprintf(progress->out, format, arguments);
    va_end(arguments);
    fputc('\n', progress->out);
    fflush(progress->out);
    progress->last = clock_seconds();
}

/* Draws the line with the bar, short enough never to wrap. */
static void draw_bar(struct progress *progress, const char *head, double part,
                     const char *tail)
{
    int room = progress->width - 1;
    int fixed = (int)strlen(head) + (int)strlen(tail) + 10;
    int bar = room - fixed < MAX_BAR ? room - fixed : MAX_BAR;

    fputs("\r\033[K", progress->out);
    if (bar < 4) {
        fprintf(progress->out, "%.*s", room, head);
    } else {
        int filled = (int)(part * bar + 0.5);
        fprintf(progress->out, "%s %s[", head,
                progress->colour ? "\033[32m" : "");
        for (int i = 0; i < bar; i++)
            fputc(i < filled ? '=' : i == filled ? '>' : ' ', progress->out);
        fprintf(progress->out, "]%s %3d %% %s",
                progress->colour ? "\033[0m" : "", (int)(part * 100 + 0.5),
                tail);
    }
    fflush(progress->out);
    progress->drawn = true;
}

void progress_update(struct progress *progress, const char *head, double part,
                     const char *tail)
{
    double now = clock_seconds();

    if (!progress->out || now - progress->last < (progress->live ? 0.1 : 10))
        return;
    progress->last = now;
    if (progress->live)
        draw_bar(progress, head, part, tail);
    else
        progress_line(progress, "%s %3d %% %s", head, (int)(part * 100 + 0.5),
                      tail);
}

int progress_ask(const struct progress *progress)
{
    return progress && progress->ask ? progress->ask() : 0;
}
