/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/socket.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"

/* Lists the addresses of this host. Loopback counts only if there is nothing
 * else: then the hosts share a machine. */
static int32_t list_addresses(uint32_t *addresses, int32_t max)
{
    struct ifaddrs *all;
    int32_t n = 0;

    if (getifaddrs(&all) != 0)
        return 0;
    for (unsigned loopback = 0; loopback <= IFF_LOOPBACK && n == 0;
         loopback += IFF_LOOPBACK)
        for (const struct ifaddrs *i = all; i && n < max; i = i->ifa_next) {
            struct sockaddr_in address;

            if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
                !(i->ifa_flags & IFF_UP) ||
                (i->ifa_flags & IFF_LOOPBACK) != loopback)
                continue;
            memcpy(&address, i->ifa_addr, sizeof address);
            addresses[n++] = address.sin_addr.s_addr;
        }
    freeifaddrs(all);
    return n;
}

static int prepare(int fd, int32_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int yes = 1;

    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return hvd__fail(HVD_ERR_UNSUPPORTED, "bind: %s", strerror(errno));
    if (setsockopt(fd, IPPROTO_IP, IP_RECVERR, &yes, sizeof yes) != 0)
        return hvd__fail(HVD_ERR_UNSUPPORTED, "IP_RECVERR: %s",
                         strerror(errno));
    *port = address.sin_port;
    return HVD_OK;
}

int hvd__socket_open(uint32_t *addresses, int32_t max, int32_t *naddresses,
                     int32_t *port)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int status;

    if (fd < 0)
        return hvd__fail(HVD_ERR_UNSUPPORTED, "socket: %s", strerror(errno));
    status = prepare(fd, port);
    *naddresses = list_addresses(addresses, max);
    if (status == HVD_OK && *naddresses == 0)
        status =
            hvd__fail(HVD_ERR_UNSUPPORTED, "this host has no IPv4 address");
    if (status == HVD_OK)
        return fd;
    close(fd);
    return status;
}

/* The filter sees the UDP header, of 8 bytes, and then the data, whose words it
 * takes as big-endian. */
void hvd__socket_filter(int fd, uint32_t first, uint32_t second)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 8),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __builtin_bswap32(first), 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 12),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __builtin_bswap32(second), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code,
                                 .filter = code};

    /* If this fails, all is let in. */
    (void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                     sizeof program);
}

void hvd__socket_send(int fd, uint32_t address, int port, const void *data,
                      size_t bytes)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = (in_port_t)port,
                             .sin_addr.s_addr = address};

    /* An error may belong to an earlier datagram; then it is reported only
     * once. */
    for (int attempt = 0; attempt < 2; attempt++)
        if (sendto(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL,
                   (struct sockaddr *)&to, sizeof to) >= 0)
            return;
}

/* Errors of earlier datagrams are reported here too, once each; MOST_ERRORS of
 * them are skipped at a time. */
enum { MOST_ERRORS = 16 };

int hvd__socket_receive(int fd, void *data, size_t size, uint32_t *address)
{
    struct sockaddr_in from = {0};

    for (int i = 0; i < MOST_ERRORS; i++) {
        socklen_t length = sizeof from;
        ssize_t bytes = recvfrom(fd, data, size, MSG_DONTWAIT | MSG_TRUNC,
                                 (struct sockaddr *)&from, &length);

        *address = from.sin_addr.s_addr;
        if (bytes >= 0 || errno == EAGAIN)
            return (int)bytes;
    }
    return -1;
}

static bool is_refusal(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c;
         c = CMSG_NXTHDR(message, c)) {
        struct sock_extended_err error;

        if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR)
            continue;
        memcpy(&error, CMSG_DATA(c), sizeof error);
        if (error.ee_origin == SO_EE_ORIGIN_ICMP &&
            error.ee_errno == ECONNREFUSED)
            return true;
    }
    return false;
}

bool hvd__socket_next_refusal(int fd, uint32_t *address, int *port)
{
    for (;;) {
        _Alignas(struct cmsghdr) unsigned char control[512];
        struct sockaddr_in to = {0};
        struct msghdr message = {.msg_name = &to,
                                 .msg_namelen = sizeof to,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control};

        if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return false;
        *address = to.sin_addr.s_addr;
        *port = to.sin_port;
        if (is_refusal(&message))
            return true;
    }
}
