/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports.c - the kernel gives its own ports to connections of any program, so
 * one of these could be gone before a task listens on it. Ports below that
 * range are only taken by who asks for them.
 */
#include "launch/parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOWEST = 10000, HIGHEST = 32767, TRIES = 100000 };

/* Returns the port before the kernel's own, at most HIGHEST. */
static int last_port(void)
{
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    int first = 0;

    if (file && fscanf(file, "%d", &first) != 1)
        first = 0;
    if (file)
        fclose(file);
    return first > LOWEST + LAUNCH_MOST_TASKS && first <= HIGHEST ? first - 1
                                                                  : HIGHEST;
}

/* Returns a socket that has the port, so that nobody else gets it; -1: somebody
 * has it. */
static int take(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int find(int count, int *ports, int *sockets)
{
    int range = last_port() - LOWEST + 1, found = 0;

    for (int i = 0; i < TRIES && found < count; i++) {
        uint32_t number;

        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            return found;
        ports[found] = LOWEST + (int)(number % (uint32_t)range);
        sockets[found] = take(ports[found]);
        found += sockets[found] >= 0;
    }
    return found;
}

int launch__free_ports(int count, int *ports)
{
    int *sockets = malloc((size_t)count * sizeof *sockets);
    int found = sockets ? find(count, ports, sockets) : 0, error = errno;

    for (int i = 0; i < found; i++)
        close(sockets[i]);
    free(sockets);
    errno = error;
    return found == count ? 0 : -1;
}
