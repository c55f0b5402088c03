/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum { HOST_BYTES = 256 };

const char *hvd__address_find(const char *address, bool only_numbers,
                              struct addrinfo **found)
{
    const struct addrinfo wanted = {
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICSERV | (only_numbers ? AI_NUMERICHOST : 0),
    };
    const char *colon = strrchr(address, ':');
    char host[HOST_BYTES];
    size_t length;
    int code;

    *found = NULL;
    if (!colon)
        return "it has no port";
    length = (size_t)(colon - address);
    if (length > 1 && address[0] == '[' && address[length - 1] == ']') {
        address++;
        length -= 2;
    }
    if (length == 0 || length >= sizeof host)
        return "it has no name of a host";
    memcpy(host, address, length);
    host[length] = '\0';
    code = getaddrinfo(host, colon + 1, &wanted, found);
    return code == 0 ? NULL : gai_strerror(code);
}

bool hvd__address_is_loopback(const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;

    if (address->sa_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

void hvd__address_print(const struct sockaddr *address, char *text, size_t size)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;
    char host[INET6_ADDRSTRLEN] = "?";

    if (address->sa_family == AF_INET) {
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(text, size, "%s:%d", host, ntohs(v4->sin_port));
    } else if (address->sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(text, size, "[%s]:%d", host, ntohs(v6->sin6_port));
    } else {
        snprintf(text, size, "an unknown address");
    }
}
