/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover.c - asks a script how many workers may run, and where.
 *
 * The script is run once a second. It writes lines "host" or "host:workers", as
 * that of Horovod's elastic mode does. Without --rsh only this host counts:
 * localhost, its name, or an address of the loopback interface. With it each
 * host does; the process that runs the script looks up their names, which may
 * take long. A host that is not named has no workers. If the script fails, or
 * takes too long, the last answer stays; the job cannot begin without a first
 * one.
 */
#include "launch/parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PERIOD_NS INT64_C(1000000000)
#define LIMIT_NS INT64_C(30000000000)

/* ------------------------------------------------------------------ running */

/* Ends this process as another one has ended. */
static _Noreturn void end_alike(int status)
{
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 127);
}

/* Returns the length of the host's name in a line. */
static size_t host_of(const char *line)
{
    const size_t length = strcspn(line, " \t\r\n");
    const char *colon = memrchr(line, ':', length);

    return colon ? (size_t)(colon - line) : length;
}

/* Prints the address of a host, if it has one: that of IPv4, if it has both,
 * for a name may have one of IPv6 where that is not in use. */
static void print_address(const char *host)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL, *at;
    char text[INET6_ADDRSTRLEN];

    if (getaddrinfo(host, NULL, &wanted, &found) != 0)
        return;
    for (at = found; at->ai_family != AF_INET && at->ai_next;)
        at = at->ai_next;
    if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, NULL, 0,
                    NI_NUMERICHOST) == 0)
        printf(" %s", text);
    freeaddrinfo(found);
}

/* Runs the script, and prints its lines, with the addresses of the hosts. */
static _Noreturn void run_and_look_up(const char *script)
{
    FILE *answer = popen(script, "re");
    char line[512], host[256];

    while (answer && fgets(line, sizeof line, answer)) {
        char *start = line + strspn(line, " \t\r\n");

        start[strcspn(start, " \t\r\n")] = '\0';
        printf("%s", start);
        snprintf(host, sizeof host, "%.*s", (int)host_of(start), start);
        if (*host)
            print_address(host);
        printf("\n");
    }
    fflush(stdout);
    end_alike(answer ? pclose(answer) : -1);
}

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
        setpgid(0, 0);
        if (tasks->launch->rsh)
            run_and_look_up(tasks->launch->script);
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
        kill(-d->pid, SIGKILL);
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

/* Reads a line. Sets *host to the name in it, and *address to what follows it.
 * Returns the workers of the host; -1 if it is no such line. An empty line has
 * an empty name. */
static int read_line(char *line, char **host, char **address)
{
    char *colon, *end, *rest = line;
    long count = 1;

    *host = strsep(&rest, " \t\r");
    *address = rest;
    colon = strrchr(*host, ':');
    if (colon && strcmp(*host, "::1") != 0) {
        *colon = '\0';
        count = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end || count < 0 || count > LAUNCH_MOST_TASKS)
            return -1;
    }
    return **host || !colon ? (int)count : -1;
}

/* Says once that lines of the script have no effect. */
static void leave_out(struct launch__discovery *d,
                      const struct launch__tasks *tasks, const char *host,
                      const char *why)
{
    if (!d->has_left_out)
        launch__say(tasks->launch, "the host '%s' is left out: %s", host, why);
    d->has_left_out = true;
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

/* Lists a host of the answer, if others can reach it, or all are this one. */
static int take_host(struct launch__discovery *d, struct launch__tasks *tasks,
                     const char *host, const char *address, int count)
{
    if (!address || !*address)
        leave_out(d, tasks, host, "its address is not known here");
    else if (tasks->nhosts > 0 &&
             is_loopback(address) != is_loopback(tasks->hosts[0].address))
        leave_out(d, tasks, host,
                  "some hosts have addresses of the loopback interface, at "
                  "which others cannot reach them: have the script print those "
                  "at which they can");
    else
        return launch__hosts_name(tasks, host, address, count);
    return 0;
}

/* Returns how many workers the answer allows, on this host or, with --rsh, on
 * all; -1 if it is none. */
static int read_answer(struct launch__discovery *d, struct launch__tasks *tasks)
{
    char *rest = d->text, *line, *host, *address;
    int total = 0;

    d->text[d->used] = '\0';
    launch__hosts_begin(tasks);
    while ((line = strsep(&rest, "\n"))) {
        char shown[64];
        int count;

        line += strspn(line, " \t\r");
        snprintf(shown, sizeof shown, "%s", line);
        count = read_line(line, &host, &address);
        if (count < 0 && !d->has_failed)
            launch__say(tasks->launch,
                        "the script '%s' has written '%s', which is no host or "
                        "host:workers",
                        tasks->launch->script, shown);
        if (count < 0)
            return -1;
        if (tasks->launch->rsh ? *host != '\0' : launch__is_here(host))
            total += count;
        if (!*host)
            continue;
        if (tasks->launch->rsh) {
            if (take_host(d, tasks, host, address, count) < 0)
                return -1;
        } else if (!launch__is_here(host)) {
            leave_out(d, tasks, host,
                      "without --rsh workers run on this host only");
        }
    }
    if (tasks->launch->rsh)
        launch__hosts_end(tasks);
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
    if (d->has_answered && available != tasks->available && !tasks->launch->rsh)
        launch__say(tasks->launch, "%d workers may run now, not %d", available,
                    tasks->available);
    if (!d->has_answered && available < tasks->launch->least &&
        !tasks->launch->rsh)
        launch__say(tasks->launch,
                    "%d workers may run now: the job waits for %d", available,
                    tasks->launch->least);
    d->has_answered = true;
    tasks->available = available;
    return 0;
}
