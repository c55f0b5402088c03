/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.c - the process of hvd-run on the host of a worker (remote.h).
 */
#include "launch/parts.h"
#include "launch/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The program may take so long to end. */
#define ENDING_NS INT64_C(5000000000)

enum { WRONG = 1, LINE = 80 }; /* bytes of a line of the file of hosts */

struct agent {
    int (*start)(void *context);
    char **words; /* owned, with a NULL behind them, [nwords] */
    int nwords;
    int hosts; /* the file of hosts, in memory */
    int signals;
    pid_t pid;           /* of the program; 0: it has not been started */
    int64_t deadline_ns; /* when it is killed; 0: it is not to end */
    sigset_t mask;
    char *text; /* owned: what has come, [room] */
    size_t used, room;
};

/* Says what failed, and why (errno). Returns -1. */
static int fail(const char *what)
{
    fprintf(stderr, "hvd-run: the agent of a worker: %s: %s\n", what,
            strerror(errno));
    return -1;
}

static int refuse_record(const char *what)
{
    errno = EPROTO;
    return fail(what);
}

/* Makes a file in memory, and has the variable lead to it. It is opened by a
 * path: processes that the program starts may have closed all descriptors. */
static int make_file(const char *name, const char *variable)
{
    const int fd = memfd_create(name, MFD_CLOEXEC);
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    return fd >= 0 && setenv(variable, path, 1) == 0 ? fd : -1;
}

/* -------------------------------------------------------------- the records */

static int add_word(struct agent *a, const char *word)
{
    char **grown =
        realloc(a->words, ((size_t)a->nwords + 2) * sizeof *a->words);

    if (!grown)
        return fail("the program");
    a->words = grown;
    a->words[a->nwords] = strdup(word);
    if (!a->words[a->nwords])
        return fail("the program");
    a->words[++a->nwords] = NULL;
    return 0;
}

static int keep_key(const char *digits)
{
    const size_t bytes = strlen(digits) / 2;
    const int fd = make_file("hvd-job-key", "HVD_JOB_KEY_FILE");
    unsigned char key[LAUNCH__KEY_BYTES] = {0};

    for (size_t i = 0; i < bytes && i < sizeof key; i++)
        sscanf(digits + 2 * i, "%2hhx", &key[i]);
    if (fd < 0 || fchmod(fd, S_IRUSR) != 0 ||
        write(fd, key, sizeof key) != (ssize_t)sizeof key)
        return fail("the key of the job");
    explicit_bzero(key, sizeof key);
    return 0;
}

/* All lines are equally long, so that a line is written over the last one. */
static int set_host(const struct agent *a, const char *text)
{
    char *address, line[LINE + 1];
    const long worker = strtol(text, &address, 10);
    int used;

    if (*address != ' ' || worker < 0 || worker >= LAUNCH_MOST_TASKS)
        return refuse_record("the file of hosts");
    used = snprintf(line, sizeof line, "%s " LAUNCH__HOST_NAME, address + 1,
                    (int)worker);
    if (used >= LINE)
        return refuse_record("the file of hosts");
    memset(line + used, ' ', (size_t)(LINE - used));
    line[LINE - 1] = '\n';
    return pwrite(a->hosts, line, LINE, worker * LINE) == LINE
               ? 0
               : fail("the file of hosts");
}

static int run_program(struct agent *a)
{
    const pid_t parent = getpid();
    int null;

    if (a->nwords == 0)
        return refuse_record("no program");
    a->pid = fork();
    if (a->pid < 0)
        return fail("fork");
    if (a->pid > 0)
        return 0;
    null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(WRONG);
    sigprocmask(SIG_SETMASK, &a->mask, NULL);
    exit(a->start(a->words));
}

static int obey(struct agent *a, const char *record)
{
    const char *text = record + 1;
    char *variable;

    switch ((enum launch__record)record[0]) {
    case LAUNCH__DIRECTORY:
        if (chdir(text) != 0)
            fail(text);
        return 0;
    case LAUNCH__VARIABLE:
        variable = strdup(text);
        return variable && putenv(variable) == 0 ? 0 : fail("the environment");
    case LAUNCH__KEY: return keep_key(text);
    case LAUNCH__WORD: return add_word(a, text);
    case LAUNCH__HOST: return set_host(a, text);
    case LAUNCH__RUN: return run_program(a);
    case LAUNCH__SIGNAL:
        if (a->pid > 0)
            kill(a->pid, atoi(text));
        return 0;
    }
    return refuse_record("standard input");
}

