/* SPDX-License-Identifier: Apache-2.0 */
/* number.h - tells the worlds of a process apart, and their settings to those
 * who do not know the world. */
#ifndef HVD_CORE_WORLD_NUMBER_H
#define HVD_CORE_WORLD_NUMBER_H

#include <stdint.h>

/* Returns how many worlds have started in this process. Any thread. */
int64_t hvd__world_number(void);
/* Returns HVD_STRAGGLER_TIME, the same on all ranks; 0: never, or no world. */
int64_t hvd__world_straggler_ns(void);

#endif
