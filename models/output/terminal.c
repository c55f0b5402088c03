/* SPDX-License-Identifier: Apache-2.0 */
#include "output/terminal.h"

#include "output/launcher.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEFAULT_WIDTH = 80, MOST_WIDTH = 500 };

bool terminal_present(int fd)
{
    const char *told = getenv("HVD_TTY");
    const char *term = getenv("TERM");

    if (term && strcmp(term, "dumb") == 0)
        return false;
    if (told && *told != '\0')
        return strcmp(told, "1") == 0;
    return !launcher_present() && fd >= 0 && isatty(fd);
}

int terminal_width(int fd)
{
    const char *told = getenv("COLUMNS");
    int width = told ? atoi(told) : 0;
    struct winsize window;

    if (width <= 0 && !launcher_present() && fd >= 0 &&
        ioctl(fd, TIOCGWINSZ, &window) == 0)
        width = window.ws_col;
    if (width <= 0)
        width = DEFAULT_WIDTH;
    return width < MOST_WIDTH ? width : MOST_WIDTH;
}

bool terminal_has_colour(void)
{
    const char *value = getenv("NO_COLOR");

    return !value || *value == '\0';
}
