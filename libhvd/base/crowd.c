/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crowd.h"

#include <sched.h>

#include "base/clock.h"

/* A system call that does nothing takes a few hundred nanoseconds, two switches
 * of processes more than two thousand. */
#define SWITCHES_NS 1000

/* Short yields take signs back, so that a thread that only now and then gives
 * way to another one does not sleep. */
enum { THICK = 4, SIGNS_MAX = 8, SLEEPS = 16 };

void hvd__crowd_yield(struct hvd__crowd *crowd)
{
    int64_t since = hvd__now_ns();

    sched_yield();
    if (hvd__now_ns() - since > SWITCHES_NS)
        crowd->signs += crowd->signs < SIGNS_MAX;
    else
        crowd->signs -= crowd->signs > 0;
    crowd->nsleeps = 0;
}

bool hvd__crowd_is_thick(struct hvd__crowd *crowd)
{
    return crowd->signs >= THICK && crowd->nsleeps++ < SLEEPS;
}
