/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.c - finds the processes of a job in /proc.
 *
 * A launcher sets a rank in the environment, which all descendants of the rank
 * inherit: a shell above the program, and helpers below it. Of the processes of
 * one rank, the uppermost one that has libhvd is the rank: it has mapped the
 * shared library, or its program file contains the static one (note.h). If none
 * has (yet, or ever: the program may use another library), the uppermost one
 * that is no shell or other wrapper and no helper that came a moment ago. Once
 * a rank has been found, nothing less likely is taken for it when it is gone.
 *
 * A variable that this process has itself does not count: all have it.
 */
#include "chaos/job.h"

#include "chaos/note.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------ reading /proc */

/* Reads a file of a process. Returns a text that the caller frees; NULL: it
 * cannot be read. Bytes of zero become ends of lines. */
static char *read_file(pid_t pid, const char *name)
{
    char path[64];
    size_t used = 0, size = 4096;
    char *text = NULL;
    ssize_t got = 1;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && got > 0) {
        char *more = realloc(text, size + 1);

        if (!more)
            break;
        text = more;
        got = read(fd, text + used, size - used);
        used += got > 0 ? (size_t)got : 0;
        size = used == size ? 2 * size : size;
    }
    if (fd >= 0)
        close(fd);
    for (size_t i = 0; text && i < used; i++)
        if (!text[i])
            text[i] = '\n';
    if (text)
        text[used] = '\0';
    return text;
}

/* Seconds since the system was started. */
static double uptime(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Fills in a process. Returns false if there is none of this number. */
static bool read_process(pid_t pid, struct job_process *process)
{
    char *text = read_file(pid, "stat"), *name, *end;
    bool well = false;
    unsigned long long began;
    int parent;

    name = text ? strchr(text, '(') : NULL;
    end = text ? strrchr(text, ')') : NULL;
    /* Fields 3 and 4, and 22: see proc(5). */
    if (name && end &&
        sscanf(end,
               ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
               "%*d %*d %*d %*d %llu",
               &process->state, &parent, &began) == 3) {
        *end = '\0';
        snprintf(process->program, sizeof process->program, "%s", name + 1);
        process->pid = pid;
        process->parent = parent;
        process->age = uptime() - (double)began / (double)sysconf(_SC_CLK_TCK);
        well = true;
    }
    free(text);
    return well;
}

/* ---------------------------------------------------------------- processes */

static bool is_known(const struct job *job, pid_t pid)
{
    for (int i = 0; i < job->nprocesses; i++)
        if (job->processes[i].pid == pid)
            return true;
    return pid == getpid();
}

/* Moves the descendants among all processes to the front. */
static void keep_descendants(struct job *job, int nall)
{
    bool any = true;

    job->nprocesses = 0;
    while (any) {
        any = false;
        for (int i = job->nprocesses; i < nall; i++) {
            struct job_process found = job->processes[i];

            if (!is_known(job, found.parent))
                continue;
            job->processes[i] = job->processes[job->nprocesses];
            job->processes[job->nprocesses++] = found;
            any = true;
        }
    }
}

static int list_processes(struct job *job)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    int n = 0, room = 0;

    if (!folder)
        return -1;
    while ((entry = readdir(folder))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (n == room) {
            room = room ? 2 * room : 256;
            struct job_process *more =
                realloc(job->processes, (size_t)room * sizeof *job->processes);
            if (!more) {
                closedir(folder);
                return -1;
            }
            job->processes = more;
        }
        if (read_process((pid_t)atoi(entry->d_name), &job->processes[n]) &&
            job->processes[n].state != 'Z' && job->processes[n].state != 'X')
            n++;
    }
    closedir(folder);
    keep_descendants(job, n);
    return 0;
}

/* -------------------------------------------------------------------- files */

/* Notes a file that is mapped, once. */
static void note_file(struct job *job, const char *path)
{
    char **more;

    for (int i = 0; i < job->nfiles; i++)
        if (strcmp(job->files[i], path) == 0)
            return;
    more = realloc(job->files, ((size_t)job->nfiles + 1) * sizeof *more);
    if (!more)
        return;
    job->files = more;
    more[job->nfiles] = strdup(path);
    job->nfiles += more[job->nfiles] != NULL;
}

/* Looks at what a process has loaded and mapped. Returns how likely that makes
 * it a rank: LOADED, STARTED or less. */
static int look_at_memory(struct job *job, pid_t pid)
{
    char *text = read_file(pid, "maps"), *rest = text, *line;
    bool has_library = false, has_memory = false;

    while (text && (line = strsep(&rest, "\n"))) {
        char *path = strchr(line, '/');

        if (!path)
            continue;
        has_library |= strstr(path, "/libhvd.so") != NULL;
        /* libhvd's shared memory has one of these two names
         * (base/segment.c). */
        has_memory |= strncmp(path, "/memfd:hvd", 10) == 0 ||
                      strncmp(path, "/dev/shm/#", 10) == 0;
        if (strncmp(path, "/dev/shm/", 9) == 0 && !strstr(path, " (deleted)"))
            note_file(job, path);
    }
    free(text);
    if (has_memory)
        return JOB_STARTED;
    return has_library || note_is_in_program(pid) ? JOB_LOADED : 0;
}

/* -------------------------------------------------------------------- ranks */

/* Finds a variable in an environment of lines. */
static const char *value_of(const char *environment, const char *name)
{
    size_t length = strlen(name);

    if (getenv(name))
        return NULL;
    for (const char *line = environment; line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, name, length) == 0 && line[length] == '=')
            return line + length + 1;
    return NULL;
}

