/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices.c - lists the network devices that UCX may use. UCX would take any
 * interface with an address, and use two for large transfers; but that of a
 * bridge between containers of this host (docker0, virbr0) leads to no other
 * host, and often has the same address on all of them.
 */
#include <dirent.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "transport/ucx/ucx.h"

/* Calls visit for the entries of a directory. Returns true once it does. */
static bool any_entry(const char *path,
                      bool (*visit)(void *context, const char *name),
                      void *context)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    bool found = false;

    while (directory && !found && (entry = readdir(directory)))
        found = entry->d_name[0] != '.' && visit(context, entry->d_name);
    if (directory)
        closedir(directory);
    return found;
}

static bool has_hardware(void *context, const char *port)
{
    char path[sizeof "/sys/class/net//device" + NAME_MAX];

    (void)context;
    snprintf(path, sizeof path, "/sys/class/net/%s/device", port);
    return access(path, F_OK) == 0;
}

/* Returns true for a bridge to which no hardware is connected. */
static bool is_inner(const char *interface)
{
    char path[sizeof "/sys/class/net//brif" + NAME_MAX];

    snprintf(path, sizeof path, "/sys/class/net/%s/brif", interface);
    return access(path, F_OK) == 0 && !any_entry(path, has_hardware, NULL);
}

static void add(struct hvd__text *list, const char *name)
{
    hvd__text_add(list, "%s%s", list->used ? "," : "", name);
}

/* The ports of an RDMA device are named DEVICE:PORT. */
struct rdma {
    struct hvd__text *list;
    const char *device;
};

static bool add_port(void *context, const char *port)
{
    const struct rdma *rdma = context;
    char name[2 * NAME_MAX + 2];

    snprintf(name, sizeof name, "%s:%s", rdma->device, port);
    add(rdma->list, name);
    return false;
}

static bool add_rdma(void *context, const char *device)
{
    struct rdma rdma = {context, device};
    char path[sizeof "/sys/class/infiniband//ports" + NAME_MAX];

    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports", device);
    any_entry(path, add_port, &rdma);
    return false;
}

/* An interface is listed once for each of its addresses. */
static bool is_first(const struct ifaddrs *all, const struct ifaddrs *one)
{
    const struct ifaddrs *i = all;

    while (i != one && !(i->ifa_addr &&
                         i->ifa_addr->sa_family == one->ifa_addr->sa_family &&
                         strcmp(i->ifa_name, one->ifa_name) == 0))
        i = i->ifa_next;
    return i == one;
}

bool hvd__ucx_devices(char *text, size_t size)
{
    struct hvd__text list = hvd__text_at(text, size);
    struct ifaddrs *all;
    bool leaves_out = false;

    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
            !(i->ifa_flags & IFF_RUNNING) || !is_first(all, i))
            continue;
        if (is_inner(i->ifa_name))
            leaves_out = true;
        else
            add(&list, i->ifa_name);
    }
    freeifaddrs(all);
    any_entry("/sys/class/infiniband", add_rdma, &list);
    return leaves_out && list.used > 0 && list.used < size - 1;
}
