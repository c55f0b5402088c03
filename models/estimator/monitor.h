/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - a value that a hook watches, and whether it improves. */
#ifndef MODELS_ESTIMATOR_MONITOR_H
#define MODELS_ESTIMATOR_MONITOR_H

#include <hvd_hook.h>
#include <stdbool.h>

struct monitor {
    char name[256];
    bool largest;
    double min_delta;
};

int monitor_init(struct monitor *monitor, const char *hook, const char *name,
                 bool largest, double min_delta);

/* The best value, before there is one. */
double monitor_worst(const struct monitor *monitor);

/* Returns true if a value is better than the best by more than min_delta. */
bool monitor_improves(const struct monitor *monitor, double value, double best);

/* Sets *value to what an event has of the value. Returns 1; 0 if the event is
 * of others; HVD_ERR_ARGUMENT if it should have it, and has not. */
int monitor_find(const struct monitor *monitor, const hvd_event *event,
                 double *value);

#endif
