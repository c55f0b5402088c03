/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.c - reads addresses, "host:port", strictly. What getaddrinfo would
 * accept is not the measure: it takes "1.2" for 1.0.0.2 and "010.0.0.1" for
 * 8.0.0.1, and would look up a name that no host can have.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/parts.h"

enum { LABEL_MAX = 63, QUOTED_MAX = 80 };

int hvd__quoted(const char *text)
{
    size_t bytes = strnlen(text, QUOTED_MAX + 1);

    if (bytes <= QUOTED_MAX)
        return (int)bytes;
    for (bytes = QUOTED_MAX; ((unsigned char)text[bytes] & 0xc0) == 0x80;)
        bytes--;
    return (int)bytes;
}

/* Returns the port, or 0 if the text is none. */
static int read_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    long port = digits > 5 ? 0 : strtol(text, NULL, 10);

    return text[digits] || text[0] == '0' || port > 65535 ? 0 : (int)port;
}

/* -------------------------------------------------------------------- hosts */

static bool read_ipv6(const char *host, char *canonical, struct hvd__text *why)
{
    struct in6_addr address;

    if (strchr(host, '%')) {
        hvd__text_add(why,
                      "'%.*s' has a scope, which means something on one host "
                      "only: give an address that all hosts can use",
                      hvd__quoted(host), host);
        return false;
    }
    if (inet_pton(AF_INET6, host, &address) != 1) {
        hvd__text_add(why, "'%.*s' is not an IPv6 address", hvd__quoted(host),
                      host);
        return false;
    }
    if (IN6_IS_ADDR_UNSPECIFIED(&address)) {
        hvd__text_add(why, "nobody can connect to the address ::");
        return false;
    }
    inet_ntop(AF_INET6, &address, canonical, INET6_ADDRSTRLEN);
    return true;
}

static bool read_ipv4(const char *host, char *canonical, struct hvd__text *why)
{
    struct in_addr address;

    if (inet_pton(AF_INET, host, &address) != 1) {
        hvd__text_add(why,
                      "'%.*s' is not an IPv4 address: give four numbers from 0 "
                      "to 255 with dots between them",
                      hvd__quoted(host), host);
        return false;
    }
    if (address.s_addr == INADDR_ANY) {
        hvd__text_add(why, "nobody can connect to the address 0.0.0.0");
        return false;
    }
    inet_ntop(AF_INET, &address, canonical, INET_ADDRSTRLEN);
    return true;
}

/* Returns whether the last label of a host is a number, as that of an IPv4
 * address and of no name is. */
static bool ends_in_number(const char *host)
{
    const char *dot = strrchr(host, '.'), *label = dot ? dot + 1 : host;

    if (label[0] == '0' && tolower((unsigned char)label[1]) == 'x')
        return !label[2 + strspn(label + 2, "0123456789abcdefABCDEF")];
    return *label && !label[strspn(label, "0123456789")];
}

static bool is_label(const char *label, size_t bytes)
{
    return bytes > 0 && bytes <= LABEL_MAX && label[0] != '-' &&
           label[bytes - 1] != '-';
}

static bool read_name(const char *host, char *canonical, struct hvd__text *why)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    const char *at = host;
    size_t bytes;

    if (strlen(host) > HVD_CLUSTER_MAX_HOST) {
        hvd__text_add(why, "the host's name is longer than %d bytes",
                      HVD_CLUSTER_MAX_HOST);
        return false;
    }
    do {
        bytes = strspn(at, allowed);
        if (!is_label(at, bytes) || (at[bytes] && at[bytes] != '.')) {
            hvd__text_add(why,
                          "'%.*s' is not the name of a host: give letters, "
                          "digits and '-', in parts of up to %d with dots "
                          "between them",
                          hvd__quoted(host), host, LABEL_MAX);
            return false;
        }
        at += bytes + (at[bytes] == '.');
    } while (*at); /* a dot may be last */
    for (at = host; *at; at++)
        *canonical++ = (char)tolower((unsigned char)*at);
    *canonical = '\0';
    return true;
}

/* ---------------------------------------------------------------- addresses */

/* Returns the colon before the port; NULL, with the reason, if there is none or
 * if it cannot be told from others. */
static const char *find_colon(const char *given, struct hvd__text *why)
{
    const char *colon = strrchr(given, ':');
    const char *bracket = strrchr(given, ']');

    if (strstr(given, "://"))
        hvd__text_add(why, "'%.*s' begins with a scheme: give host:port alone",
                      hvd__quoted(given), given);
    else if (given[0] == '[' && !bracket)
        hvd__text_add(why, "'%.*s' lacks the ] of its IPv6 address",
                      hvd__quoted(given), given);
    else if (!colon || colon < bracket)
        hvd__text_add(why, "'%.*s' has no port: give host:port",
                      hvd__quoted(given), given);
    else if (given[0] == '[' && colon != bracket + 1)
        hvd__text_add(why, "'%.*s' has something between ] and the port",
                      hvd__quoted(given), given);
    else if (given[0] != '[' && strchr(given, ':') != colon)
        hvd__text_add(why,
                      "'%.*s' has several colons: an IPv6 address is written "
                      "in brackets, as in [::1]:3737",
                      hvd__quoted(given), given);
    else
        return colon;
    return NULL;
}

bool hvd__address_read(const char *given, char canonical[HVD__ADDRESS_SIZE],
                       struct hvd__text *why)
{
    bool is_ipv6 = given[0] == '[', good;
    char host[HVD_CLUSTER_MAX_HOST + 3];
    char read[HVD_CLUSTER_MAX_HOST + 1];
    const char *colon;
    int port;

    if (!*given) {
        hvd__text_add(why, "the address is empty: give host:port");
        return false;
    }
    colon = find_colon(given, why);
    if (!colon)
        return false;
    port = read_port(colon + 1);
    if (port == 0) {
        hvd__text_add(why,
                      "'%.*s' is not a port: give a number from 1 to 65535",
                      hvd__quoted(colon + 1), colon + 1);
        return false;
    }
    /* A host that is too long is cut to one character too many. */
    snprintf(host, sizeof host, "%.*s", (int)(colon - given - 2 * is_ipv6),
             given + is_ipv6);
    if (!*host) {
        hvd__text_add(why, "'%.*s' has no host", hvd__quoted(given), given);
        return false;
    }
    good = is_ipv6                ? read_ipv6(host, read, why)
           : ends_in_number(host) ? read_ipv4(host, read, why)
                                  : read_name(host, read, why);
    if (good)
        snprintf(canonical, HVD__ADDRESS_SIZE, is_ipv6 ? "[%s]:%d" : "%s:%d",
                 read, port);
    return good;
}
