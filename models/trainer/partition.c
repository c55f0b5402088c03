/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/partition.h"

#include <stddef.h>

const char *const partition_schedules[] = {"grouped", "interleaved",
                                           "sequential", NULL};
