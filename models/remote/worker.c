/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - builds the command line and the environment of a worker, and
 * starts it. Nothing that the client sent is a path to execute, nor goes
 * through a shell: the program is one of two beside this one, and each option
 * is one argument, "--name=value", whose name is on the list of description.c.
 */
#include "remote/worker.h"

#include "base/clock.h"
#include "output/problem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = REMOTE_MOST_OPTIONS + REMOTE_RESULTS + 8 };
#define PATIENCE_NS INT64_C(2000000000)

/* A command line in the making. */
struct command_line {
    char *words[MOST_ARGUMENTS]; /* owned; ends with NULL */
    int count;
    bool failed;
};

static void add_word(struct command_line *line, const char *name,
                     const char *value)
{
    char **word = &line->words[line->count];

    if (line->count == MOST_ARGUMENTS - 1 ||
        asprintf(word, "--%s%s%s", name, value ? "=" : "", value ? value : "") <
            0) {
        *word = NULL;
        line->failed = true;
        return;
    }
    line->count++;
}

static void free_words(struct command_line *line)
{
    for (int i = 0; i < line->count; i++)
        free(line->words[i]);
}

/* The worker's working folder is that of its files. */
static int make_words(struct command_line *line,
                      const struct remote_description *d)
{
    static const char *const options[REMOTE_RESULTS] = {
        [REMOTE_RESULT_SUMMARY] = "summary",
        [REMOTE_RESULT_WEIGHTS] = "save-weights",
        [REMOTE_RESULT_LOSSES] = "losses",
    };

    line->words[line->count++] = strdup(d->program);
    for (int i = 0; i < d->noptions; i++)
        add_word(line, d->options[i].name, d->options[i].value);
    add_word(line, "strategy", "multi-worker");
    add_word(line, "graphs", ".");
    if (d->files[REMOTE_FILE_TEXT] >= 0)
        add_word(line, "text", remote_file_names[REMOTE_FILE_TEXT]);
    for (int i = 0; i < REMOTE_RESULTS; i++)
        if (d->results[i])
            add_word(line, options[i], remote_result_names[i]);
    if (!line->words[0] || line->failed) {
        return problem_set("no memory for the worker's command line");
    }
    return 0;
}

/* Finds the program beside this one. */
static int find_program(const char *name, char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    char *slash;

    if (length < 0)
        return problem_set("/proc/self/exe: %s", strerror(errno));
    path[length] = '\0';
    slash = strrchr(path, '/');
    if (!slash || (size_t)(slash + 1 - path) + strlen(name) >= PATH_MAX)
        return problem_set("the path of hvd-server is too long");
    memcpy(slash + 1, name, strlen(name) + 1);
    if (access(path, X_OK) != 0)
        return problem_set("%s: %s", path, strerror(errno));
    return 0;
}

/* All that the worker's process needs to become the worker. */
struct launch {
    const struct remote_description *description;
    const char *folder;
    char program[PATH_MAX];
    struct command_line line;
    char *cluster;       /* owned; TF_CONFIG */
    int key;             /* owned; descriptor that has the key; -1: none */
    int output[2], null; /* owned; descriptors for 1, 2 and 0 */
    pid_t server;
};

/* Makes a descriptor from which the worker reads the key, if there is one. */
static int offer_key(const struct remote_party *party, int *fd)
{
    size_t bytes;
    const void *key = party_key(party, &bytes);

    if (!key)
        return 0;
    *fd = memfd_create("hvd-key", MFD_CLOEXEC);
    if (*fd >= 0 && pwrite(*fd, key, bytes, 0) == (ssize_t)bytes)
        return 0;
    return problem_set("the key cannot be passed on: %s", strerror(errno));
}

static void set_environment(const struct launch *launch)
{
    static const char *const none[] = {
        "HVD_JOB_KEY_FILE", "HVD_JOB_KEY_FD", "COLUMNS", "OMPI_COMM_WORLD_RANK",
        "PMIX_RANK",        "PMI_RANK",       "NO_COLOR"};
    const struct remote_description *d = launch->description;
    char number[16];

    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        unsetenv(none[i]);
    setenv("TF_CONFIG", launch->cluster, 1);
    if (launch->key >= 0) {
        snprintf(number, sizeof number, "%d", dup(launch->key));
        setenv("HVD_JOB_KEY_FD", number, 1);
    }
    setenv("HVD_TTY", d->columns > 0 ? "1" : "0", 1);
    if (d->columns > 0) {
        snprintf(number, sizeof number, "%d", d->columns);
        setenv("COLUMNS", number, 1);
        unsetenv("TERM"); /* the client's is known to be no dumb one */
    }
    if (!d->colour)
        setenv("NO_COLOR", "1", 1);
}

