/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <stdio.h>
#include <string.h>

/* The rest of the first line of a file that starts with key. */
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

void machine_processor(char *text, size_t size)
{
    char name[256];

    if (!find_line("/proc/cpuinfo", "model name", name, sizeof name))
        snprintf(name, sizeof name, " unknown");
    snprintf(text, size, "%s", name + strspn(name, " \t"));
}

int64_t machine_memory(void)
{
    char text[128];
    long long kib;

    if (!find_line("/proc/meminfo", "MemAvailable", text, sizeof text) ||
        sscanf(text, "%lld", &kib) != 1)
        return -1;
    return (int64_t)kib * 1024;
}
