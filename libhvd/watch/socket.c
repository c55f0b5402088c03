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

#include "base/ip_socket.h"
#include "base/status.h"

/* Returns whether others can use an address of an interface: of IPv6, not one
 * that is of its link only. */
static bool is_usable(const struct ifaddrs *i, int family, unsigned loopback)
{
    struct in6_addr in6;

    if (!i->ifa_addr || i->ifa_addr->sa_family != family ||
        !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK) != loopback)
        return false;
    in6 = hvd__ip_in6(hvd__ip_of(i->ifa_addr));
    return !IN6_IS_ADDR_LINKLOCAL(&in6);
}

/* Lists the addresses of this host, of one family. Loopback counts only if
 * there is nothing else: then the hosts share a machine. */
static int32_t list_addresses(int family, struct hvd__ip *addresses,
                              int32_t max)
{
    struct ifaddrs *all;
    int32_t n = 0;

    if (getifaddrs(&all) != 0)
        return 0;
    for (unsigned loopback = 0; loopback <= IFF_LOOPBACK && n == 0;
         loopback += IFF_LOOPBACK)
        for (const struct ifaddrs *i = all; i && n < max; i = i->ifa_next)
            if (is_usable(i, family, loopback))
                addresses[n++] = hvd__ip_of(i->ifa_addr);
    freeifaddrs(all);
    return n;
}

/* Errors of datagrams are to be kept (hvd__socket_next_refusal). */
static int keep_errors(int fd, int family)
{
    const int yes = 1;

    return family == AF_INET
               ? setsockopt(fd, IPPROTO_IP, IP_RECVERR, &yes, sizeof yes)
               : setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &yes, sizeof yes);
}

static int prepare(int fd, int family, struct hvd__ip own, int32_t *port)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;

    if (hvd__ip_is_any(own) && family == AF_INET)
        own = hvd__ip_of_v4(INADDR_ANY);
    if (bind(fd, (struct sockaddr *)&address,
             hvd__ip_socket(own, 0, &address)) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return hvd__fail(HVD_ERR_UNSUPPORTED, "bind: %s", strerror(errno));
    if (keep_errors(fd, family) != 0)
        return hvd__fail(HVD_ERR_UNSUPPORTED, "IP_RECVERR: %s",
                         strerror(errno));
    *port = hvd__ip_port(&address);
    return HVD_OK;
}

static int open_family(int family, struct hvd__ip own, int32_t *port)
{
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int status;

    if (fd < 0)
        return hvd__fail(HVD_ERR_UNSUPPORTED, "socket: %s", strerror(errno));
    status = prepare(fd, family, own, port);
    if (status == HVD_OK)
        return fd;
    close(fd);
    return status;
}

int hvd__socket_open(struct hvd__ip own, struct hvd__ip *addresses, int32_t max,
                     int32_t *naddresses, int32_t *port)
{
    int family = AF_INET;

    if (!hvd__ip_is_any(own) && max > 0) {
        addresses[0] = own;
        *naddresses = 1;
        return open_family(hvd__ip_is_v4(own) ? AF_INET : AF_INET6, own, port);
    }
    *naddresses = list_addresses(family, addresses, max);
    if (*naddresses == 0) {
        family = AF_INET6;
        *naddresses = list_addresses(family, addresses, max);
    }
    return *naddresses > 0
               ? open_family(family, own, port)
               : hvd__fail(HVD_ERR_UNSUPPORTED, "this host has no IP address");
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

void hvd__socket_send(int fd, struct hvd__ip address, int port,
                      const void *data, size_t bytes)
{
    struct sockaddr_storage to;
    socklen_t length = hvd__ip_socket(address, (in_port_t)port, &to);

    /* An error may belong to an earlier datagram; then it is reported only
     * once. */
    for (int attempt = 0; attempt < 2; attempt++)
        if (sendto(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL,
                   (struct sockaddr *)&to, length) >= 0)
            return;
}

/* Errors of earlier datagrams are reported here too, once each; MOST_ERRORS of
 * them are skipped at a time. */
enum { MOST_ERRORS = 16 };

int hvd__socket_receive(int fd, void *data, size_t size,
                        struct hvd__ip *address)
{
    struct sockaddr_storage from = {0};

    for (int i = 0; i < MOST_ERRORS; i++) {
        socklen_t length = sizeof from;
        ssize_t bytes = recvfrom(fd, data, size, MSG_DONTWAIT | MSG_TRUNC,
                                 (struct sockaddr *)&from, &length);

        *address = hvd__ip_of((struct sockaddr *)&from);
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

        if ((c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR) &&
            (c->cmsg_level != IPPROTO_IPV6 || c->cmsg_type != IPV6_RECVERR))
            continue;
        memcpy(&error, CMSG_DATA(c), sizeof error);
        if ((error.ee_origin == SO_EE_ORIGIN_ICMP ||
             error.ee_origin == SO_EE_ORIGIN_ICMP6) &&
            error.ee_errno == ECONNREFUSED)
            return true;
    }
    return false;
}

bool hvd__socket_next_refusal(int fd, struct hvd__ip *address, int *port)
{
    for (;;) {
        _Alignas(struct cmsghdr) unsigned char control[512];
        struct sockaddr_storage to = {0};
        struct msghdr message = {.msg_name = &to,
                                 .msg_namelen = sizeof to,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control};

        if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return false;
        *address = hvd__ip_of((struct sockaddr *)&to);
        *port = hvd__ip_port(&to);
        if (is_refusal(&message))
            return true;
    }
}
