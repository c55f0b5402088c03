/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/keep.h"

#include <math.h>

/* Returns whether a has a better metric than b, which is older, or as good a
 * one. */
static bool is_better(const struct checkpoint_entry *a,
                      const struct checkpoint_entry *b, bool largest)
{
    return largest ? a->metric >= b->metric : a->metric <= b->metric;
}

/* Keeps the best ones that have a metric. */
static void keep_best(struct checkpoint_entry *entries, int count,
                      const hvd_checkpoint_options *o)
{
    for (int i = 0; i < count; i++) {
        int better = 0;

        if (isnan(entries[i].metric))
            continue;
        for (int k = 0; k < count; k++)
            if (k != i && !isnan(entries[k].metric))
                better += k > i ? is_better(&entries[k], &entries[i],
                                            o->best_is_largest)
                                : !is_better(&entries[i], &entries[k],
                                             o->best_is_largest);
        if (better < o->keep_best)
            entries[i].stays = true;
    }
}

/* Keeps the last of each window of time. */
static void keep_windows(struct checkpoint_entry *entries, int count,
                         double seconds)
{
    for (int i = 0; i < count; i++) {
        const double window = floor(entries[i].time / seconds);
        bool last = true;

        for (int k = 0; k < count && last; k++)
            last = floor(entries[k].time / seconds) != window ||
                   entries[k].time < entries[i].time ||
                   (k <= i && entries[k].time == entries[i].time);
        entries[i].stays |= last;
    }
}

void checkpoint_decide(struct checkpoint_entry *entries, int count,
                       const hvd_checkpoint_options *o, int64_t newest)
{
    for (int i = 0; i < count; i++)
        entries[i].stays = o->keep_max == 0 || i >= count - o->keep_max ||
                           entries[i].step == newest;
    if (o->keep_best > 0)
        keep_best(entries, count, o);
    if (o->keep_every_hours > 0)
        keep_windows(entries, count, 3600 * o->keep_every_hours);
}
