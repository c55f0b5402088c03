/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serving.h - what workers and parameter servers of a training do alike: they
 * make the same strategy of the same variables. A server has neither the data
 * nor the network: worker 0 tells it the names and shapes of the variables.
 */
#ifndef MODELS_SERVING_H
#define MODELS_SERVING_H

#include "trainer/exchange.h"

#include <hvd_strategy.h>

/* A variable, as it is told to a server. */
struct serving_variable {
    char name[HVD_MAX_NAME + 1];
    int32_t is_statistic; /* 1: workers change it, and servers only know it */
    int32_t ndim;
    int64_t shape[HVD_MAX_DIMS];
};

/* A list of them; zeroed, it is empty. */
struct serving_list {
    struct serving_variable *variables; /* owned, [count] */
    int64_t count;
};

int serving_add(struct serving_list *list, const char *name, bool is_statistic,
                int32_t ndim, const int64_t *shape);
void serving_list_fini(struct serving_list *list);

/* Makes the strategy of an exchange, to which no variables were added. On
 * failure returns a problem with the text kept, as do the others. */
int serving_strategy(const struct exchange_settings *settings,
                     hvd_strategy **strategy);

/* Collective over all ranks, the servers being in serving_run: sends worker 0's
 * list to the servers. */
int serving_send(const struct serving_list *list);

/* Serves until every worker has ended its strategy. Returns 1; or 0 if worker 0
 * has no list any more (serving_end). */
int serving_run(const struct exchange_settings *settings);

/* Collective over all ranks, the servers being in serving_run: ends them. */
int serving_end(void);

/*
 * Collective over all ranks: has the last so many be servers. From now on the
 * others, the workers, agree among themselves (agree.h). On failure all ranks
 * return a problem.
 */
int serving_divide(int servers);

#endif
