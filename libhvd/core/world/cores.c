/* SPDX-License-Identifier: Apache-2.0 */
#include "core/world/cores.h"

#include <stdio.h>
#include <string.h>

double hvd__cores_quota(const char *line)
{
    double quota, period;

    /* "max 100000", or microseconds of a period of microseconds */
    if (sscanf(line, "%lf %lf", &quota, &period) != 2 || quota <= 0 ||
        period <= 0)
        return 0;
    return quota / period;
}

static double read_quota(const char *path)
{
    char line[64] = "";
    FILE *file = fopen(path, "re");

    if (!file)
        return 0;
    if (!fgets(line, sizeof line, file))
        line[0] = '\0';
    fclose(file);
    return hvd__cores_quota(line);
}

/* Returns the least of the limits of this process's cgroup and of its ancestors
 * (cgroup v2, the kernel's Documentation/admin-guide/cgroup-v2.rst). */
static double least_quota(void)
{
    static const char root[] = "/sys/fs/cgroup";
    char line[512] = "", path[600];
    double least = read_quota("/sys/fs/cgroup/cpu.max");
    FILE *file = fopen("/proc/self/cgroup", "re");

    if (!file)
        return least;
    while (fgets(line, sizeof line, file) && strncmp(line, "0::/", 4) != 0)
        continue;
    fclose(file);
    if (strncmp(line, "0::/", 4) != 0)
        return least;
    line[strcspn(line, "\n")] = '\0';
    for (char *end = line + strlen(line); end > line + 4;
         end = strrchr(line + 3, '/')) {
        double quota;

        *end = '\0';
        snprintf(path, sizeof path, "%s%s/cpu.max", root, line + 3);
        quota = read_quota(path);
        if (quota > 0 && (least <= 0 || quota < least))
            least = quota;
    }
    return least;
}

void hvd__cores_read(struct hvd__cores *cores)
{
    CPU_ZERO(&cores->mask);
    if (sched_getaffinity(0, sizeof cores->mask, &cores->mask) != 0)
        CPU_SET(0, &cores->mask);
    cores->quota = least_quota();
}

bool hvd__cores_suffice(int n, int self,
                        const struct hvd__cores *(*of)(const void *context,
                                                       int i),
                        const void *context)
{
    const struct hvd__cores *own = of(context, self);
    int confined = 0;

    /* All ranks that can use only this rank's cores must fit into them. */
    for (int i = 0; i < n; i++) {
        cpu_set_t both;

        CPU_AND(&both, &own->mask, &of(context, i)->mask);
        confined += CPU_EQUAL(&both, &of(context, i)->mask) != 0;
    }
    if (confined > CPU_COUNT(&own->mask))
        return false;
    /* A quota usually applies to the whole job. */
    return own->quota <= 0 || own->quota >= n;
}
