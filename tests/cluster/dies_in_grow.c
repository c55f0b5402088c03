/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dies_in_grow - a library for LD_PRELOAD: the process is killed when it
 * connects with the ranks of the next world in its first hvd_grow that lets
 * somebody in. All ranks have agreed on the guests then, and that world has not
 * started (join_training.bats).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hvd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

static atomic_bool grows;

int hvd_grow(hvd_recovery *recovery, size_t size)
{
    int (*own)(hvd_recovery *, size_t);
    int status;

    *(void **)&own = dlsym(RTLD_NEXT, "hvd_grow");
    atomic_store(&grows, true);
    status = own(recovery, size);
    atomic_store(&grows, false);
    return status;
}

int connect(int fd, const struct sockaddr *to, socklen_t length)
{
    int (*own)(int, const struct sockaddr *, socklen_t);

    *(void **)&own = dlsym(RTLD_NEXT, "connect");
    if (atomic_load(&grows))
        raise(SIGKILL);
    return own(fd, to, length);
}
