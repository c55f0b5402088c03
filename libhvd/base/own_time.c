/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own_time.h"

#include <string.h>

static void remember(struct hvd__own_time *time, int64_t end_ns,
                     int64_t lost_ns)
{
    if (time->ngaps == HVD__GAPS) { /* join the oldest two */
        time->gaps[1].lost_ns += time->gaps[0].lost_ns;
        memmove(time->gaps, time->gaps + 1,
                (HVD__GAPS - 1) * sizeof *time->gaps);
        time->ngaps--;
    }
    time->gaps[time->ngaps].end_ns = end_ns;
    time->gaps[time->ngaps].lost_ns = lost_ns;
    time->ngaps++;
}

int64_t hvd__own_time_pass(struct hvd__own_time *time, int64_t now_ns,
                           int64_t most_ns)
{
    int64_t passed = time->looked_ns ? now_ns - time->looked_ns : 0;

    time->looked_ns = now_ns;
    if (passed <= most_ns)
        return passed;
    remember(time, now_ns, passed - most_ns);
    return most_ns;
}

int64_t hvd__own_time_since(const struct hvd__own_time *time, int64_t since_ns,
                            int64_t now_ns)
{
    int64_t passed = now_ns - since_ns;

    for (int i = 0; i < time->ngaps; i++) {
        int64_t after = time->gaps[i].end_ns - since_ns;

        if (after > 0)
            passed -=
                after < time->gaps[i].lost_ns ? after : time->gaps[i].lost_ns;
    }
    return passed > 0 ? passed : 0;
}