/* Obeys all records that are there whole. */
static int obey_all(struct agent *a)
{
    size_t done = 0;
    char *end;

    while ((end = memchr(a->text + done, '\0', a->used - done))) {
        if (end > a->text + done && obey(a, a->text + done) < 0)
            return -1;
        done = (size_t)(end - a->text) + 1;
    }
    a->used -= done;
    memmove(a->text, a->text + done, a->used);
    return 0;
}

/* Begins to end the program, for which nobody waits any more. */
static void leave(struct agent *a)
{
    if (a->deadline_ns > 0)
        return;
    a->deadline_ns = launch__now_ns() + ENDING_NS;
    if (a->pid > 0) {
        kill(a->pid, SIGTERM);
        kill(a->pid, SIGCONT);
    }
}

static int read_records(struct agent *a)
{
    ssize_t got;

    if (a->used == a->room) {
        char *grown = realloc(a->text, 2 * a->room + 4096);

        if (!grown)
            return fail("a record");
        a->text = grown;
        a->room = 2 * a->room + 4096;
    }
    got = read(STDIN_FILENO, a->text + a->used, a->room - a->used);
    if (got < 0 && errno == EINTR)
        return 0;
    if (got <= 0) {
        leave(a);
        return a->pid > 0 ? 0 : -1;
    }
    a->used += (size_t)got;
    return obey_all(a);
}

/* ----------------------------------------------------------------- the life */

/* Returns whether the program has ended; then with its status. */
static bool has_ended(const struct agent *a, int *status)
{
    pid_t pid;
    bool ended = false;
    int found;

    while ((pid = waitpid(-1, &found, WNOHANG)) > 0)
        if (pid == a->pid) {
            ended = true;
            *status =
                WIFSIGNALED(found) ? 128 + WTERMSIG(found) : WEXITSTATUS(found);
        }
    return ended;
}

static void take_signals(struct agent *a)
{
    struct signalfd_siginfo info;

    while (read(a->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD)
            leave(a);
}

/* Returns the exit status. */
static int live(struct agent *a)
{
    int status = WRONG;

    while (!has_ended(a, &status)) {
        /* An agent that leaves reads no records any more: its standard input
         * has ended, and would always be readable. */
        struct pollfd polled[] = {
            {.fd = a->signals, .events = POLLIN},
            {.fd = a->deadline_ns > 0 ? -1 : STDIN_FILENO, .events = POLLIN}};

        poll(polled, 2, a->deadline_ns > 0 ? 100 : -1);
        if (polled[0].revents)
            take_signals(a);
        if (polled[1].revents && read_records(a) < 0)
            return WRONG;
        if (a->deadline_ns > 0 && launch__now_ns() > a->deadline_ns) {
            if (a->pid == 0)
                return WRONG;
            kill(a->pid, SIGKILL);
        }
    }
    return status;
}

static void fini(struct agent *a)
{
    for (int i = 0; i < a->nwords; i++)
        free(a->words[i]);
    free(a->words);
    free(a->text);
}

int launch_agent(int (*start)(void *context))
{
    struct agent a = {.start = start};
    sigset_t caught;
    int status;

    sigemptyset(&caught);
    sigaddset(&caught, SIGCHLD);
    sigaddset(&caught, SIGTERM);
    sigaddset(&caught, SIGINT);
    sigaddset(&caught, SIGHUP);
    sigprocmask(SIG_BLOCK, &caught, &a.mask);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    a.signals = signalfd(-1, &caught, SFD_NONBLOCK | SFD_CLOEXEC);
    a.hosts = make_file("hvd-hosts", "HVD_HOSTS_FILE");
    if (a.signals < 0 || a.hosts < 0)
        return fail("its files"), WRONG;
    status = live(&a);
    launch__kill_orphans();
    fini(&a);
    return status;
}
