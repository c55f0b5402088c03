/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - the command, from its start to the last of its processes.
 *
 * One loop waits for signals, which come as data (signalfd), looks at the
 * processes of the job twice a second, and whenever a fault is due. The command
 * has a folder of its own for temporary files (TMPDIR). What is in it at the
 * end was left behind, and so were files in /dev/shm that the job had mapped
 * and processes that still run a moment after the end of the command. All that
 * is named, and then removed.
 *
 * Signals that ask for the end are passed on to the command, unless a terminal
 * has sent them, which sends them to all. If the command does not end, or takes
 * longer than the limit, all its processes are ended, in the end by force; they
 * also end if this process is killed.
 */
#include "chaos/run.h"

#include "chaos/files.h"
#include "chaos/inflict.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds: between two looks at the job, until force is used, and for which
 * processes may outlive the command. */
#define LOOK 0.5
#define PATIENCE 10.0
#define GRACE 1.0

struct run {
    const struct chaos_settings *settings; /* borrowed */
    struct run_result *result;             /* borrowed */
    struct inflict inflict;
    struct job job;
    char folder[64];
    pid_t command; /* 0: it has ended */
    int signals;   /* a signalfd */
    double start;
    double force; /* all processes are killed then; 0: never */
};

/* ----------------------------------------------------------------- starting */

static _Noreturn void become(char **words, const char *folder,
                             const sigset_t *mask, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
        _exit(1);
    sigprocmask(SIG_SETMASK, mask, NULL);
    setenv("TMPDIR", folder, 1);
    execvp(words[0], words);
    int error = errno;
    chaos_say("%s: %s", words[0], strerror(error));
    _exit(error == ENOENT ? 127 : 126);
}

static int start(struct run *run, char **words)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    pid_t parent = getpid();
    sigset_t caught, mask;

    sigemptyset(&caught);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&caught, numbers[i]);
    sigprocmask(SIG_BLOCK, &caught, &mask);
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    run->signals = signalfd(-1, &caught, SFD_NONBLOCK | SFD_CLOEXEC);
    if (run->signals < 0 ||
        files_make_folder(run->folder, sizeof run->folder)) {
        chaos_say("a folder for temporary files: %s", strerror(errno));
        return -1;
    }
    run->command = fork();
    if (run->command == 0)
        become(words, run->folder, &mask, parent);
    if (run->command < 0) {
        chaos_say("%s: %s", words[0], strerror(errno));
        return -1;
    }
    return 0;
}

/* ------------------------------------------------------------------ signals */

/* Collects children that have ended; those that were adopted, too. */
static void reap(struct run *run)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == run->command) {
            run->command = 0;
            run->result->seconds = chaos_now() - run->start;
            run->result->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                      : WEXITSTATUS(status);
        }
}

static void take_signals(struct run *run)
{
    struct signalfd_siginfo info;

    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD) {
            reap(run);
            continue;
        }
        if (info.ssi_code != SI_KERNEL && run->command)
            kill(run->command, (int)info.ssi_signo);
        inflict_end(&run->inflict);
        run->result->interrupted = true;
        if (run->force == 0)
            run->force = chaos_now() + PATIENCE;
    }
}

/* --------------------------------------------------------------------- loop */

static void wait_until(struct run *run, double then)
{
    double left = then - chaos_now();
    int ms = left > 0 ? (int)(left * 1000) + 1 : 0;

    if (poll(&(struct pollfd){.fd = run->signals, .events = POLLIN}, 1, ms) > 0)
        take_signals(run);
}

/* Ends a command that takes too long. */
static void press(struct run *run, double now)
{
    const double limit = run->settings->limit;

    if (limit > 0 && now - run->start > limit && !run->result->hung) {
        run->result->hung = true;
        inflict_end(&run->inflict);
        kill(run->command, SIGTERM);
        run->force = now + PATIENCE;
    }
    if (run->force > 0 && now > run->force && job_scan(&run->job) == 0)
        job_signal(&run->job, SIGKILL);
}

static void loop(struct run *run)
{
    double look = 0;

    while (run->command) {
        double now = chaos_now(), next;

        /* A fault needs a fresh look. */
        if (now >= look ||
            (run->inflict.next > 0 && now >= run->inflict.next)) {
            job_scan(&run->job);
            now = chaos_now();
            look = now + (run->inflict.record->from == 0 ? 0.1 : LOOK);
        }
        next = inflict_continue(&run->inflict, &run->job, now);
        press(run, now);
        wait_until(run, next > 0 && next < look ? next : look);
    }
}

/* ------------------------------------------------------------------ the end */

static void note_left(struct run *run, const char *what)
{
    struct run_result *result = run->result;
    char **more =
        realloc(result->left, ((size_t)result->nleft + 1) * sizeof *more);

    if (!more)
        return;
    result->left = more;
    more[result->nleft] = strdup(what);
    result->nleft += more[result->nleft] != NULL;
}

static void note_file(void *context, const char *path)
{
    note_left(context, path);
}

/* Names the processes that are left, and ends them. */
static void end_processes(struct run *run)
{
    double until = chaos_now() + GRACE;
    char text[64];

    while (job_scan(&run->job) == 0 && run->job.nprocesses > 0 &&
           chaos_now() < until)
        wait_until(run, chaos_now() + 0.05);
    for (int i = 0; i < run->job.nprocesses; i++) {
        snprintf(text, sizeof text, "process %d (%s)",
                 (int)run->job.processes[i].pid, run->job.processes[i].program);
        note_left(run, text);
    }
    while (job_scan(&run->job) == 0 && run->job.nprocesses > 0) {
        job_signal(&run->job, SIGKILL);
        usleep(10000);
        reap(run);
    }
}

static void clean_up(struct run *run)
{
    inflict_end(&run->inflict);
    end_processes(run);
    for (int i = 0; i < run->job.nfiles; i++)
        if (unlink(run->job.files[i]) == 0)
            note_left(run, run->job.files[i]);
    files_remove_folder(run->folder, note_file, run);
}

int run_command(const struct chaos_settings *settings, char **words,
                struct run_result *result)
{
    struct run run = {
        .settings = settings, .result = result, .start = chaos_now()};
    int status;

    *result = (struct run_result){0};
    inflict_init(&run.inflict, settings, &result->record);
    status = start(&run, words);
    if (status == 0) {
        loop(&run);
        clean_up(&run);
    }
    if (run.signals >= 0)
        close(run.signals);
    job_fini(&run.job);
    return status;
}

void run_result_fini(struct run_result *result)
{
    for (int i = 0; i < result->nleft; i++)
        free(result->left[i]);
    free(result->left);
    free(result->record.faults);
}