/* Finds a key's value in the task of a TF_CONFIG, which is JSON of one line. */
static const char *key_of_task(const char *config, const char *key)
{
    const char *task = strstr(config, "\"task\"");
    const char *at = task ? strstr(task, key) : NULL;

    if (!at)
        return NULL;
    at += strlen(key);
    return at + strspn(at, " \t:\"");
}

static bool read_task(const char *config, struct job_rank *rank)
{
    static const char *const roles[] = {"chief", "worker", "ps", "evaluator"};
    const char *type = key_of_task(config, "\"type\"");
    const char *index = key_of_task(config, "\"index\"");
    int number = index ? atoi(index) : 0;

    for (int i = 0; type && i < 4; i++)
        if (strncmp(type, roles[i], strlen(roles[i])) == 0) {
            rank->order = i * 100000 + number;
            snprintf(rank->name, sizeof rank->name, "%s %d", roles[i], number);
            return true;
        }
    return false;
}

/* Finds out which rank a process belongs to. */
static bool read_rank(pid_t pid, struct job_rank *rank)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK", "HOROVOD_RANK",
                                        "SLURM_PROCID"};
    char *environment = read_file(pid, "environ");
    const char *value = NULL;
    bool is_rank = false;

    for (size_t i = 0;
         environment && !value && i < sizeof names / sizeof *names; i++)
        value = value_of(environment, names[i]);
    if (value && isdigit((unsigned char)*value)) {
        rank->order = atoi(value);
        snprintf(rank->name, sizeof rank->name, "%d", rank->order);
        is_rank = true;
    } else if (environment && (value = value_of(environment, "TF_CONFIG"))) {
        is_rank = rank->is_task = read_task(value, rank);
    }
    free(environment);
    return is_rank;
}

static bool is_wrapper(const char *program)
{
    static const char *const names[] = {
        "sh",      "bash",    "dash",    "env",     "nice",   "ionice",
        "setsid",  "setpriv", "taskset", "numactl", "stdbuf", "timeout",
        "unshare", "ip",      "nsenter", "sudo",    "chrt",   "strace"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(program, names[i]) == 0)
            return true;
    return false;
}

static int likelihood_of(struct job *job, const struct job_process *process)
{
    int likelihood = look_at_memory(job, process->pid);

    if (likelihood > 0)
        return likelihood;
    return is_wrapper(process->program) || process->age < 0.2 ? JOB_WRAPPER
                                                              : JOB_PROGRAM;
}

static ino_t network_of(const char *pid)
{
    char path[64];
    struct stat status;

    snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

static int compare(const void *a, const void *b)
{
    const struct job_rank *x = a, *y = b;

    return (x->order > y->order) - (x->order < y->order);
}

/* Adds the process to the ranks, if it is one. Processes come with parents
 * before children, so that of two that are equally likely the first one
 * counts. */
static void add_rank(struct job *job, const struct job_process *process)
{
    struct job_rank rank = {.pid = process->pid, .state = process->state};
    int at = 0;
    char number[16];

    if (!read_rank(process->pid, &rank))
        return;
    rank.likelihood = likelihood_of(job, process);
    while (at < job->nranks && job->ranks[at].order != rank.order)
        at++;
    if (at < job->nranks && job->ranks[at].likelihood >= rank.likelihood)
        return;
    memcpy(rank.program, process->program, sizeof rank.program);
    snprintf(number, sizeof number, "%d", (int)rank.pid);
    rank.network = network_of(number);
    rank.is_remote = rank.network && rank.network != network_of("self");
    job->ranks[at] = rank;
    job->nranks += at == job->nranks;
}

/* Drops ranks of which something more likely was seen before, which is gone,
 * and remembers what was seen. */
static void drop_remains(struct job *job)
{
    int n = 0;

    for (int i = 0; i < job->nranks; i++) {
        struct job_rank rank = job->ranks[i];
        int known = 0;

        while (known < job->nseen && job->seen[known].order != rank.order)
            known++;
        if (known == job->nseen) {
            struct job_seen *more =
                realloc(job->seen, ((size_t)known + 1) * sizeof *job->seen);

            if (!more)
                continue;
            job->seen = more;
            more[job->nseen++] = (struct job_seen){rank.order, 0};
        }
        /* A rank that comes back has to load libhvd first. */
        if (rank.likelihood < job->seen[known].likelihood &&
            rank.likelihood < JOB_LOADED)
            continue;
        if (rank.likelihood > job->seen[known].likelihood)
            job->seen[known].likelihood = rank.likelihood;
        job->ranks[n++] = rank;
    }
    job->nranks = n;
}

int job_scan(struct job *job)
{
    struct job_rank *ranks;

    if (list_processes(job) < 0)
        return -1;
    ranks =
        realloc(job->ranks, ((size_t)job->nprocesses + 1) * sizeof *job->ranks);
    if (!ranks)
        return -1;
    job->ranks = ranks;
    job->nranks = 0;
    for (int i = 0; i < job->nprocesses; i++)
        add_rank(job, &job->processes[i]);
    drop_remains(job);
    qsort(job->ranks, (size_t)job->nranks, sizeof *job->ranks, compare);
    return 0;
}

void job_signal(const struct job *job, int number)
{
    for (int i = 0; i < job->nprocesses; i++)
        kill(job->processes[i].pid, number);
}

void job_fini(struct job *job)
{
    for (int i = 0; i < job->nfiles; i++)
        free(job->files[i]);
    free(job->files);
    free(job->processes);
    free(job->ranks);
    free(job->seen);
    *job = (struct job){0};
}
