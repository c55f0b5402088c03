/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task.c - the new process of a task: its environment, its key and its outputs.
 *
 * The key is in memory that only the process's own descriptor leads to. A
 * process is killed if its parent dies. Between fork and start only the
 * parent's one thread exists, so that all functions may be called.
 */
#include "launch/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------- the environment */

static int set_config(const struct launch__tasks *tasks,
                      const struct launch__task *task)
{
    int length =
        hvd_cluster_tf_config(tasks->cluster, task->role, task->index, NULL, 0);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    int status = -1;

    if (text) {
        hvd_cluster_tf_config(tasks->cluster, task->role, task->index, text,
                              length + 1);
        status = setenv("TF_CONFIG", text, 1);
    }
    free(text);
    return status;
}

/* Tells an elastic job what it is, and a worker how often it was started. Hosts
 * that a script names may come one after another. */
static int set_elastic(const struct launch *launch,
                       const struct launch__task *task)
{
    char number[16];

    if (launch->least > 0 && setenv("HVD_ELASTIC", "1", 1) != 0)
        return -1;
    snprintf(number, sizeof number, "%d", launch->least);
    if (launch->least > 0 && launch->script &&
        setenv("HVD_ELASTIC_MIN", number, 0) != 0)
        return -1;
    snprintf(number, sizeof number, "%d", launch->spares);
    if (launch->spares > 0 && setenv("HVD_SPARES", number, 1) != 0)
        return -1;
    snprintf(number, sizeof number, "%d", task->nrestarts);
    return launch->restarts > 0 ? setenv("HVD_RESTART", number, 1) : 0;
}

/* The descriptor stays open in what the process becomes. */
static int set_key(const struct launch__tasks *tasks)
{
    int fd = memfd_create("hvd-job-key", 0);
    char number[16];

    if (fd < 0 ||
        write(fd, tasks->key, sizeof tasks->key) !=
            (ssize_t)sizeof tasks->key ||
        lseek(fd, 0, SEEK_SET) != 0)
        return -1;
    snprintf(number, sizeof number, "%d", fd);
    unsetenv("HVD_JOB_KEY_FILE");
    return setenv("HVD_JOB_KEY_FD", number, 1);
}

/* ------------------------------------------------------------- in the child */

/* Puts the new process's ends of its outputs in place, and closes the parent's
 * ends of all. */
static int set_outputs(struct launch__tasks *tasks,
                       const struct launch__task *task, const int *ends)
{
    for (int i = 0; i < tasks->count; i++)
        for (int k = 0; k < 2; k++)
            if (tasks->tasks[i].streams[k].from >= 0)
                close(tasks->tasks[i].streams[k].from);
    if (task->first)
        return 0;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0)
        return -1;
    close(null);
    for (int k = 0; k < 2; k++) {
        if (dup2(ends[k], STDOUT_FILENO + k) < 0)
            return -1;
        close(ends[k]);
    }
    return 0;
}

/* input is what an agent reads; -1: there is none. */
static _Noreturn void become_task(struct launch__tasks *tasks,
                                  const struct launch__task *task,
                                  const int *ends, int input, pid_t parent)
{
    const struct launch *launch = tasks->launch;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    sigaction(SIGPIPE, &tasks->broken, NULL);
    sigprocmask(SIG_SETMASK, &tasks->mask, NULL);
    if (set_outputs(tasks, task, ends) < 0 || set_config(tasks, task) < 0 ||
        set_elastic(launch, task) < 0 ||
        (input >= 0 ? launch__remote_become(tasks, task, input)
                    : set_key(tasks)) < 0) {
        launch__say(launch, "%s cannot be prepared: %s", task->name,
                    strerror(errno));
        _exit(1);
    }
    explicit_bzero(tasks->key, sizeof tasks->key);
    exit(launch->start(launch->context));
}

/* ------------------------------------------------------------ in the parent */

static int open_streams(struct launch__task *task, int *ends)
{
    for (int k = 0; k < 2 && !task->first; k++) {
        /* A process that the last one has left may still write. */
        if (task->streams[k].from >= 0)
            launch__stream_close(&task->streams[k]);
        ends[k] = launch__stream_open(&task->streams[k], task->name,
                                      STDOUT_FILENO + k);
        if (ends[k] < 0)
            return -1;
    }
    return 0;
}

/* Waits until a child has become another program, or has ended: it has written
 * its first records then, and others follow them. */
static void await_start(const int *started)
{
    char byte;

    close(started[1]);
    while (read(started[0], &byte, 1) < 0 && errno == EINTR)
        ;
    close(started[0]);
}

/* Makes the pipes of a child that becomes an agent's, or the remote shell. */
static int open_remote(struct launch__task *task, int *input, int *started)
{
    if (task->host < 0)
        return 0;
    *input = launch__remote_open(task);
    return *input < 0 ? -1 : pipe2(started, O_CLOEXEC);
}

int launch__task_start(struct launch__tasks *tasks, struct launch__task *task)
{
    int ends[2] = {-1, -1}, started[2] = {-1, -1}, input = -1;
    pid_t parent = getpid(), pid = -1;

    fflush(NULL);
    if (open_streams(task, ends) == 0 &&
        open_remote(task, &input, started) == 0)
        pid = fork();
    if (pid == 0)
        become_task(tasks, task, ends, input, parent);
    int error = errno;
    if (started[0] >= 0)
        await_start(started);
    for (int k = 0; k < 2; k++)
        if (ends[k] >= 0)
            close(ends[k]);
    if (input >= 0)
        close(input);
    if (pid < 0)
        return launch__say(tasks->launch, "%s cannot be started: %s",
                           task->name, strerror(error));
    task->pid = pid;
    task->start_ns = 0;
    task->began_ns = launch__now_ns();
    task->is_stopped = task->was_stopped = task->taken_away = false;
    return 0;
}

void launch__task_signal(struct launch__task *task, int number)
{
    if (task->control >= 0)
        launch__remote_signal(task, number);
    else
        kill(task->pid, number);
}

void launch__tasks_signal(const struct launch__tasks *tasks, int number)
{
    for (int i = 0; i < tasks->count; i++)
        if (tasks->tasks[i].pid > 0)
            launch__task_signal(&tasks->tasks[i], number);
}

/* Processes whose parents have ended are this process's children
 * (PR_SET_CHILD_SUBREAPER). Each round kills those that the last one has
 * orphaned. It waits for none but those that it has killed, because a child of
 * these becomes one of this process while it waits. */
void launch__kill_orphans(void)
{
    char path[64];
    bool any = true;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    while (any) {
        FILE *file = fopen(path, "re");
        int pid;

        any = false;
        while (file && fscanf(file, "%d", &pid) == 1)
            any |= kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid;
        if (file)
            fclose(file);
    }
}
