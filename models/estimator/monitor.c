/* SPDX-License-Identifier: Apache-2.0 */
#include "estimator/monitor.h"

#include "output/problem.h"

#include <hvd.h>
#include <math.h>
#include <string.h>

int monitor_init(struct monitor *m, const char *hook, const char *name,
                 bool largest, double min_delta)
{
    m->largest = largest;
    m->min_delta = min_delta;
    if (!(min_delta >= 0 && min_delta < (double)INFINITY))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "%s: min_delta is %g: it must be 0 or more", hook,
                            min_delta);
    if (!name || !strchr(name, '/') ||
        snprintf(m->name, sizeof m->name, "%s", name) >= (int)sizeof m->name)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "%s: monitor is '%.300s': it must be a name such "
                            "as train/loss or eval/loss, of at most %zu bytes",
                            hook, name ? name : "(NULL)", sizeof m->name - 1);
    return 0;
}

double monitor_worst(const struct monitor *m)
{
    return m->largest ? (double)-INFINITY : (double)INFINITY;
}

bool monitor_improves(const struct monitor *m, double value, double best)
{
    return m->largest ? value - m->min_delta > best
                      : value + m->min_delta < best;
}

/* Returns true if both names have the same text before their "/". */
static bool is_of_group(const char *name, const char *other)
{
    size_t bytes = (size_t)(strchr(name, '/') - name) + 1;

    return strncmp(name, other, bytes) == 0;
}

int monitor_find(const struct monitor *m, const hvd_event *event, double *value)
{
    char names[512] = "";
    size_t used = 0;

    if (hvd_event_value(event, m->name, value) == 0)
        return 1;
    for (int32_t i = 0; i < event->nvalues; i++)
        if (is_of_group(m->name, event->values[i].name) && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     used ? ", " : "", event->values[i].name);
    return used == 0 ? 0
                     : problem_fail(HVD_ERR_ARGUMENT,
                                    "monitor '%s': there is no such value, but "
                                    "%s",
                                    m->name, names);
}
