/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - a description makes this process a task of a cluster; without one
 * it is a rank of MPI, or alone. hvd_init decides the same way where no option
 * has a say. An evaluator has no rank: it gets a world of its own, of one.
 */
#include "command/world.h"

#include "command/description.h"
#include "estimator/estimator.h"
#include "output/launcher.h"
#include "output/problem.h"
#include "trainer/strategy.h"

#include <hvd.h>
#include <stdlib.h>

/* Returns kind, one of PROBLEM_*. */
static int hvd_problem(int kind)
{
    problem_set("hvd: %s", hvd_last_error());
    return kind;
}

/* Returns what has come of starting a world: 0, WORLD_NOT_NEEDED or kind. */
static int judge_start(int status, int kind)
{
    if (status >= 0)
        return 0;
    return status == HVD_ERR_SHUTDOWN ? WORLD_NOT_NEEDED : hvd_problem(kind);
}

/* Gives the parameter servers of a cluster ranks, if the strategy has a use for
 * them: they are the servers of --servers. */
static int rank_servers(struct options *options, hvd_cluster *cluster)
{
    int count = hvd_cluster_count(cluster, HVD_ROLE_PS);
    int *servers = &options->servers.count;

    if (count == 0)
        return 0;
    if (options->strategy != STRATEGY_PARAMETER_SERVER)
        return problem_set("the cluster has tasks of type ps (%d), which only "
                           "--strategy parameter-server has a use for: give "
                           "that, or remove \"ps\" from the cluster",
                           count);
    if (*servers > 0 && *servers != count)
        return problem_set("--servers %d: the cluster has %d tasks of type ps, "
                           "which are the servers: leave --servers out",
                           *servers, count);
    *servers = count;
    return hvd_cluster_rank_servers(cluster) < 0 ? hvd_problem(PROBLEM) : 0;
}

/* Starts a world of this process alone, whatever the environment says about
 * others. */
static int start_alone(struct options *options)
{
    if (launcher_present())
        return problem_set(
            "an evaluator is started by hand, or by hvd-run, and "
            "not by mpirun: it is no rank");
    if (options_set_evaluator(options) < 0)
        return PROBLEM;
    unsetenv("TF_CONFIG");
    return hvd_init() < 0 ? hvd_problem(PROBLEM) : 0;
}

static int start_task(struct options *options, hvd_cluster *cluster,
                      hvd_role *role)
{
    int32_t index;

    if (hvd_cluster_task(cluster, role, &index) < 0)
        return hvd_problem(PROBLEM);
    if (*role == HVD_ROLE_EVALUATOR)
        return start_alone(options);
    if (rank_servers(options, cluster) < 0)
        return PROBLEM;
    return judge_start(hvd_init_cluster(cluster), PROBLEM);
}

int world_start(struct options *options, hvd_role *role)
{
    hvd_cluster *cluster = NULL;
    int status = 0;

    *role = HVD_ROLE_WORKER;
    if (options && options->elastic)
        setenv("HVD_ELASTIC", "1", 0);
    /* Processes wait for worlds that have them. */
    if (options && options->elastic_replay)
        setenv("HVD_START_TIME", "24h", 0);
    if (options)
        status = description_find(options, &cluster);
    if (status < 0)
        return status;
    if (options && options->strategy < 0)
        options->strategy = cluster ? STRATEGY_MULTI_WORKER : STRATEGY_HOROVOD;
    if (cluster)
        status = start_task(options, cluster, role);
    else /* MPI fails on all ranks alike */
        status = judge_start(hvd_init(), PROBLEM_EVERYWHERE);
    hvd_cluster_free(cluster);
    if (status == 0) /* late, or as a spare of MPI's ranks */
        status = cluster_arrive(options && options->elastic);
    return status;
}
