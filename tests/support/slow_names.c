/* SPDX-License-Identifier: Apache-2.0 */
/* slow_names.so, preloaded: a server of names that never answers for the name
 * of the address whose port is SLOW_PORT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char *host, const char *port,
                const struct addrinfo *wanted, struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *,
                struct addrinfo **) =
        (int (*)(const char *, const char *, const struct addrinfo *,
                 struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");

    if (!(wanted->ai_flags & AI_NUMERICHOST) &&
        strcmp(port, getenv("SLOW_PORT")) == 0)
        for (;;)
            pause();
    return real(host, port, wanted, found);
}
