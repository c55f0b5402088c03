/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.c - the agent of a worker (remote.h), as hvd-run sees it: a process of
 * the remote shell, to which records are written.
 */
#include "launch/remote.h"
#include "launch/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The pipe to an agent has room for all first records, because they are written
 * before the agent runs and reads them. */
enum { PIPE_BYTES = 1 << 18 };

extern char **environ;

/* ---------------------------------------------------------------- variables */

/* Variables that mean something on this host or in this session only, as the
 * remote shell sets its own; and those that the agent sets. */
static bool is_kept(const char *variable)
{
    static const char *const names[] = {"DISPLAY",        "HOME",
                                        "HOSTNAME",       "HVD_HOSTS_FILE",
                                        "HVD_JOB_KEY_FD", "HVD_JOB_KEY_FILE",
                                        "LOGNAME",        "MAIL",
                                        "OLDPWD",         "PWD",
                                        "SHELL",          "SHLVL",
                                        "TERM",           "TMPDIR",
                                        "USER",           "_",
                                        "XAUTHORITY"};
    static const char *const beginnings[] = {"BASH_FUNC_", "DBUS_", "SSH_",
                                             "XDG_"};
    const size_t length = strcspn(variable, "=");

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length &&
            strncmp(variable, names[i], length) == 0)
            return false;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(variable, beginnings[i], strlen(beginnings[i])) == 0)
            return false;
    return true;
}

/* Returns the address of a worker's host; one at which nothing listens, if it
 * has none. */
static const char *place_of(const struct launch__tasks *tasks, int worker)
{
    const int host = tasks->tasks[worker].host;

    return host < 0 ? "127.0.0.1" : tasks->hosts[host].address;
}

/* ------------------------------------------------------------------ records */

__attribute__((format(printf, 3, 4))) static void put(FILE *to,
                                                      enum launch__record kind,
                                                      const char *format, ...)
{
    va_list arguments;

    fputc((int)kind, to);
    va_start(arguments, format);
    vfprintf(to, format, arguments);
    va_end(arguments);
    fputc('\0', to);
}

static void put_key(FILE *to, const unsigned char *key)
{
    fputc(LAUNCH__KEY, to);
    for (int i = 0; i < LAUNCH__KEY_BYTES; i++)
        fprintf(to, "%02x", key[i]);
    fputc('\0', to);
}

/* Writes all that an agent needs to start its program, whose environment this
 * process has already. */
static void put_all(FILE *to, const struct launch__tasks *tasks)
{
    char *directory = getcwd(NULL, 0);

    for (char **variable = environ; *variable; variable++)
        if (is_kept(*variable))
            put(to, LAUNCH__VARIABLE, "%s", *variable);
    put_key(to, tasks->key);
    if (directory)
        put(to, LAUNCH__DIRECTORY, "%s", directory);
    for (int i = 0; i < tasks->count; i++)
        put(to, LAUNCH__HOST, "%d %s", i, place_of(tasks, i));
    for (char **word = tasks->launch->context; *word; word++)
        put(to, LAUNCH__WORD, "%s", *word);
    put(to, LAUNCH__RUN, "%s", "");
    free(directory);
}

/* Sends a record to an agent. One that does not read what it is sent is ended,
 * for it would not do what it is told. */
static void send_record(struct launch__task *task, enum launch__record kind,
                        const char *text)
{
    char record[128];
    const int bytes = snprintf(record, sizeof record, "%c%s", kind, text) + 1;

    if (write(task->control, record, (size_t)bytes) != bytes)
        kill(task->pid, SIGKILL);
}

/* ------------------------------------------------------------ in the parent */

int launch__remote_open(struct launch__task *task)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    launch__remote_close(task);
    task->control = ends[1];
    return ends[0];
}

void launch__remote_close(struct launch__task *task)
{
    if (task->control >= 0)
        close(task->control);
    task->control = -1;
}

void launch__remote_signal(struct launch__task *task, int number)
{
    char text[16];

    snprintf(text, sizeof text, "%d", number);
    if (number == SIGKILL)
        kill(task->pid, SIGKILL); /* the agent ends what it has started */
    else
        send_record(task, LAUNCH__SIGNAL, text);
}

void launch__remote_tell(struct launch__tasks *tasks, int worker)
{
    char text[96];

    snprintf(text, sizeof text, "%d %s", worker, place_of(tasks, worker));
    for (int i = 0; i < tasks->count; i++)
        if (tasks->tasks[i].pid > 0)
            send_record(&tasks->tasks[i], LAUNCH__HOST, text);
}

/* ------------------------------------------------------------- in the child */

bool launch__is_here(const char *host)
{
    char name[256] = "";

    gethostname(name, sizeof name - 1);
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0 || strcmp(host, name) == 0 ||
           (strncmp(host, name, strcspn(name, ".")) == 0 &&
            host[strcspn(name, ".")] == '\0');
}

/* Finds the program of this process. */
static const char *find_self(char *path, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", path, size - 1);

    path[length > 0 ? length : 0] = '\0';
    return path;
}

int launch__remote_become(const struct launch__tasks *tasks,
                          const struct launch__task *task, int input)
{
    const struct launch__host *host = &tasks->hosts[task->host];
    char self[4096], command[4096];
    FILE *to = fdopen(task->control, "w");

    if (!to)
        return -1;
    setvbuf(to, NULL, _IOFBF, PIPE_BYTES);
    put_all(to, tasks);
    errno = E2BIG; /* the pipe takes no more */
    if (fflush(to) != 0 || dup2(input, STDIN_FILENO) < 0)
        return -1;
    /* A terminal's signals come by way of this launcher. */
    setpgid(0, 0);
    find_self(self, sizeof self);
    if (launch__is_here(host->name)) {
        execl(self, "hvd-run", LAUNCH__AGENT, (char *)NULL);
        return -1;
    }
    snprintf(command, sizeof command, "exec %s \"$@\"", tasks->launch->rsh);
    execlp("sh", "sh", "-c", command, "sh", host->name, self, LAUNCH__AGENT,
           (char *)NULL);
    return -1;
}