/* Becomes the worker, in the process that fork has made. */
__attribute__((noreturn)) static void become(const struct launch *launch)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    /* It does not outlive the server. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launch->server || dup2(launch->null, 0) < 0 ||
        dup2(launch->output[0], 1) < 0 || dup2(launch->output[1], 2) < 0)
        _exit(127);
    set_environment(launch);
    if (chdir(launch->folder) == 0)
        execv(launch->program, launch->line.words);
    dprintf(2, "%s: %s\n", launch->program, strerror(errno));
    _exit(127);
}

static int start_process(struct launch *launch, struct remote_worker *worker)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    pid_t pid = -1;

    launch->server = getpid();
    launch->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (launch->null >= 0 && pipe2(pipes[0], O_CLOEXEC) == 0 &&
        pipe2(pipes[1], O_CLOEXEC) == 0) {
        launch->output[0] = pipes[0][1];
        launch->output[1] = pipes[1][1];
        pid = fork();
    }
    if (pid == 0)
        become(launch);
    if (pid < 0)
        problem_set("the worker cannot be started: %s", strerror(errno));
    else
        setpgid(pid, pid); /* whichever process comes first */
    for (int i = 0; i < 2; i++) {
        worker->output[i] = pid < 0 ? -1 : pipes[i][0];
        if (pid < 0 && pipes[i][0] >= 0)
            close(pipes[i][0]);
        if (pipes[i][1] >= 0)
            close(pipes[i][1]);
    }
    if (launch->null >= 0)
        close(launch->null);
    worker->pid = pid < 0 ? 0 : pid;
    return pid < 0 ? PROBLEM : 0;
}

int worker_start(struct remote_worker *worker, const struct remote_party *party,
                 const struct remote_description *description,
                 const char *folder, const uint32_t *ports)
{
    struct launch *launch = calloc(1, sizeof *launch);
    int status;

    *worker = (struct remote_worker){.output = {-1, -1}};
    if (!launch)
        return problem_set("no memory for a worker");
    launch->description = description;
    launch->folder = folder;
    launch->key = -1;
    status = find_program(description->program, launch->program);
    if (status == 0)
        status = make_words(&launch->line, description);
    if (status == 0)
        status = party_tf_config(party, ports, &launch->cluster);
    if (status == 0)
        status = offer_key(party, &launch->key);
    if (status == 0)
        status = start_process(launch, worker);
    free_words(&launch->line);
    free(launch->cluster);
    if (launch->key >= 0)
        close(launch->key);
    free(launch);
    return status;
}

/* ------------------------------------------------------------------- ending */

bool worker_has_ended(struct remote_worker *worker, int *status)
{
    int how = 0;

    if (worker->pid == 0 || waitpid(worker->pid, &how, WNOHANG) != worker->pid)
        return worker->pid == 0;
    /* What it has started goes with it. */
    kill(-worker->pid, SIGKILL);
    worker->pid = 0;
    *status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    return true;
}

void worker_kill(struct remote_worker *worker)
{
    if (worker->pid == 0)
        return;
    if (worker->killed_ns == 0) {
        worker->killed_ns = hvd__now_ns();
        kill(-worker->pid, SIGTERM);
    } else if (hvd__now_ns() - worker->killed_ns > PATIENCE_NS) {
        kill(-worker->pid, SIGKILL);
    }
}

void worker_fini(struct remote_worker *worker)
{
    if (worker->pid > 0) {
        kill(-worker->pid, SIGKILL);
        waitpid(worker->pid, NULL, 0);
    }
    for (int i = 0; i < 2; i++)
        if (worker->output[i] >= 0)
            close(worker->output[i]);
    *worker = (struct remote_worker){.output = {-1, -1}};
}
