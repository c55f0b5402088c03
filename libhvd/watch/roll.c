/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/roll.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAGIC UINT32_C(0x6c6f7268) /* "hrol" */

/* ------------------------------------------------------------------ the job */

static uint64_t mix(uint64_t hash, const char *text)
{
    for (; text && *text; text++) /* FNV-1a */
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* Returns a number that is the same in all ranks that one mpirun has started
 * here, and in no others: made from the name of the job and where its mpirun
 * listens. */
static uint64_t name_job(void)
{
    char user[24];
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    snprintf(user, sizeof user, "%ld/", (long)geteuid());
    hash = mix(hash, user);
    hash = mix(hash, getenv("OMPI_MCA_orte_hnp_uri"));
    return mix(hash, getenv("PMIX_NAMESPACE"));
}

static int number_of(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    char *rest;
    long value = text ? strtol(text, &rest, 10) : -1;

    if (!text || rest == text || *rest || value < 0 || value > INT32_MAX)
        return otherwise;
    return (int)value;
}

/* --------------------------------------------------------------- the socket */

static socklen_t name_rank(const struct hvd__roll *roll, int rank,
                           struct sockaddr_un *address)
{
    int n;

    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    /* A NUL in front puts the name in the abstract namespace. */
    n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
                 "hvd-roll-%016" PRIx64 "-%d", roll->job, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int open_socket(const struct hvd__roll *roll)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address;
    socklen_t bytes = name_rank(roll, roll->rank, &address);
    int one = 1;

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof one) == 0 &&
        bind(fd, (struct sockaddr *)&address, bytes) == 0)
        return fd;
    close(fd);
    return -1;
}

void hvd__roll_open(struct hvd__roll *roll)
{
    *roll = (struct hvd__roll){
        .fd = -1,
        .rank = number_of("OMPI_COMM_WORLD_RANK", -1),
        .size = number_of("OMPI_COMM_WORLD_SIZE", 0),
        .nlocals = number_of("OMPI_COMM_WORLD_LOCAL_SIZE", 0),
    };
    if (roll->rank < 0 || roll->rank >= roll->size) {
        roll->rank = -1;
        roll->size = 0;
    }
    if (roll->rank < 0 || roll->nlocals == 1 || !getenv("PMIX_NAMESPACE"))
        return;
    roll->job = name_job();
    roll->fd = open_socket(roll);
}

void hvd__roll_close(struct hvd__roll *roll)
{
    if (roll->fd > 0)
        close(roll->fd);
    roll->fd = -1;
}

/* -------------------------------------------------------------------- calls */

void hvd__roll_call(const struct hvd__roll *roll, int to,
                    const struct hvd__call *call)
{
    struct sockaddr_un address;
    struct hvd__call out = *call;
    socklen_t bytes = name_rank(roll, to, &address);

    if (roll->fd < 0 || to == roll->rank)
        return;
    out.magic = MAGIC;
    out.rank = roll->rank;
    /* A call that does not arrive is made up for by what else is known. */
    (void)sendto(
        roll->fd, &out, offsetof(struct hvd__call, text) + strlen(out.text) + 1,
        MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address, bytes);
}

void hvd__roll_call_all(const struct hvd__roll *roll,
                        const struct hvd__call *call)
{
    for (int rank = 0; rank < roll->size; rank++)
        hvd__roll_call(roll, rank, call);
}

static const struct ucred *caller_of(struct msghdr *message)
{
    struct cmsghdr *part = CMSG_FIRSTHDR(message);

    for (; part; part = CMSG_NXTHDR(message, part))
        if (part->cmsg_level == SOL_SOCKET &&
            part->cmsg_type == SCM_CREDENTIALS)
            return (const struct ucred *)(const void *)CMSG_DATA(part);
    return NULL;
}

static bool makes_sense(const struct hvd__roll *roll,
                        const struct hvd__call *call, size_t bytes)
{
    return bytes > offsetof(struct hvd__call, text) && call->magic == MAGIC &&
           call->rank >= 0 && call->rank < roll->size &&
           call->rank != roll->rank;
}

bool hvd__roll_hear(const struct hvd__roll *roll, struct hvd__call *call,
                    int *pid)
{
    while (roll->fd >= 0) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
        struct iovec into = {call, sizeof *call};
        struct msghdr message = {.msg_iov = &into,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control};
        ssize_t bytes = recvmsg(roll->fd, &message, MSG_DONTWAIT);
        const struct ucred *caller;

        if (bytes < 0)
            return false;
        call->text[sizeof call->text - 1] = '\0';
        caller = caller_of(&message);
        if (!caller || caller->uid != geteuid() ||
            !makes_sense(roll, call, (size_t)bytes))
            continue;
        call->text[(size_t)bytes - offsetof(struct hvd__call, text) - 1] = '\0';
        *pid = (int)caller->pid;
        return true;
    }
    return false;
}
