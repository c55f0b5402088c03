/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover.c - asks a script how many workers may run.
 *
 * The script is run once a second. It writes lines "host" or "host:workers", as
 * that of Horovod's elastic mode does. Only this host counts: localhost, its
 * name, or an address of the loopback interface. A host that is not named has
 * no workers. If the script fails, or takes too long, the last answer stays;
 * the job cannot begin without a first one.
 */
#include "launch/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PERIOD_NS INT64_C(1000000000)
#define LIMIT_NS INT64_C(30000000000)

/* ------------------------------------------------------------------ running */

static int start_script(struct launch__discovery *d,
                        const struct launch__tasks *tasks)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    d->pid = fork();
    if (d->pid == 0) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        sigprocmask(SIG_SETMASK, &tasks->mask, NULL);
        dup2(null, STDIN_FILENO);
        fcntl(ends[1], F_SETFL, 0);
        dup2(ends[1], STDOUT_FILENO);
        execlp("sh", "sh", "-c", tasks->launch->script, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    d->from = ends[0];
    if (d->pid > 0)
        return 0;
    d->pid = 0;
    close(d->from);
    d->from = -1;
    return -1;
}

int launch__discovery_run(struct launch__discovery *d,
                          struct launch__tasks *tasks)
{
    int64_t now_ns = launch__now_ns();

    if (now_ns < d->next_ns)
        return 0;
    if (d->pid > 0) {
        kill(d->pid, SIGKILL);
        d->next_ns = now_ns + LIMIT_NS;
        return 0;
    }
    d->used = 0;
    if (start_script(d, tasks) < 0) {
        d->next_ns = now_ns + PERIOD_NS;
        launch__say(tasks->launch, "the script '%s': %s", tasks->launch->script,
                    strerror(errno));
        return d->has_answered ? 0 : -1;
    }
    d->next_ns = now_ns + LIMIT_NS;
    return 0;
}

void launch__discovery_pump(struct launch__discovery *d)
{
    ssize_t got = 1;

    while (d->from >= 0 && got > 0) {
        char dropped[256];
        size_t room = sizeof d->text - 1 - d->used;

        got = room > 0 ? read(d->from, d->text + d->used, room)
                       : read(d->from, dropped, sizeof dropped);
        if (got > 0 && room > 0)
            d->used += (size_t)got;
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            close(d->from);
            d->from = -1;
        }
    }
}

/* ------------------------------------------------------------------ answers */

static bool is_here(const char *host)
{
    char name[256] = "";

    gethostname(name, sizeof name - 1);
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0 || strcmp(host, name) == 0 ||
           (strncmp(host, name, strcspn(name, ".")) == 0 &&
            host[strcspn(name, ".")] == '\0');
}

/* Reads a line. Returns the workers of this host in it: 0 if it is of another
 * one or empty, -1 if it is no such line. */
static int read_line(char *line)
{
    char *colon, *end;
    long count = 1;

    line += strspn(line, " \t\r");
    line[strcspn(line, " \t\r")] = '\0';
    colon = strrchr(line, ':');
    if (colon && strcmp(line, "::1") != 0) {
        *colon = '\0';
        count = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end || count < 0 || count > LAUNCH_MOST_TASKS)
            return -1;
    }
    if (!*line)
        return colon ? -1 : 0;
    return is_here(line) ? (int)count : 0;
}

/* Returns how many workers the answer allows; -1 if it is none. */
static int read_answer(struct launch__discovery *d,
                       const struct launch__tasks *tasks)
{
    char *rest = d->text, *line;
    int total = 0;

    d->text[d->used] = '\0';
    while ((line = strsep(&rest, "\n"))) {
        char shown[64];
        int count;

        snprintf(shown, sizeof shown, "%s", line);
        count = read_line(line);
        if (count < 0) {
            if (!d->has_failed)
                launch__say(tasks->launch,
                            "the script '%s' has written '%s', which is no "
                            "host or host:workers",
                            tasks->launch->script, shown);
            return -1;
        }
        total += count;
    }
    return total < tasks->launch->workers ? total : tasks->launch->workers;
}

static void say_failure(const struct launch__discovery *d,
                        const struct launch__tasks *tasks, int status)
{
    if (d->has_failed)
        return;
    if (WIFSIGNALED(status))
        launch__say(tasks->launch, "the script '%s' was ended by signal %d%s",
                    tasks->launch->script, WTERMSIG(status),
                    d->has_answered ? "; its last answer stays" : "");
    else
        launch__say(tasks->launch, "the script '%s' failed with status %d%s",
                    tasks->launch->script, WEXITSTATUS(status),
                    d->has_answered ? "; its last answer stays" : "");
}

int launch__discovery_end(struct launch__discovery *d,
                          struct launch__tasks *tasks, int status)
{
    int available = -1;

    launch__discovery_pump(d);
    if (d->from >= 0)
        close(d->from);
    d->from = -1;
    d->pid = 0;
    d->next_ns = launch__now_ns() + PERIOD_NS;
    if (status == 0)
        available = read_answer(d, tasks);
    else
        say_failure(d, tasks, status);
    d->has_failed = available < 0;
    if (available < 0)
        return d->has_answered ? 0 : -1;
    if (d->has_answered && available != tasks->available)
        launch__say(tasks->launch, "%d workers may run now, not %d", available,
                    tasks->available);
    d->has_answered = true;
    tasks->available = available;
    return 0;
}
