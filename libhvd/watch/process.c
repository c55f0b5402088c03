/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Fields of /proc/PID/stat are counted after the name, which may hold anything;
 * state is the first of them (proc(5)). */
enum { STATE = 0, START_TIME = 19, EXIT_CODE = 49, NFIELDS = 50 };

/* Reads the state, the start time and the exit code of a process. */
static bool read_fields(int pid, char *state, uint64_t *start, int *code)
{
    char path[40], line[1024], *at;
    FILE *file;
    bool good = false;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    *start = 0;
    *code = 0;
    if (fgets(line, sizeof line, file) && (at = strrchr(line, ')'))) {
        char *rest = NULL;
        char *word = strtok_r(at + 1, " \n", &rest);

        for (int i = 0; i < NFIELDS && word; i++) {
            if (i == STATE)
                *state = word[0];
            else if (i == START_TIME)
                *start = strtoull(word, NULL, 10);
            else if (i == EXIT_CODE)
                *code = atoi(word);
            word = strtok_r(NULL, " \n", &rest);
        }
        good = *start != 0;
    }
    fclose(file);
    return good;
}

uint64_t hvd__process_start_time(int pid, char *state)
{
    uint64_t start;
    char letter = '?';
    int code;

    if (!read_fields(pid, &letter, &start, &code))
        return 0;
    if (state)
        *state = letter;
    return start;
}

int hvd__process_open(int pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

const char *hvd__process_fate(int pid, char *text, size_t size)
{
    uint64_t start;
    char state = '?';
    int code;

    if (!read_fields(pid, &state, &start, &code) ||
        (state != 'Z' && state != 'X'))
        snprintf(text, size, "is gone");
    else if (WIFSIGNALED(code))
        snprintf(text, size, "was killed by signal %d (%s)", WTERMSIG(code),
                 strsignal(WTERMSIG(code)));
    else
        snprintf(text, size, "exited with status %d without hvd_shutdown",
                 WEXITSTATUS(code));
    return text;
}
