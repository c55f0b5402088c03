/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names DIRECTORY COMMAND... - runs a command, and writes to stdout every name
 * that a file in the directory gets meanwhile, even for a moment. It ends with
 * the command's status.
 */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

/* All that is to be read now. */
static void tell(int watch)
{
    _Alignas(struct inotify_event) char events[4096 + NAME_MAX];
    ssize_t bytes = read(watch, events, sizeof events);

    for (char *at = events; bytes > 0 && at < events + bytes;) {
        const struct inotify_event *event = (void *)at;

        printf("named %s\n", event->len > 0 ? event->name : "?");
        at += sizeof *event + event->len;
    }
}

int main(int argc, char **argv)
{
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), status;
    struct pollfd news = {.fd = watch, .events = POLLIN};
    pid_t child;

    if (argc < 3 ||
        inotify_add_watch(watch, argv[1], IN_CREATE | IN_MOVED_TO) < 0) {
        perror("names DIRECTORY COMMAND");
        return 2;
    }
    child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        poll(&news, 1, 20);
        tell(watch);
    }
    tell(watch);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
