/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/partition.h"

#include <string.h>

/* The names, in the order of ipu_schedule. */
static const char *const names[] = {"grouped", "interleaved", "sequential"};

const char partition_schedule_names[] = "grouped, interleaved, sequential";

int partition_schedule_from_name(const char *name)
{
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *partition_schedule_name(int schedule)
{
    return names[schedule];
}
