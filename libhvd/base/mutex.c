/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mutex.h"

#include <sched.h>
#include <time.h>

/* The holder needs well under a microsecond, unless it has lost its core. */
enum { LOOKS = 100, YIELDS = 10 };
#define NAP_NS 50000

void hvd__mutex_wait(struct hvd__mutex *mutex)
{
    for (int tries = 0; !hvd__mutex_try(mutex); tries++)
        if (tries >= LOOKS + YIELDS)
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        else if (tries >= LOOKS)
            sched_yield();
}
