/* SPDX-License-Identifier: Apache-2.0 */
/* progress_text.h - the text of a bar, and of a line that stands for one. */
#ifndef MODELS_PROGRESS_TEXT_H
#define MODELS_PROGRESS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROGRESS_TEXT_BYTES = 2560 };

struct progress_view {
    const char *name, *note, *unit; /* UTF-8, borrowed; unit NULL: no numbers */
    int64_t done, total;            /* total 0: not known */
    double rate;                    /* units a second; 0: not known */
    double left;                    /* seconds; negative: not known */
};

/* Writes a bar that does not wrap in a window of width columns, and leaves the
 * room in which a terminal shows a ^C that is typed: what matters least is left
 * out first. colour adds escapes. */
void progress_bar(const struct progress_view *view, int width, bool colour,
                  char text[PROGRESS_TEXT_BYTES]);

/* Writes the same without a bar, at any length. */
void progress_plain(const struct progress_view *view,
                    char text[PROGRESS_TEXT_BYTES]);

#endif
