/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c - reads Linux's description of this machine: /proc, /sys and the
 * control group. Nothing here fails: what the system does not say becomes
 * "unknown", -1, or a usual value.
 */
#include "collectives/machine.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reads the text after the colon in the first line of a file that starts with
 * key. Returns 1 if there is such a line. */
static int find_line(const char *path, const char *key, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    char line[512];
    int found = 0;

    if (!file)
        return 0;
    while (!found && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) {
            const char *colon = strchr(line, ':');
            snprintf(text, size, "%s", colon ? colon + 1 : "");
            text[strcspn(text, "\n")] = '\0';
            found = 1;
        }
    fclose(file);
    return found;
}

/* Returns the number that a file begins with; -1 if there is none. */
static int64_t find_number(const char *path)
{
    FILE *file = fopen(path, "r");
    long long number = -1;

    if (!file)
        return -1;
    if (fscanf(file, "%lld", &number) != 1)
        number = -1;
    fclose(file);
    return number;
}

void machine_processor(char *text, size_t size)
{
    char name[256];

    if (!find_line("/proc/cpuinfo", "model name", name, sizeof name))
        snprintf(name, sizeof name, " unknown");
    snprintf(text, size, "%s", name + strspn(name, " \t"));
}

void machine_host(char *text, size_t size)
{
    if (gethostname(text, size) != 0)
        snprintf(text, size, "?");
    text[size - 1] = '\0';
}

int machine_cores(void)
{
    cpu_set_t cores;

    if (sched_getaffinity(0, sizeof cores, &cores) != 0)
        return (int)sysconf(_SC_NPROCESSORS_ONLN);
    return CPU_COUNT(&cores);
}

/* sysconf would return the sum of all caches of the socket, including those
 * that this machine has no share of. */
size_t machine_cache(void)
{
    size_t most = 0;

    for (int i = 0; i < 8; i++) {
        char path[80];
        int64_t kib;

        snprintf(path, sizeof path,
                 "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        kib = find_number(path); /* the file has the form 32768K */
        if (kib > 0 && (size_t)kib > most)
            most = (size_t)kib;
    }
    return most > 0 ? most << 10 : 32u << 20;
}

int64_t machine_memory(void)
{
    int64_t limit = find_number(
        "/sys/fs/cgroup/memory.max"); /* the file may also contain "max" */
    int64_t used = find_number("/sys/fs/cgroup/memory.current");
    int64_t available = -1;
    char text[128];
    long long kib;

    if (find_line("/proc/meminfo", "MemAvailable", text, sizeof text) &&
        sscanf(text, "%lld", &kib) == 1)
        available = (int64_t)kib * 1024;
    if (limit >= 0 && used >= 0 && used <= limit &&
        (available < 0 || limit - used < available))
        available = limit - used;
    return available;
}
